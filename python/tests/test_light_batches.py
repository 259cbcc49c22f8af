"""Small tensors leave a fork by value. What arrives is the batch, whatever it holds."""

from __future__ import annotations

import collections
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch

from sluice import collation
from sluice.light_batches import LIGHT_BYTES, lightened
from test_loader import equal

Point = collections.namedtuple("Point", "x y")


class OwnTensor(torch.Tensor):
    pass


def sent(batch) -> bytes:
    """What is written to the pipe."""
    return bytes(ForkingPickler.dumps(lightened(batch)))


def arrived(batch):
    return pickle.loads(sent(batch))


LIGHT = {
    "a matrix": lambda: torch.rand(3, 4),
    "a number": lambda: torch.tensor(5),
    "a tensor and labels": lambda: [torch.rand(2), torch.arange(2)],
    "a dict of tuples": lambda: {"x": (torch.rand(2), "name"), "y": {"deep": torch.tensor([True, False])}},
    "the most bytes": lambda: torch.rand(LIGHT_BYTES // 4),
    "half precision": lambda: torch.rand(3).to(torch.bfloat16),
    "an unsigned type": lambda: torch.tensor([1, 2, 65535], dtype=getattr(torch, "uint16", torch.int32)),
    "no tensor": lambda: ["text", 5, None],
}
LEFT_TO_TORCH = {
    "one byte too many": lambda: torch.zeros(LIGHT_BYTES + 1, dtype=torch.uint8),
    "an empty tensor": lambda: torch.zeros(0, 3),
    "a row of a matrix": lambda: torch.rand(4, 4)[1],
    "a transposed one": lambda: torch.rand(2, 3).t(),
    "one with a gradient": lambda: torch.rand(3, requires_grad=True),
    "an own class": lambda: torch.rand(3).as_subclass(OwnTensor),
    "in a named tuple": lambda: Point(torch.rand(2), 1),
    "in a long list": lambda: [torch.rand(1) for _ in range(65)],
    "deep inside": lambda: [[[[[torch.rand(1)]]]]],
}


@pytest.mark.parametrize("name", [*LIGHT, *LEFT_TO_TORCH])
def test_what_arrives_is_the_batch(name):
    batch = {**LIGHT, **LEFT_TO_TORCH}[name]()
    received = arrived(batch)
    assert type(received) is type(batch) and equal(received, batch)


@pytest.mark.parametrize("name", [*LIGHT, *LEFT_TO_TORCH])
def test_small_tensors_need_no_shared_memory(name):
    batch = {**LIGHT, **LEFT_TO_TORCH}[name]()
    assert (b"rebuild_tensor" not in sent(batch)) == (name in LIGHT)


def test_one_tensor_stays_one_and_shared_memory_shared():
    tensor, names = torch.zeros(2, 2), ["a"]
    first, again, flat, mine, same = arrived([tensor, tensor, tensor.view(-1), names, names])
    flat[3] = 7
    assert first is again and first[1, 1] == 7 and mine is same


def test_a_batch_that_holds_itself_is_sent():
    batch = [torch.ones(2)]
    batch.append(batch)
    assert torch.equal(arrived(batch)[1][0], torch.ones(2))


def test_a_large_batch_is_stacked_in_shared_memory_where_it_leaves_by_that(monkeypatch):
    monkeypatch.setattr(torch.utils.data._utils.worker, "_worker_info", object())
    samples = {size: [torch.full((size,), float(n)) for n in range(4)] for size in (1, LIGHT_BYTES // 4)}
    for in_fork in (False, True):
        monkeypatch.setattr(collation, "_shares_large_tensors", in_fork)
        stacked = {size: collation.collate(None, True, tensors) for size, tensors in samples.items()}
        assert all(equal(stacked[size], torch.stack(tensors)) for size, tensors in samples.items())
        assert [made.is_shared() for made in stacked.values()] == [False, in_fork]
