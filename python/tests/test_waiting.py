"""Data sets that wait for each sample, as for a network: as many samples are in the making as with torch's workers, though the feeder has fewer threads.
What computes gets no more than the threads. The data sets count by themselves how many of their samples are in the making."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from sluice.torch import DataLoader

WORKERS = 4  # Twice the threads of the feeder.
SAMPLES = 24
_DEADLINE_SECONDS = 60


class Meeting:
    """No visitor leaves before so many have been there at once."""

    def __init__(self, folder: Path, visitors: int) -> None:
        self.present, self.met, self.visitors = folder / "present", folder / "met", visitors
        self.present.mkdir()

    def visit(self, name: int) -> None:
        own = self.present / f"{name}"
        own.touch()
        deadline_seconds = time.monotonic() + _DEADLINE_SECONDS
        while not self.met.exists():
            if len(os.listdir(self.present)) >= self.visitors:
                self.met.touch()
            if time.monotonic() > deadline_seconds:
                raise TimeoutError(f"only {len(os.listdir(self.present))} samples were in the making at once")
            time.sleep(0.005)
        own.unlink()


class Samples(Dataset):
    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        self.meeting.visit(index)
        return torch.tensor(index)


class WholeBatches(Samples):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        return [self[index] for index in indices]


class KeepsState(Samples):
    def __init__(self, meeting: Meeting) -> None:
        super().__init__(meeting)
        self.generator = torch.Generator().manual_seed(3)


class Stream(IterableDataset):
    def __init__(self, meeting: Meeting) -> None:
        self.meeting = meeting

    def __iter__(self):
        worker = get_worker_info()
        for index in range(worker.id, SAMPLES, worker.num_workers):
            self.meeting.visit(index)
            yield torch.tensor(index)


@pytest.mark.parametrize("kind", [Samples, WholeBatches, KeepsState, Stream])
def test_samples_that_wait_are_in_the_making_together(real_feeder, tmp_path, kind):
    loader = DataLoader(kind(Meeting(tmp_path, WORKERS)), batch_size=2, num_workers=WORKERS)
    seen = torch.cat(list(loader))
    assert sorted(seen.tolist()) == list(range(SAMPLES))
    if kind is not Stream:
        assert seen.tolist() == list(range(SAMPLES))


class Computes(Dataset):
    """Returns how many samples were in the making."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        own = self.folder / f"{index}"
        own.touch()
        most, end_seconds = 0, time.process_time() + 0.03
        while time.process_time() < end_seconds:
            most = max(most, len(os.listdir(self.folder)))
        own.unlink()
        return torch.tensor(most)


def test_samples_that_compute_get_the_threads_and_no_more(real_feeder, tmp_path):
    loader = DataLoader(Computes(tmp_path), batch_size=2, num_workers=WORKERS)
    assert max(torch.cat(list(loader)).tolist()) <= 2
