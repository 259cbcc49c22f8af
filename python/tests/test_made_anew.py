"""What pickle refuses of Python's library, and is made anew elsewhere."""

from __future__ import annotations

import functools
import io
import os
import threading
import weakref

import numpy
import pytest
from torch.utils.data import Dataset

from sluice.shipping.made_anew import made_anew
from sluice.shipping.own_code import PickleReader
from sluice.shipping.pickling import dump
from sluice.torch import DataLoader


class Kept:
    pass


class Held:
    """A lock that is held. Its end frees it."""

    def __init__(self, lock):
        self.lock = lock
        self.lock.acquire()


ANEW = {
    "a lock": (threading.Lock(), lambda lock: lock.acquire(blocking=False)),
    "a reentrant lock": (threading.RLock(), lambda lock: lock.acquire() and lock.acquire()),
    "a condition": (threading.Condition(), lambda condition: condition.acquire(blocking=False)),
    "an event": (threading.Event(), lambda event: not event.is_set()),
    "weak values": (weakref.WeakValueDictionary(), lambda known: len(known) == 0),
    "weak keys": (weakref.WeakKeyDictionary(), lambda known: len(known) == 0),
    "a weak set": (weakref.WeakSet(), lambda known: len(known) == 0),
}


@pytest.mark.parametrize("case", ANEW)
def test_another_process_has_one_of_its_own(case):
    value, is_right = ANEW[case]
    pickled, _ = dump({"a": value, "b": value}, 1 << 20, False)
    read = PickleReader(io.BytesIO(pickled)).load()
    assert read["a"] is read["b"] and read["a"] is not value and is_right(read["a"])


KEPT = Kept()
HELD = {"a lock that is held": Held(threading.Lock()).lock, "a reentrant lock that is held": Held(threading.RLock()).lock,
        "weak values": weakref.WeakValueDictionary({1: KEPT}), "weak keys": weakref.WeakKeyDictionary({KEPT: 1})}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_what_a_fork_would_have_otherwise_is_refused(case):
    assert made_anew(HELD[case]) is None
    with pytest.raises((TypeError, AttributeError)):
        dump(HELD[case], 1 << 20, False)


def test_a_function_for_several_types_finds_those_that_call_it():
    script = {"functools": functools, "__name__": "__main__"}
    exec("""
@functools.singledispatch
def shown(value):
    "Shows it."
    return f"any {value}"
@shown.register(list)
def _(values): return [shown(each) for each in values]
@shown.register
def _(number: int): return f"number {number}"
""", script)  # fmt: skip
    pickled, _ = dump(script["shown"], 1 << 20, False)
    shown = PickleReader(io.BytesIO(pickled)).load()
    assert shown([1, "a", [2]]) == ["number 1", "any a", ["number 2"]]
    assert (shown.__name__, shown.__doc__) == ("shown", "Shows it.") and shown is not script["shown"]


MAPPED = {
    "whole": lambda numbers: numbers,
    "in another shape": lambda numbers: numbers.reshape(-1, 50),
    "a part": lambda numbers: numbers[1000:90_000],
    "rows of another shape": lambda numbers: numbers.reshape(-1, 50)[7:1900],
    "as other numbers": lambda numbers: numbers.view(numpy.int16),
}


@pytest.fixture
def mapped(tmp_path):
    """Behind eight bytes of another kind."""
    with open(tmp_path / "numbers.bin", "wb") as file:
        file.write(b"12345678" + numpy.arange(100_000, dtype=numpy.int32).tobytes())
    return numpy.memmap(tmp_path / "numbers.bin", numpy.int32, "r", offset=8)


@pytest.mark.parametrize("case", MAPPED)
def test_an_array_over_a_file_is_mapped_elsewhere(case, mapped):
    array = MAPPED[case](mapped)
    pickled, arrays = dump(array, 1 << 20, False)
    read = PickleReader(io.BytesIO(pickled), buffers=arrays).load()
    assert len(pickled) < 1000 and not arrays
    assert type(read) is numpy.memmap and read.dtype == array.dtype and numpy.array_equal(read, array)


def test_a_file_that_is_another_one_elsewhere_is_refused(mapped):
    pickled, _ = dump(mapped, 1 << 20, False)
    os.utime(mapped.filename, ns=(1, 1))
    with pytest.raises(OSError, match="numbers.bin is another file here"):
        PickleReader(io.BytesIO(pickled)).load()


def test_other_arrays_over_files_are_copied_or_refused(mapped):
    assert made_anew(mapped[:10]) is None and made_anew(mapped[::2]) is None
    assert made_anew(numpy.memmap(mapped.filename, numpy.int32, "r+", offset=8)) is None
    os.unlink(mapped.filename)
    assert made_anew(mapped) is None


class Tokens(Dataset):
    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.numbers[1000 * index : 1000 * index + 8].astype("int64")


def test_executors_make_batches_of_a_mapped_file(real_feeder, mapped, monkeypatch, caplog):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    batches = list(DataLoader(Tokens(mapped), batch_size=8, num_workers=2))
    assert [batch[:, 7].tolist() for batch in batches] == [[1000 * index + 7 for index in range(first, first + 8)] for first in range(0, 64, 8)]
    assert "no feeder can run" not in caplog.text
