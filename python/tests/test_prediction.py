"""What a sampler will yield is known before it is asked, and no generator has moved."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, DistributedSampler, RandomSampler, SequentialSampler

from sample_datasets import Numbers
from sluice.executor.generators import capture_generators
from sluice.loader.prediction import Habit, Moment, forecast
from test_pace import SAMPLERS, own

KNOWN = {
    **{name: make for name, make in SAMPLERS.items() if "user" not in name},
    "in order": lambda: dict(batch_size=4),
    "a list": lambda: dict(sampler=[5, 3, 8, 1, 0], batch_size=2),
    "a list of batches": lambda: dict(batch_sampler=[[5, 3], [8, 1], [0, 2]]),
    "of one process of several": lambda: dict(sampler=DistributedSampler(range(37), 2, 1, seed=3), batch_size=4),
    "one generator for sampler and seeds": lambda: sharing_a_generator(),
}


def sharing_a_generator() -> dict:
    generator = own()
    return dict(sampler=RandomSampler(range(37), generator=generator), generator=generator, batch_size=4)


@pytest.mark.parametrize("case", KNOWN)
def test_a_forecast_touches_no_generator_and_is_what_comes(case):
    loader = TorchLoader(Numbers(), **KNOWN[case]())
    before = capture_generators(loader)
    expected = forecast(loader, Moment.of(loader), Habit(epoch_step=0), None)
    batches = list(expected.batches)
    assert capture_generators(loader) == before
    base_seed = torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item()
    assert (expected.base_seed, batches) == (base_seed, list(loader._index_sampler))


class Reversed(SequentialSampler):
    def __iter__(self):
        return iter(range(len(self.data_source))[::-1])


def test_of_an_unknown_sampler_there_is_no_forecast():
    loader = TorchLoader(Numbers(), sampler=Reversed(range(9)))
    assert forecast(loader, Moment.of(loader), Habit(), None) is None


@pytest.mark.parametrize("words", [0, 1, 2, 200])
def test_the_words_drawn_between_two_moments_are_counted(words):
    loader = TorchLoader(Numbers(), generator=own())
    earlier = Moment.of(loader)
    torch.rand(words)
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
    assert earlier.habit_until(Moment.of(loader)) == Habit((words, 2), 0)
