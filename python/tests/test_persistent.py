"""Virtual workers that persist over epochs, as torch's do with persistent_workers: every batch and every draw is compared with torch's."""

from __future__ import annotations

import functools
import itertools
import os
import random
import signal
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, DistributedSampler, get_worker_info

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from sample_datasets import Keyed, Numbers, OwnGenerator, give_generator
from sluice.executor import history as history_module
from sluice.executor.generators import StateError
from sluice.executor.history import History, batches_of
from sluice.feeder import choice as feeder_module
from sluice.loader.persistent_iterator import PersistentIterator
from sluice.torch import DataLoader
from stateful_datasets import Compose, Counts, CountsBatches, FailsOnce, Randomizable, Transformed, draw_and_stack, set_random_states
from test_forks import Decided
from test_loader import equal
from test_sticky import batch, batches_and_errors, leaves

# How many batches the loop takes of each epoch; None: all.
EPOCHS = [None, 2, 0, 5, None]


class CountsStarts(Numbers):
    """Its samples say how often worker_init_fn has run."""

    starts = 0

    def __getitem__(self, index: int):
        return torch.tensor(self.starts), super().__getitem__(index)


def count_start(worker_id: int) -> None:
    get_worker_info().dataset.starts += 1


CASES = {
    "the process's generators": (lambda: Numbers(29), {"shuffle": True}),
    "a counter": (Counts, {"shuffle": True}),
    "whole batches": (CountsBatches, {"drop_last": True}),
    "single samples": (lambda: Counts(9), {"batch_size": None, "shuffle": True}),
    "a generator of each worker": (OwnGenerator, {"worker_init_fn": give_generator}),
    "as of MONAI": (lambda: Transformed(Randomizable()), {"worker_init_fn": set_random_states, "shuffle": True}),
    "as of albumentations": (lambda: Transformed(Compose()), {"prefetch_factor": 1}),
    "the number of starts": (CountsStarts, {"worker_init_fn": count_start}),
    "a collate_fn that draws": (Numbers, {"collate_fn": draw_and_stack}),
    "keys of two types": (Counts, {"sampler": [*range(9), *numpy.arange(9, 14), *range(14, 27)]}),
    "keys that are no integers": (Keyed, {"sampler": [f"key {i}" for i in range(11)]}),
    "fewer batches than workers": (lambda: Counts(4), {}),
    "a sampler that knows its epoch": (Numbers, {"sampler": lambda data: DistributedSampler(data, num_replicas=2, rank=1, seed=4)}),
}


def make_loader(loader_class, name: str, **arguments):
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)
    make, own = CASES[name]
    dataset, own = make(), dict(own)
    if callable(own.get("sampler")):
        own["sampler"] = own["sampler"](dataset)
    return loader_class(dataset, persistent_workers=True, **{"batch_size": 3, "num_workers": 2, **own, **arguments})


def run(loader, epochs: list[int | None], between=lambda epoch: None) -> list:
    """The batches of the epochs, and what the script draws after each."""
    seen = []
    for number, batches in enumerate(epochs):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(number)
        iterator = iter(loader)
        assert isinstance(iterator, PersistentIterator) == isinstance(loader, DataLoader)
        seen += [list(itertools.islice(iterator, batches)), torch.rand(1).item(), random.random(), numpy.random.rand()]
        between(number)
    return seen


def cloned(data):
    """Its tensors are no descriptors."""
    if isinstance(data, torch.Tensor):
        return data.clone()
    return type(data)(map(cloned, data)) if isinstance(data, (list, tuple)) else data


@functools.cache
def by_torch(name: str, num_workers: int = 2, **arguments) -> list:
    return cloned(run(make_loader(TorchLoader, name, num_workers=num_workers, **arguments), EPOCHS))


@pytest.fixture
def as_torch(monkeypatch):
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_every_epoch_is_torchs(any_feeder, as_torch, name, num_workers):
    assert equal(run(make_loader(DataLoader, name, num_workers=num_workers), EPOCHS), by_torch(name, num_workers))


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_every_epoch_of_forks_is_torchs(make_fake, as_torch, monkeypatch, name, num_workers):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    fake = make_fake()
    loader = make_loader(DataLoader, name, num_workers=num_workers)
    loader._sluice_payback = Decided(forks_at_once=True)
    loader._sluice_payback.pays = True  # The workers stay where they are all the same.
    assert equal(run(loader, EPOCHS), by_torch(name, num_workers))
    assert fake.ask()["requests"] == []


@pytest.mark.parametrize("faults", [{"drop_after": 5, "drops": 4}, {"lose_executors": 3}, {"lose_executors": 1000}, {"refuse_all": True}, {"slots": 2},
                                    {"window_batches": 1}, {"newest_first": False, "send_twice": True}], ids=str)
@pytest.mark.parametrize("name", ["a counter", "as of MONAI"])
def test_what_goes_wrong_changes_no_batch(make_fake, as_torch, name, faults):
    make_fake(**faults)
    assert equal(run(make_loader(DataLoader, name), EPOCHS), by_torch(name))


def test_a_feeder_that_goes_for_ever_leaves_the_other_epochs_to_this_process(make_fake, as_torch, monkeypatch):
    monkeypatch.setenv("SLUICE_LOSS_PATIENCE_SECONDS", "0.2")
    fake = make_fake()
    loader = make_loader(DataLoader, "a counter")
    assert equal(run(loader, EPOCHS, lambda epoch: fake.stop() if epoch == 1 else None), by_torch("a counter"))


@pytest.mark.parametrize("victims", ["children", "feeder"])
def test_workers_that_were_killed_are_rebuilt_with_all_their_epochs(tmp_path, monkeypatch, as_torch, victims):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    feeders = [RealFeeder(tmp_path)]
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeders[0].path)

    def kill(epoch: int) -> None:
        if victims == "feeder" and epoch in (0, 3):
            os.kill(feeders[-1].pid, signal.SIGKILL)
            feeders[-1].stop()
            Path(feeders[-1].path).unlink()
            feeders.append(RealFeeder(tmp_path))
        elif victims == "children":
            eventually(lambda: len(leaves(feeders[-1].pid)) == 2)
            for victim in leaves(feeders[-1].pid):
                os.kill(victim, signal.SIGKILL)

    try:
        assert equal(run(make_loader(DataLoader, "as of MONAI"), EPOCHS, kill), by_torch("as of MONAI"))
    finally:
        feeder_module.disconnect_all()
        for feeder in feeders:
            feeder.stop()


def test_a_sample_that_raises_is_told_and_the_state_goes_on(any_feeder, as_torch):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(11)
        loader = loader_class(FailsOnce(), batch_size=2, num_workers=2, persistent_workers=True)
        seen.append(batches_and_errors(loader) + batches_and_errors(loader))
    assert equal(*seen) and seen[0].count("Caught ValueError in DataLoader worker process 1.") == 1


class FailsAt(Counts):
    def __getitem__(self, index: int):
        if index == 20:
            raise ValueError("sample 20")
        return super().__getitem__(index)


def test_a_sample_that_is_left_out_is_told_by_its_place_in_the_epoch(any_feeder, as_torch):
    loader = DataLoader(FailsAt(), batch_size=3, num_workers=3, persistent_workers=True, on_error="skip")
    for epoch in range(3):
        assert len(list(loader)) == 13
        assert [(skipped.batch, skipped.index) for skipped in loader.skipped] == [(6, 20)], epoch


def test_a_state_resumes_in_the_workers_first_epoch(any_feeder, as_torch):
    whole = by_torch("a counter")
    loader = make_loader(DataLoader, "a counter")
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    resumed = make_loader(DataLoader, "a counter")
    resumed.load_state_dict(state)
    torch.rand(99)  # Of another script, up to here.
    assert equal(list(resumed), whole[0][2:])
    loader.load_state_dict(state)
    assert equal(list(loader), whole[0][2:])


def test_a_state_of_a_later_epoch_is_refused_and_one_between_epochs_begins_with_new_workers(make_fake, as_torch):
    make_fake()
    loader = make_loader(DataLoader, "a counter")
    list(loader)
    between, batches = loader.state_dict(), iter(loader)
    next(batches)
    later = make_loader(DataLoader, "a counter")
    later.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="persistent workers had gone on from earlier epochs"):
        iter(later)
    seen = []
    for taken in (0, 4):
        resumed = make_loader(DataLoader, "a counter")
        resumed.load_state_dict(between)
        batches = iter(resumed)
        seen.append([next(batches) for _ in range(taken)])
        state = resumed.state_dict()
        further = make_loader(DataLoader, "a counter")
        further.load_state_dict(state)
        seen[-1] += list(further)
    assert equal(*seen) and min(calls.min().item() for calls, _ in seen[0]) == 1


def test_workers_that_were_ended_begin_anew(any_feeder, as_torch):
    """As Lightning ends them."""
    loader = make_loader(DataLoader, "a counter", shuffle=False)
    iter(loader)._shutdown_workers()
    expected = [calls for calls, _ in iter(make_loader(DataLoader, "a counter", shuffle=False))]
    assert equal([calls for calls, _ in loader], expected)


def test_a_loader_between_two_epochs_leaves_the_window_to_others(make_fake, as_torch):
    make_fake(window_batches=6)
    first, second = (make_loader(DataLoader, "a counter") for _ in range(2))
    list(first)
    batches = iter(second)
    eventually(lambda: batches._stream.limit_batches == 6)
    next(iter(first))
    assert batches._stream.limit_batches == 3


def test_executors_end_with_the_loader(tmp_path, monkeypatch, as_torch):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    feeder = RealFeeder(tmp_path)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    try:
        loader = make_loader(DataLoader, "a counter", num_workers=3)
        makers = []
        for _ in range(2):
            list(loader)
            makers.append(set(leaves(feeder.pid)))
        assert makers[0] == makers[1] and len(makers[0]) == 3
        del loader
        eventually(lambda: len(leaves(feeder.pid)) <= 1)
    finally:
        feeder_module.disconnect_all()
        feeder.stop()


def test_a_history_numbers_the_batches_of_each_workers_life():
    history = History(2)
    for forgets in (False, True):
        for place in range(3):
            number = history.number(place)
            assert history.place(number) == place
            history.add(batch(number, [place]))
        history.begin_pass(forgets=forgets)
    # Worker 0 has made four batches, worker 1 two.
    assert [history.number(place) for place in range(4)] == [8, 5, 10, 7]
    history.add(batch(8, [5]))
    assert history.before(batch(8, [5])) == b""  # It has forgotten them.


def test_a_history_holds_what_came_before_in_all_passes():
    history = History(2)
    for keys in ([1, 2, 3], [4, 5, 6]):
        for place, key in enumerate(keys):
            history.add(batch(history.number(place), [key]))
        history.begin_pass(forgets=False)
    for place, expected in enumerate([[[1], [3], [4], [6]], [[2], [5]]]):
        request = batch(history.number(place), [7])
        history.add(request)
        assert batches_of(history.before(request)) == expected


def test_a_history_has_a_bound_beyond_which_this_process_goes_on(make_fake, as_torch, monkeypatch):
    monkeypatch.setattr(history_module, "MOST_WORDS", 40)
    fake = make_fake()
    assert equal(run(make_loader(DataLoader, "a counter"), EPOCHS), by_torch("a counter"))
    assert 13 < len(fake.ask()["requests"]) < 26  # Of 13 batches an epoch.
