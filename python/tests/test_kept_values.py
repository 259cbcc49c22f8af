"""Results of functions as bytes: they come back as they were, and bytes that are none are told."""

from __future__ import annotations

import collections
import math
import random

import numpy
import pytest
import torch

from sluice.cache.kept_values import MOST_BYTES, Damaged, NotKept, decode, encode

GRID = numpy.arange(24, dtype=numpy.float32).reshape(4, 6)


def same(left, right) -> bool:
    """Type, form and every bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(map(same, left.values(), right.values()))
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        return (left.dtype, left.shape, left.stride()) == (right.dtype, right.shape, right.stride()) and same_bytes(left, right)
    if isinstance(left, (numpy.ndarray, numpy.generic)):
        return (left.dtype, left.shape, left.strides) == (right.dtype, right.shape, right.strides) and left.tobytes() == right.tobytes()
    return left == right or (left != left and right != right)


def same_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    return all(a.contiguous().view(-1).view(torch.uint8).tolist() == b.contiguous().view(-1).view(torch.uint8).tolist() for a, b in [(left, right)] if a.numel())


VALUES = {
    "nothing": None,
    "numbers": [True, False, 0, -1, 255, 256, -(2**63), 2**200, 0.0, -0.0, math.inf, math.nan, 5e-324],
    "texts": ["", "töne", "\udc80", b"", b"\x00\xff"],
    "nested": {"a": [1, (2, [None])], 7: {"b": ()}, (1, "x"): b"y", None: 1.5},
    "lists and tuples": ([], (), [()], ([],)),
    "every dtype of torch": [torch.arange(5).to(dtype) for dtype in (torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.float64, torch.bool, torch.complex64)],
    "tensors of every shape": [torch.zeros(()), torch.zeros(0), torch.zeros(3, 0, 2), torch.ones(1, 1)],
    "a transposed tensor": torch.arange(12.0).view(3, 4).T,
    "a part of a tensor": torch.arange(40).view(4, 10)[:, 2:7:2],
    "a repeated tensor": torch.arange(4.0).expand(3, 4),
    "every kind of numpy": [numpy.arange(5).astype(kind) for kind in ("u1", "<i2", ">i4", "f2", "f8", "c16", "?", "U3", "S2", "M8[ms]", "m8[s]")],
    "arrays of every shape": [numpy.zeros(()), numpy.zeros(0), numpy.zeros((3, 0, 2)), GRID],
    "arrays of every layout": [GRID.T, GRID[:, ::2], GRID[::-1], GRID[::-1, 1:5:3], numpy.asfortranarray(GRID), GRID[None], GRID[:, None, :]],
    "a repeated array": numpy.broadcast_to(numpy.arange(3), (4, 3)),
    "scalars of numpy": [numpy.float32(1.5), numpy.int64(-3), numpy.bool_(True), numpy.str_("x"), numpy.datetime64("2026-01-01")],
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_as_it_was(name):
    assert same(decode(encode(VALUES[name])), VALUES[name])


@pytest.mark.parametrize("value", [torch.zeros(3), torch.zeros(3, 2).T, GRID.copy(), GRID.T.copy("K"), GRID[None], [1]])
def test_who_changes_a_value_changes_no_other(value):
    data = encode(value)
    first = decode(data)
    if isinstance(first, list):
        first.append(2)
    else:
        first += 1
    assert same(decode(data), value)


class Own(numpy.ndarray):
    pass


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Pair(1, 2), "class Pair"),
        ({1, 2}, "class set"),
        (object(), "class object"),
        ([{"a": collections.OrderedDict()}], "class OrderedDict"),
        (numpy.array([object()]), "array of object"),
        (numpy.zeros(2, "i4,f4"), "array of"),
        (numpy.zeros(2).view(Own), "class Own"),
        (torch.zeros(2, requires_grad=True), "not a plain one"),
        (torch.nn.Parameter(torch.zeros(2)), "class Parameter"),
        (torch.zeros(2).to_sparse(), "not a plain one"),
        (torch.arange(6).unfold(0, 3, 1), "overlap"),
        (torch.zeros(100, 1000)[:, 0], "a copy"),
        (numpy.lib.stride_tricks.sliding_window_view(numpy.zeros(9), 3), "overlap"),
        (bytes(MOST_BYTES + 1), "256 MiB"),
    ],
)
def test_what_is_not_kept_is_named(value, says):
    with pytest.raises(NotKept, match=says):
        encode(value)


def test_a_value_within_itself_is_not_kept():
    circle: list = []
    circle.append(circle)
    with pytest.raises(NotKept, match="within one another"):
        encode(circle)


@pytest.mark.parametrize(
    "data",
    [b"", b"sluice 1", b"sluice 2N", b"sluice 1NN", b"sluice 1Z", b"sluice 1I\xff\xff\xff\xff1", b"sluice 1L\xff\xff\xff\xff", b"sluice 1A\x02\xff", b"\x80\x04."],
)
def test_bytes_that_are_no_value_are_told(data):
    with pytest.raises(Damaged):
        decode(data)


@pytest.mark.parametrize("seed", range(4))
def test_bytes_that_have_changed_are_told_or_another_value(seed):
    """A checksum stands before: whatever comes through all the same must do no harm."""
    generator = random.Random(seed)
    whole = encode(list(VALUES.values()))
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(generator.randint(1, 3)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        try:
            decode(bytes(data[: generator.choice([len(data), generator.randrange(len(data))])]))
        except Damaged:
            pass
