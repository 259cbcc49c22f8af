"""A sampler is drawn exactly as far as torch's workers would have drawn it, whatever the feeder's window."""

from __future__ import annotations

import functools

import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader as TorchLoader, RandomSampler, Sampler, SubsetRandomSampler, WeightedRandomSampler

from conftest import eventually
from sample_datasets import Numbers
from sluice.torch import DataLoader
from test_loader import indices_of


class Walk(Sampler):
    """Every draw changes what the next epoch will be."""

    def __init__(self) -> None:
        self.position = 0

    def __len__(self) -> int:
        return 40

    def __iter__(self):
        for _ in range(40):
            self.position += 1
            yield self.position * 7 % 37


def own() -> torch.Generator:
    return torch.Generator().manual_seed(8)


SAMPLERS = {
    "with replacement": lambda: dict(sampler=RandomSampler(range(37), True, 120, own()), batch_size=2),
    "with replacement, one sample a draw": lambda: dict(sampler=RandomSampler(range(37), True, 120, own()), batch_size=None),
    "a permutation": lambda: dict(sampler=RandomSampler(range(37), generator=own()), batch_size=4),
    "several permutations": lambda: dict(sampler=RandomSampler(range(9), num_samples=100, generator=own()), batch_size=2),
    "shuffled": lambda: dict(shuffle=True, generator=own(), batch_size=5),
    "shuffled by the process's generator": lambda: dict(shuffle=True, batch_size=5),
    "dropping the last": lambda: dict(shuffle=True, generator=own(), batch_size=5, drop_last=True),
    "a subset": lambda: dict(sampler=SubsetRandomSampler(range(30), own()), batch_size=4),
    "weighted": lambda: dict(sampler=WeightedRandomSampler([1.0] * 37, 60, generator=own()), batch_size=4),
    "of the user": lambda: dict(sampler=Walk(), batch_size=3),
    "batches of the user's": lambda: dict(batch_sampler=BatchSampler(Walk(), 3, False)),
}


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("window", [1, 3, 50])
@pytest.mark.parametrize("case", SAMPLERS)
def test_epochs_after_an_early_end_are_torchs(make_fake, case, window, persistent):
    make_fake(window_batches=window)
    assert epochs_with_early_ends(DataLoader, case, persistent) == by_torch(case, persistent)


def epochs_with_early_ends(loader_class, case: str, persistent: bool) -> list:
    torch.manual_seed(4)
    loader = loader_class(Numbers(), num_workers=2, persistent_workers=persistent, **SAMPLERS[case]())
    epochs = []
    for taken in (1, 5, 100, 3):
        batches = iter(loader)
        epochs.append([keys for _, keys in zip(range(taken), indices_of_each(batches), strict=False)])
    return epochs


@functools.cache
def by_torch(case: str, persistent: bool) -> list:
    return epochs_with_early_ends(TorchLoader, case, persistent)


def indices_of_each(batches):
    for batch in batches:
        yield batch[0].reshape(-1).tolist()


def test_what_is_drawn_beyond_the_window_is_asked_for_in_turn(make_fake):
    fake = make_fake(window_batches=6, silent=True)
    other = iter(DataLoader(Numbers(), sampler=[], num_workers=2))
    eventually(lambda: other._stream.limit_batches == 6)  # until the window is known, it is what torch prefetches: four
    batches = iter(DataLoader(Numbers(), batch_size=1, num_workers=2, prefetch_factor=5))
    eventually(lambda: len(fake.ask()["requests"]) == 3)
    fake.set(silent=False)
    assert indices_of(batches) == [[index] for index in range(37)]


def test_the_window_is_used_where_no_draw_can_change(make_fake):
    fake = make_fake(window_batches=20, silent=True)
    batches = iter(DataLoader(Numbers(), batch_size=1, num_workers=1, shuffle=True))
    eventually(lambda: batches._stream.limit_batches == 20)
    batches._fill()
    eventually(lambda: len(fake.ask()["requests"]) == 20)
