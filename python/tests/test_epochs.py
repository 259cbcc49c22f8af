"""Many epochs and several loaders with the real feeder: values, memory and processes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.data import Dataset

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, RealWorker, eventually
from sample_datasets import Bytes, Numbers
from sluice.torch import DataLoader

MIB = 1 << 20


class Scheduled(Dataset):
    """A large table, and an attribute that is set at each epoch."""

    def __init__(self) -> None:
        self.table = numpy.arange(4 * MIB, dtype=numpy.float32)
        self.tensor = torch.arange(MIB, dtype=torch.bfloat16)
        self.epoch = 0

    def __len__(self) -> int:
        return 8

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
        self.history = [epoch] * 10

    def __getitem__(self, index: int):
        self.table[index] += 1  # A worker may spoil its own copy, but not that of later epochs.
        return self.epoch, float(self.table[index]) - index, float(self.tensor[index]) - index


@pytest.fixture
def own_feeder(tmp_path, monkeypatch):
    """make(**settings): a real feeder of one thread for this test."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    made = []

    def make(**settings):
        made.append(RealFeeder(tmp_path, threads=1, **settings))
        monkeypatch.setenv("SLUICE_FEEDER_SOCKET", made[-1].path)
        return made[-1]

    yield make
    for feeder in made:
        feeder.stop()


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def children(pid: int) -> list[int]:
    return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE).stdout.split()]


def test_a_hundred_epochs_with_a_changing_attribute_cost_no_memory(own_feeder):
    feeder = own_feeder()
    dataset = Scheduled()
    loader = DataLoader(dataset, batch_size=4, num_workers=2)
    for epoch in range(100):
        dataset.set_epoch(epoch)
        for epochs, spoilt, tensors in loader:
            assert epochs.tolist() == [epoch] * 4 and spoilt.tolist() == [1.0] * 4 and tensors.tolist() == [0.0] * 4
        if epoch == 2:
            first_children, before_bytes = children(feeder.pid), resident_bytes(feeder.pid)
            child_before_bytes = resident_bytes(first_children[0])
    assert children(feeder.pid) == first_children
    assert resident_bytes(feeder.pid) - before_bytes < 8 * MIB
    assert resident_bytes(first_children[0]) - child_before_bytes < 24 * MIB  # Twice the arrays would be more.


def test_three_loaders_in_turn_keep_their_children(own_feeder):
    feeder = own_feeder()
    loaders = [DataLoader(Numbers(20 + number), batch_size=10, num_workers=1) for number in range(3)]
    for loader in loaders:
        list(loader)
    [interpreter] = children(feeder.pid)  # each pipeline is a fork of it, and its children are forks of that
    started = [children(pipeline) for pipeline in children(interpreter)]
    assert [len(forks) for forks in started] == [1, 1, 1]
    began_seconds = time.monotonic()
    for _ in range(3):
        for loader in loaders:
            list(loader)
    assert [children(pipeline) for pipeline in children(interpreter)] == started
    assert time.monotonic() - began_seconds < 10


def test_the_children_of_a_loader_that_is_gone_go(own_feeder):
    feeder = own_feeder()
    loader = DataLoader(Numbers(8), batch_size=4, num_workers=1)
    list(loader)
    [interpreter] = children(feeder.pid)  # has only imported torch, and stays a while for the next loader
    assert len(children(interpreter)) == 1
    del loader
    eventually(lambda: not children(interpreter))


@pytest.mark.parametrize("executor", ["python", "native"])
def test_a_batch_larger_than_the_arena_is_made_here_and_the_log_says_what_to_do(own_feeder, image_root, caplog, executor):
    own_feeder(arena_bytes=MIB)
    if executor == "python":
        loader = DataLoader(Bytes(8, MIB), batch_size=2, num_workers=1)
        assert [batch[:, 0].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    else:
        from torchvision import transforms
        from torchvision.datasets import ImageFolder

        loader = DataLoader(ImageFolder(image_root, transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])),
                            batch_size=8, num_workers=1)
        assert [len(images) for images, _ in loader] == [8, 8, 7]
    list(loader)
    said = [record.message for record in caplog.records if "does not fit" in record.message]
    assert len(said) == 1 and "the arena of 1048576 bytes" in said[0] and "spec.feeder.arena" in said[0]


@pytest.fixture
def worker():
    """The address of a data worker of one thread."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    worker = RealWorker()
    yield worker.address
    worker.stop()


class WhoAndWhen(Scheduled):
    """Sample i tells its process and the epoch."""

    def __getitem__(self, index: int):
        time.sleep(0.02)
        return os.getppid(), self.epoch


def test_data_workers_follow_the_changes_of_each_epoch(own_feeder, worker):
    feeder = own_feeder(workers=worker)
    dataset = WhoAndWhen()
    loader = DataLoader(dataset, batch_size=1, num_workers=2)
    seen = set()

    def an_epoch() -> bool:
        """Whether data workers have made batches of two epochs at least."""
        dataset.set_epoch(dataset.epoch + 1)
        for parents, epochs in loader:
            assert epochs.tolist() == [dataset.epoch]
            seen.update((dataset.epoch, parent) for parent in parents.tolist() if parent != feeder.pid)
        return len({epoch for epoch, _ in seen}) >= 2

    eventually(an_epoch, 300)
