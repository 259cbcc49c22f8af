"""The first batch of a loader that steps aside: this process begins it, and forks make it if its samples take long."""

from __future__ import annotations

import os
import time

import pytest
import torch
from torch.utils.data import Dataset

from sample_datasets import Numbers
from sluice.makers.payback import FirstBatch, TakesLong
from sluice.torch import DataLoader
from test_loader import equal


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")


FIRST_BATCHES = {
    # story: samples of the batch, batches left, seconds of the first sample and of each other one; taken over after so many.
    "cheap samples": (64, 1000, 0.001, 0.001, None),
    "an import": (64, 1000, 3.0, 0.001, None),
    "slow samples": (16, 1000, 0.5, 0.5, 2),
    "samples that are slow together": (256, 1000, 0.01, 0.01, 6),
    "the rest is soon done": (4, 1000, 0.06, 0.06, None),
    "the only batch": (16, 0, 0.02, 0.02, None),
    "the only batch, and a slow one": (16, 0, 0.5, 0.5, 2),
}


@pytest.mark.parametrize("story", FIRST_BATCHES)
def test_forks_take_over_once_the_rest_of_the_batch_takes_longer_than_their_start(story):
    samples, left, first_seconds, each_seconds, taken_over = FIRST_BATCHES[story]
    now_seconds, seen = 0.0, None
    watch = FirstBatch(samples, left, lambda: now_seconds)
    try:
        for made in range(samples):
            seen = made
            watch(made)
            now_seconds += each_seconds if made else first_seconds
        seen = None
    except TakesLong:
        pass
    assert seen == taken_over


class Slow(Dataset):
    """Sample i is the process that has made it; each takes `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> int:
        time.sleep(self.seconds)
        return os.getpid()


@pytest.mark.parametrize("seconds, by_forks", [(0.1, True), (0.0, False)])
def test_forks_take_over_the_first_batch_while_it_is_made_if_its_samples_take_long(make_fake, seconds, by_forks):
    make_fake()
    made_by = next(iter(DataLoader(Slow(seconds), batch_size=8, num_workers=2)))
    assert (os.getpid() in made_by.tolist()) != by_forks
    assert len(set(made_by.tolist())) == 1


def test_a_batch_that_forks_take_over_is_the_same_and_counts_once(make_fake):
    make_fake()
    class SlowNumbers(Numbers):
        def __getitem__(self, index: int):
            time.sleep(0.06)
            return super().__getitem__(index)

    torch.manual_seed(21)
    loader = DataLoader(SlowNumbers(), batch_size=12, num_workers=3)
    batches = [[tensor.clone() for tensor in batch] for batch in loader]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_STEP_ASIDE", "off")
        torch.manual_seed(21)
        wanted = [[tensor.clone() for tensor in batch] for batch in DataLoader(Numbers(), batch_size=12, num_workers=3)]
    assert equal(batches, wanted)
