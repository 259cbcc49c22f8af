"""How often a large data set is in memory: once for the trainer, once for all that serve it."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.data import Dataset

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from sluice.feeder import choice as feeder_module
from sluice.shipping import shipment
from sluice.shipping.sealed_memory import SealedMemory
from sluice.torch import DataLoader

MIB = 1 << 20
CHILDREN = 4


class Table(Dataset):
    """Sample i is the epoch and a row of a table, and says which process has made it."""

    def __init__(self, nbytes: int) -> None:
        self.rows = numpy.ones((nbytes // 4096, 4096), dtype=numpy.uint8)
        self.epoch = 0

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int):
        time.sleep(0.05)  # so that every thread of the feeder gets some
        return self.epoch, torch.from_numpy(self.rows[index % len(self.rows)].copy()), os.getpid()


def rollup_bytes(pid: int, *fields: str) -> int:
    lines = [line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return sum(1024 * int(line[1]) for line in lines if line[0].rstrip(":") in fields)


def process_tree(pid: int) -> list[int]:
    children = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    return [pid, *(descendant for child in children for descendant in process_tree(child))]


def pipelines_held(pid: int) -> int:
    """Descriptors of memory that holds a pipeline."""
    return sum("sluice-pipeline" in os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink())


@pytest.fixture
def feeder(tmp_path, monkeypatch):
    """make(): another feeder of four threads, instead of the one before."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    made = []

    def stop() -> None:
        feeder_module.disconnect_all()
        if made:
            made.pop().stop()

    def make() -> RealFeeder:
        stop()
        made.append(RealFeeder(tmp_path, threads=CHILDREN))
        monkeypatch.setenv("SLUICE_FEEDER_SOCKET", made[-1].path)
        return made[-1]

    yield make
    stop()


def memory_bytes(feeder: RealFeeder, nbytes: int) -> tuple[int, int]:
    """Of a feeder whose four children serve a table of so many bytes, and by how much this process has grown meanwhile."""
    dataset = Table(nbytes)
    before_bytes = rollup_bytes(os.getpid(), "Anonymous")
    loader = DataLoader(dataset, batch_size=1, num_workers=CHILDREN)

    def an_epoch() -> set[int]:
        dataset.epoch += 1
        made = list(loader)
        assert all(epoch == dataset.epoch and rows.sum() == 4096 for epoch, rows, _ in made)
        return {int(pid) for _, _, pid in made}

    eventually(lambda: len(an_epoch()) == CHILDREN, 120)
    grown_bytes = rollup_bytes(os.getpid(), "Anonymous") - before_bytes
    # Without libraries: how much of them counts for a process depends on who else uses them.
    return sum(rollup_bytes(pid, "Pss_Anon", "Pss_Shmem") for pid in process_tree(feeder.pid)), grown_bytes


def test_a_feeder_and_four_children_have_one_copy_of_a_data_set(feeder):
    table_bytes = 96 * MIB
    small_bytes, small_grown_bytes = memory_bytes(feeder(), MIB)
    large_bytes, large_grown_bytes = memory_bytes(feeder(), table_bytes + MIB)
    print(f"{(large_bytes - small_bytes) / table_bytes:.2f} copies, and {(large_grown_bytes - small_grown_bytes) / table_bytes:.2f} in the trainer")
    assert 0.9 * table_bytes < large_bytes - small_bytes < 1.3 * table_bytes
    assert large_grown_bytes - small_grown_bytes < 0.3 * table_bytes


def test_data_sets_that_change_leave_no_memory_behind(feeder):
    running = feeder()
    of_others = pipelines_held(os.getpid())  # Of a test that has failed, whose loader its report keeps.
    dataset = Table(MIB)
    loader = DataLoader(dataset, batch_size=8, num_workers=1)
    for epoch in range(3):
        dataset.rows += 1
        assert [int(rows[0, 0]) for _, rows, _ in loader] == [epoch + 2] * 2
    # The connection's thread lets go of the earlier ones in its own time.
    eventually(lambda: pipelines_held(os.getpid()) <= of_others + 1 and pipelines_held(running.pid) == 1, 120)
    del loader
    eventually(lambda: pipelines_held(os.getpid()) <= of_others and pipelines_held(running.pid) == 0, 120)


class Pickled(Dataset):
    """Counts how often it is pickled; what follows on its array refuses to be."""

    times = 0

    def __init__(self) -> None:
        self.rows = numpy.ones(MIB, dtype=numpy.uint8)
        self.last = NeverPickled()

    def __getstate__(self):
        type(self).times += 1
        return self.__dict__

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int):
        return int(self.rows[index])


class NeverPickled:
    def __reduce__(self):
        raise AssertionError("more is pickled than can be sent")


def test_a_data_set_that_is_too_large_is_pickled_once_and_only_up_to_the_bound(make_fake, monkeypatch, caplog):
    make_fake()
    monkeypatch.setattr(shipment, "_MOST_PICKLED_BYTES", MIB // 2)
    monkeypatch.setattr(Pickled, "times", 0)
    loader = DataLoader(Pickled(), batch_size=2, num_workers=1)
    for _ in range(3):
        assert [batch.tolist() for batch in loader] == [[1, 1], [1, 1]]
    assert Pickled.times == 1
    assert [record.message for record in caplog.records if "torch's own workers" in record.message] == [
        "using torch's own workers: the pickled dataset has more than the 524288 bytes that can be sent"
    ]


def test_sealed_memory_is_shared_and_never_changes():
    memory = SealedMemory.of([b"abc", memoryview(b"defg")])
    assert memory.nbytes == 7 and bytes(memory.view()) == b"abcdefg" and memory.view().readonly
    written = memory.private()
    written[0:1] = b"z"
    assert bytes(written) == b"zbcdefg" and bytes(memory.view()) == bytes(memory.private()) == b"abcdefg"
    with pytest.raises(PermissionError):
        os.pwrite(memory.descriptor, b"x", 0)
    with pytest.raises(PermissionError):
        mmap.mmap(memory.descriptor, 7, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    assert bytes(SealedMemory.of([]).view()) == b""


def test_sealed_memory_closes_its_descriptor():
    before = pipelines_held(os.getpid())
    memory = SealedMemory.of([b"abc"])
    view = memory.view()
    assert pipelines_held(os.getpid()) > before
    del memory
    assert bytes(view) == b"abc"  # a mapping outlives it
    del view
    assert pipelines_held(os.getpid()) == before
