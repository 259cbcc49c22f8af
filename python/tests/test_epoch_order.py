"""What a feeder is told of an epoch's order is what the sampler yields, where it is a permutation of a seed, and no generator has moved."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, DistributedSampler, RandomSampler

from sample_datasets import Numbers
from sluice.executor.generators import capture_generators
from sluice.loader.epoch_order import order_to_tell
from sluice.loader.prediction import Habit, Moment, forecast, order_from
from test_pace import own

COUNT = 37


def dealt(**arguments) -> dict:
    return dict(sampler=DistributedSampler(range(COUNT), **arguments), batch_size=4)


KNOWN = {
    "shuffled": lambda: dict(shuffle=True, batch_size=4),
    "shuffled, no batches": lambda: dict(shuffle=True, batch_size=None),
    "shuffled, the last dropped": lambda: dict(shuffle=True, batch_size=1, drop_last=True),
    "seeds of its own generator": lambda: dict(sampler=RandomSampler(range(COUNT)), generator=own(), batch_size=4),
    "of one process": lambda: dealt(num_replicas=1, rank=0, seed=3),
    "of one process of several": lambda: dealt(num_replicas=5, rank=2, seed=3),
    "of several, without the last": lambda: dealt(num_replicas=5, rank=4, seed=3, drop_last=True),
}
UNKNOWN = {
    "in order": lambda: dict(batch_size=4),
    "dealt out in order": lambda: dealt(num_replicas=2, rank=0, shuffle=False),
    "by its own generator": lambda: dict(shuffle=True, generator=own(), batch_size=4),
    "some twice": lambda: dict(sampler=RandomSampler(range(COUNT), replacement=True), batch_size=4),
    "a part": lambda: dict(sampler=RandomSampler(range(COUNT), num_samples=9), batch_size=4),
    "a user's": lambda: dict(sampler=torch.utils.data.SubsetRandomSampler(range(COUNT)), batch_size=4),
}


def uses_of(order: dict) -> list[int]:
    """As the cache makes them of what it is told (seeded_order.h, which is compared with torch there)."""
    every = torch.randperm(order["length"], generator=torch.Generator().manual_seed(order["seed"])).tolist()
    ranks = order.get("ranks", 1)
    if order.get("drops_last"):
        every = every[: len(every) // ranks * ranks]
    every += every[: -len(every) % ranks]
    return every[order.get("rank", 0) :: ranks]


def drawn_by(loader: TorchLoader) -> list[int]:
    """By the sampler of an epoch that begins now."""
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
    return [int(index) for batch in loader._index_sampler for index in (batch if isinstance(batch, list) else [batch])]


@pytest.mark.parametrize("case", KNOWN)
def test_the_order_of_an_epoch_that_begins_or_is_expected_is_told_and_no_generator_moves(case):
    loader = TorchLoader(Numbers(COUNT), **KNOWN[case]())
    for epoch in range(3):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        moment, before = Moment.of(loader), capture_generators(loader)
        order = order_from(loader, moment, draws_base_seed=True)
        assert forecast(loader, moment, Habit(epoch_step=0), None).order == order
        assert capture_generators(loader) == before
        assert uses_of(order) == drawn_by(loader)


@pytest.mark.parametrize("case", UNKNOWN)
def test_an_order_that_no_seed_makes_is_not_told(case):
    loader = TorchLoader(Numbers(COUNT), **UNKNOWN[case]())
    assert order_from(loader, Moment.of(loader), draws_base_seed=True) is None


def test_a_seed_that_is_negative_is_told_as_torch_takes_it():
    order = order_from(loader := TorchLoader(Numbers(COUNT), **dealt(num_replicas=1, rank=0, seed=-5)), Moment.of(loader), draws_base_seed=True)
    assert order["seed"] == 2**64 - 5
    assert uses_of({**order, "seed": -5}) == drawn_by(loader)


class Fed:
    """A session, and a pipeline."""

    def __init__(self, takes_orders: bool, native: object) -> None:
        self.takes_orders, self.native = takes_orders, native


@pytest.mark.parametrize("takes, native, resumes", [(False, True, False), (True, None, False), (True, True, True)])
def test_nothing_is_told_where_it_is_of_no_use(takes, native, resumes):
    loader = TorchLoader(Numbers(COUNT), shuffle=True)
    before, told = Moment.of(loader), Fed(takes, native)
    assert order_to_tell(None, told, loader, before, True) is None
    assert order_to_tell(told, told, loader, None if resumes else before, True) is None
    useful = Fed(True, True)
    assert order_to_tell(useful, useful, loader, before, True) == order_from(loader, before, True)
