"""Iterable data sets are served by streams. Every batch is compared with torch's."""

from __future__ import annotations

import copy
import functools
import json
import os
import random
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import IterableDataset

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from iterable_datasets import Breaks, Closing, Endless, Epochs, GoesOn, NotReadable, Shards, Split, Undivided, Uneven, WhoMakes, split, total
from sample_datasets import TORCH_HAS_IN_ORDER, OwnError, fail_at_start
from sluice.executor.computation import BatchRequest, PythonPipeline
from sluice.executor.generators import StateError
from sluice.executor.iterable import Reader, StreamEnd, Streams
from sluice.executor.laps import Laps
from sluice.feeder import choice as feeder_module
from sluice.loader.iterable_iterator import IterableIterator
from sluice.makers.forks import Forks
from sluice.makers.payback import Payback
from sluice.torch import DataLoader
from test_loader import equal
from test_sticky import descendants, leaves

CASES: dict[str, tuple[Callable[[], Any], dict]] = {
    "streams that end one after the other": (Uneven, {}),
    "without the last batch of each": (Uneven, {"drop_last": True}),
    "single samples": (Uneven, {"batch_size": None}),
    "one batch ahead": (Uneven, {"prefetch_factor": 1}),
    "shuffled text": (Shards, {}),
    "divided by worker_init_fn": (Split, {"worker_init_fn": split}),
    "a collate_fn that draws": (Split, {"collate_fn": total}),
    "each worker the whole": (Undivided, {}),
    "a data set that is told its epoch": (Epochs, {}),
}
SERVED_BY = ["fake feeder", "real feeder", "forks"]


@pytest.fixture(params=SERVED_BY)
def served(request, monkeypatch):
    """Who makes the batches: whatever a test says of them holds for all."""
    if request.param == "real feeder":
        return request.getfixturevalue("real_feeder")
    if request.param == "forks":
        monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    return request.getfixturevalue("make_fake")()


def seed() -> None:
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)


def run(loader_class, name: str, epochs: int = 2, **arguments) -> list:
    """All batches of some epochs, and what the script draws in between and after."""
    seed()
    make, own = CASES[name]
    loader = loader_class(make(), **{"batch_size": 4, "num_workers": 2, **own, **arguments})
    seen = []
    for epoch in range(epochs):
        getattr(loader.dataset, "set_epoch", int)(epoch)
        batches = iter(loader)
        assert isinstance(batches, IterableIterator) == (loader_class is DataLoader)
        seen += [list(batches), torch.rand(1).item(), random.random(), numpy.random.rand()]
    return seen


@functools.cache
def by_torch(name: str, num_workers: int) -> list:
    return copy.deepcopy(run(TorchLoader, name, num_workers=num_workers))  # Its tensors have a descriptor each.


@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_batches_and_their_order_are_torchs(served, name, num_workers):
    assert equal(run(DataLoader, name, num_workers=num_workers), by_torch(name, num_workers))


def test_forks_are_not_asked_for_a_stream_that_has_ended(make_fake, monkeypatch):
    """Each question would wake a process for nothing, and keep the other streams from being that far ahead."""
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()
    asked, give = [], Forks.give

    def noted(forks: Forks, request: BatchRequest) -> None:
        asked.append(request.worker_id)
        give(forks, request)

    monkeypatch.setattr(Forks, "give", noted)
    made = list(DataLoader(Uneven(), batch_size=1, num_workers=2, prefetch_factor=1))
    beyond_the_end = 2  # A stream is known to have ended when the answer is there, and each may be one batch ahead.
    assert len(made) <= len(asked) <= len(made) + 2 * beyond_the_end


UNEVEN = "streams that end one after the other"


@pytest.mark.parametrize("faults", [{"drop_after": 3, "drops": 2}, {"refuse_all": True}, {"lose_executors": 5}, {"window_batches": 1},
                                    {"send_twice": True}, {"slots": 2}], ids=str)
@pytest.mark.parametrize("name", [UNEVEN, "shuffled text"])
def test_what_goes_wrong_changes_no_batch(make_fake, name, faults):
    make_fake(**faults)
    assert equal(run(DataLoader, name, num_workers=4), by_torch(name, 4))


def interrupted(interrupt: Callable[[], None], after: int) -> list:
    """An epoch in which `interrupt()` happens after so many batches."""
    seed()
    batches = iter(DataLoader(Uneven(), batch_size=4, num_workers=2))
    first = [next(batches) for _ in range(after)]
    interrupt()
    return first + list(batches)


def test_a_feeder_that_goes_for_ever_leaves_the_rest_to_this_process(make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_LOSS_PATIENCE_SECONDS", "0.2")
    fake = make_fake()
    assert equal(interrupted(fake.stop, after=3), by_torch(UNEVEN, 2)[0])


def test_a_stream_whose_process_was_killed_is_made_again(tmp_path, monkeypatch):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    feeder = RealFeeder(tmp_path)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)

    def kill_all() -> None:
        eventually(lambda: len(leaves(feeder.pid)) == 2)
        for victim in leaves(feeder.pid):
            os.kill(victim, signal.SIGKILL)

    try:
        for after in (1, 2):
            assert equal(interrupted(kill_all, after), by_torch(UNEVEN, 2)[0])
        eventually(lambda: len(leaves(feeder.pid)) <= 1)  # A stream lives in one process, which ends with its pass.
    finally:
        feeder_module.disconnect_all()
        feeder.stop()


def a_pass(loader, after_two: Callable[[set[int]], None] = id) -> list:
    """The values and draws of each batch. `after_two` gets the processes that have made the first two."""
    torch.manual_seed(11)
    seen, pids = [], set()
    for value, draw, pid in loader:
        seen.append((value.tolist(), draw.tolist()))
        pids.add(pid[0].item())
        if len(seen) == 2:
            after_two(pids)
    return seen


def test_streams_have_homes_on_data_workers_and_outlive_them(data_worker):
    expected = a_pass(TorchLoader(WhoMakes(), batch_size=3, num_workers=2))
    loader, both = DataLoader(WhoMakes(), batch_size=3, num_workers=2), []

    def kill_if_it_serves(pids: set[int]) -> None:
        theirs = pids & set(descendants(data_worker.pid))
        if theirs:
            both.append(pids - theirs)
            data_worker.kill()

    def a_pass_that_loses_it() -> bool:
        """Whether the data worker was ready when the pass began."""
        assert a_pass(loader, kill_if_it_serves) == expected
        return bool(both)

    eventually(a_pass_that_loses_it, 300)
    assert len(both[0]) == 1  # The other stream has its home beside the trainer.
    assert a_pass(loader) == expected


def test_an_endless_stream_can_be_left(served):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        seed()
        loader = loader_class(Endless(), batch_size=3, num_workers=2)
        seen.append([[batch for batch, _ in zip(loader, range(5), strict=False)] for _ in range(2)])
    assert equal(*seen)


@pytest.mark.parametrize("loader_class", [TorchLoader, DataLoader])
def test_a_stream_that_the_loop_leaves_comes_to_its_finally(make_fake, monkeypatch, tmp_path, loader_class):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()
    for _ in zip(loader_class(Closing(tmp_path), batch_size=4, num_workers=2), range(8), strict=False):
        pass
    assert sorted(file.name for file in tmp_path.glob("worker *")) == ["worker 0", "worker 1"]


def told(loader_class, dataset) -> list:
    """Batches, and the first lines of what is raised in their places."""
    seed()
    batches, seen = iter(loader_class(dataset, batch_size=2, num_workers=2)), []
    while True:
        try:
            seen.append(next(batches))
        except ValueError as error:
            seen.append(str(error).partition("\n")[0])
            assert "in fetch" in str(error) and "raise ValueError" in str(error)
        except StopIteration:
            return seen


@pytest.mark.parametrize("make", [GoesOn, Breaks])
def test_a_stream_that_raises_is_told_and_goes_on_as_torchs(served, make):
    seen, expected = told(DataLoader, make()), told(TorchLoader, make())
    assert equal(seen, expected) and "Caught ValueError in DataLoader worker process 0." in expected


@pytest.mark.parametrize("make, arguments, error, said", [
    (NotReadable, {}, OSError, "the shards are gone"),
    (Split, {"worker_init_fn": fail_at_start}, OwnError, "no start today"),
])
def test_a_stream_that_cannot_begin_is_told(served, make, arguments, error, said):
    batches = iter(DataLoader(make(), num_workers=2, **arguments))
    for number in (0, 1):
        with pytest.raises(error, match=f"Caught {error.__name__} in DataLoader worker process {number}.(?s:.*){said}"):
            next(batches)


@pytest.mark.parametrize("loader_class", [TorchLoader, DataLoader])
def test_a_wrong_length_is_told_as_by_torch(make_fake, loader_class):
    make_fake()
    loader = loader_class(Undivided(), batch_size=2, num_workers=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == 6  # The length has not been asked for.
        assert len(loader) == 3
        assert len(list(loader)) == 6  # What torch compares with is the length of the data set.
    short = loader_class(Undivided(), batch_size=1, num_workers=2)
    assert len(short) == 6
    warning = "Length of IterableDataset .* was reported to be 6 ?.when accessing .* but 7 samples have been fetched"
    with pytest.warns(UserWarning, match=warning):
        batches = iter(short)
        for _ in range(7):
            next(batches)


def resumable(**arguments) -> DataLoader:
    return DataLoader(Uneven(), batch_size=2, num_workers=4, **arguments)


@pytest.mark.parametrize("consumed", [0, 1, 4, 6, 12, 16, 17, 18])
def test_a_pass_resumes_stream_by_stream(served, consumed):
    seed()
    loader = resumable()
    batches = iter(loader)
    for _ in range(consumed):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = list(batches)
    assert state["batches"] == consumed and len(rest) == 18 - consumed
    torch.manual_seed(99)
    resumed = resumable()
    resumed.load_state_dict(state)
    assert equal(list(resumed), rest)


def test_the_state_of_an_ended_stream_needs_no_reading_again(make_fake):
    make_fake()
    loader = resumable()
    batches = iter(loader)
    for _ in range(16):
        next(batches)
    state = loader.state_dict()
    assert state["streams"] == [None, 7, None, None]
    resumed = resumable()
    resumed.load_state_dict(state)
    again = iter(resumed)
    assert {seq % 4 for seq in again._outstanding} == {1} and len(list(again)) == 2


def test_a_state_of_torchs_workers_is_resumed_by_them(make_fake):
    """As made by an earlier version, or for a loader of persistent workers."""
    make_fake()
    loader = resumable()
    batches = iter(loader)
    for _ in range(7):
        next(batches)
    state = {**loader.state_dict(), "streams": None}
    rest = list(batches)
    resumed = resumable()
    resumed.load_state_dict(state)
    again = iter(resumed)
    assert not isinstance(again, IterableIterator) and equal(list(again), rest)
    assert isinstance(iter(resumed), IterableIterator)


@pytest.mark.parametrize("change, said", [
    ({"streams": "none"}, "not a list of counts"), ({"streams": [1, -1, 0, 0]}, "not a list of counts"),
    ({"streams": [1, 1]}, "2 streams, but virtual_workers=4"),
])
def test_a_state_that_cannot_be_is_refused(make_fake, change, said):
    make_fake()
    loader = resumable()
    next(iter(loader))
    with pytest.raises(StateError, match=said):
        loader.load_state_dict({**loader.state_dict(), **change})


def test_a_state_of_another_number_of_workers_is_refused(make_fake):
    make_fake()
    loader = resumable()
    next(iter(loader))
    other = DataLoader(Uneven(), batch_size=2, num_workers=2)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="of 4 virtual workers, this loader has 2"):
        iter(other)


def test_executors_that_pay_are_tried_with_one_batch_and_make_the_next_pass(make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    fake = make_fake()
    expected = by_torch(UNEVEN, 2)
    seed()
    loader = DataLoader(Uneven(), batch_size=4, num_workers=2)
    loader._sluice_payback = Payback(forks_at_once=True)
    loader._sluice_payback.pays = True
    batches = iter(loader)
    first = [next(batches)]
    eventually(lambda: batches._stream.is_proven)
    assert equal(first + list(batches), expected[0])
    assert [request[0] for request in fake.ask()["requests"]] == [0]
    torch.rand(1), random.random(), numpy.random.rand()
    assert equal(list(loader), expected[4])
    assert len(fake.ask()["requests"]) > len(expected[4])


LEFT: dict[str, tuple[dict, str]] = {
    "persistent workers": ({"persistent_workers": True}, "persistent workers keep their copies"),
    "any order": ({"in_order": False}, "have no order"),
    "a way to start workers": ({"multiprocessing_context": "spawn"}, "processes of a particular kind"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch_is_said_in_one_line(make_fake, caplog, name):
    if name == "any order" and not TORCH_HAS_IN_ORDER:
        pytest.skip("this torch has no in_order")
    make_fake()
    arguments, said = LEFT[name]
    loader = DataLoader(Split(), num_workers=1, **arguments)
    assert not isinstance(iter(loader), IterableIterator)
    assert [said in record.message for record in caplog.records] == [True]
    assert said in loader.explain()


def test_what_explain_says(make_fake):
    make_fake()
    said = DataLoader(Split(), num_workers=3).explain()
    assert said.startswith("executor: python, by 3 streams, one for each worker\n  because the data set is iterable")


class Restarts(IterableDataset):
    """Its iterator has more after its end."""

    def __iter__(self):
        return self

    def __init__(self) -> None:
        self.count = 0

    def __next__(self) -> int:
        self.count += 1
        if self.count == 2:
            raise StopIteration
        return self.count


@pytest.mark.parametrize("auto_collation", [False, True])
def test_an_ended_stream_stays_so(auto_collation):
    reader = Reader(PythonPipeline(Restarts(), list if auto_collation else None, auto_collation, iterable=True))
    answers = [reader.fetch([0, 1], Laps()) for _ in range(3)]
    assert answers[0] == ([1] if auto_collation else 1) and [type(answer) for answer in answers[1:]] == [StreamEnd, StreamEnd]


def test_the_next_batch_is_that_of_the_stream_whose_turn_it_is():
    streams = Streams(3)
    assert streams.first_number() == 0 and not streams.have_ended
    streams.take(0), streams.take(1)
    assert streams.first_number() == 2
    streams.end(2), streams.take(0)
    assert streams.first_number() == 4 and streams.has_ended(2) and streams.taken == [2, 1, None]
    streams.end(0), streams.end(1)
    assert streams.have_ended and streams.first_number() == 0
