"""Which changes of a data set, made while it is read, the log tells; and that a cache is none of them."""

from __future__ import annotations

import functools
import logging

import numpy
import pytest
import torch
from torch.utils.data import Dataset, Subset

from sluice.shipping.self_change import Watch
from sluice.torch import DataLoader


class Reads(Dataset):
    """One attribute `held`, and what a read makes of it."""

    def __init__(self, held, read) -> None:
        self.held = held
        self.read = read

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> int:
        self.held = self.read(self.held, index)
        return index


class Transform:
    def __init__(self) -> None:
        self.applied = 0

    def __call__(self, value: int) -> int:
        self.applied += 1
        return value


class Composed(Dataset):
    def __init__(self) -> None:
        self.transforms = [abs, Transform()]

    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> int:
        return functools.reduce(lambda value, transform: transform(value), self.transforms, index)


def fill(cache, index: int):
    cache[index] = index
    return cache


def extend(cache, index: int):
    cache.append(index)
    return cache


CHANGES = {
    "a counter": (lambda: Reads(0, lambda held, index: held + 1), "Reads.held"),
    "the last index": (lambda: Reads(-1, lambda held, index: index), "Reads.held"),
    "a name": (lambda: Reads("", lambda held, index: f"{index}.jpg"), "Reads.held"),
    "the last sample": (lambda: Reads(torch.zeros(1), lambda held, index: torch.tensor([index])), "Reads.held"),
    "the last array": (lambda: Reads(numpy.zeros(1), lambda held, index: numpy.array([index])), "Reads.held"),
    "a counter in a transform": (Composed, "Transform.applied"),
    "within a subset": (lambda: Subset(Reads(0, lambda held, index: held + 1), range(24)), "Reads.held"),
    "nothing": (lambda: Reads(3, lambda held, index: held), ""),
    "not a number": (lambda: Reads(float("nan"), lambda held, index: float("nan")), ""),
    "a cache by key": (lambda: Reads({}, fill), ""),
    "a cache that grows": (lambda: Reads([], extend), ""),
    "a cache in a tensor": (lambda: Reads(torch.zeros(24), fill), ""),
    "a cache in an array": (lambda: Reads(numpy.zeros(24), fill), ""),
    "a file opened at the first read": (lambda: Reads(None, lambda held, index: held or 7), ""),
    "a long text": (lambda: Reads("", lambda held, index: "x" * 257 + str(index)), ""),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_a_data_set_changes_is_named(case):
    make, name = CHANGES[case]
    dataset = make()
    dataset[0]
    watch = Watch(dataset)
    dataset[1]
    assert watch.changed() == name


def test_an_object_that_holds_itself_ends():
    dataset = Reads(0, lambda held, index: held + 1)
    dataset.itself = dataset
    watch = Watch(dataset)
    dataset[0]
    assert watch.changed() == "Reads.held"


def test_many_attributes_are_not_all_looked_at():
    dataset = Reads(0, lambda held, index: held + 1)
    before, dataset.__dict__ = dataset.__dict__, {f"attribute{number}": number for number in range(1000)}
    dataset.__dict__.update(before)
    watch = Watch(dataset)
    dataset[0]
    assert watch.changed() == ""


@pytest.mark.parametrize("case", CHANGES)
def test_the_log_says_which_attribute_changes(make_fake, monkeypatch, caplog, case):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()
    make, name = CHANGES[case]
    with caplog.at_level(logging.WARNING, "sluice"):
        batches = [batch.tolist() for batch in DataLoader(make(), batch_size=4, num_workers=2)]
    assert batches == [list(range(first, first + 4)) for first in range(0, 24, 4)]
    said = [record.getMessage() for record in caplog.records if "while it is read" in record.getMessage()]
    assert [text.split(" while")[0] for text in said] == ([f"the data set changes its {name}"] if name else [])
