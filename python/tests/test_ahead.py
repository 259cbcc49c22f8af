"""The first batches of an epoch are made before it begins, and nothing that a loop sees depends on that."""

from __future__ import annotations

import copy
import functools
import itertools
import pickle
from collections.abc import Callable, Iterable

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, DistributedSampler

from conftest import eventually
from sample_datasets import Numbers
from sluice.loader import remaining
from sluice.loader.ahead import Foresight
from sluice.torch import DataLoader
from test_loader import equal, indices_of
from test_pace import SAMPLERS, own
from test_prediction import KNOWN

EPOCHS = 5
ROOMY = dict(slots=400, slot_bytes=4096)  # For tests that keep every batch.
BEGUN, DIFFERENT, UNEXPECTED = "begun ahead", "different", "unexpected"

@pytest.fixture
def beginnings(monkeypatch):
    """How each epoch of Sluice's loaders has begun."""
    seen = []
    fulfil = Foresight.fulfil

    def watched(self, *arguments):
        expected = self._next is not None
        taken = fulfil(self, *arguments)
        seen.append(BEGUN if taken is not None else DIFFERENT if expected else UNEXPECTED)
        return taken

    monkeypatch.setattr(Foresight, "fulfil", watched)
    return seen


@pytest.fixture(autouse=True)
def nothing_told():
    remaining.tell(None)
    yield
    remaining.tell(None)


Script = Callable[[type], Iterable]  # Of a class of loaders: yields the batches of each epoch.


def run(script: Script, loader_class: type) -> tuple[list, torch.Tensor]:
    """The batches of each epoch, and random numbers after it."""
    torch.manual_seed(4)
    return [list(epoch) for epoch in script(loader_class)], torch.rand(3)


@functools.cache
def by_torch(script: Script) -> tuple[list, torch.Tensor]:
    """The order of each epoch, and random numbers after it."""
    epochs, drawn = run(script, TorchLoader)
    return [indices_of(epoch) for epoch in epochs], drawn


def three_ways(monkeypatch, script: Script) -> None:
    """Runs it with torch's loader, without and with looking ahead: the same order in all, the same batches in both of Sluice's, and the same
    random numbers after it."""
    seen = []
    for ahead in ("off", "on"):
        monkeypatch.setenv("SLUICE_AHEAD", ahead)
        seen.append(run(script, DataLoader))
    order, drawn = by_torch(script)
    assert order == [indices_of(epoch) for epoch in seen[0][0]]
    assert equal(seen[0], seen[1]) and torch.equal(drawn, seen[0][1])


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("case", KNOWN)
def test_every_epoch_after_the_first_begins_ahead(make_fake, monkeypatch, beginnings, case, persistent):
    make_fake(window_batches=6, **ROOMY)

    def script(loader_class):
        loader = loader_class(Numbers(), num_workers=2, persistent_workers=persistent, **KNOWN[case]())
        for epoch in range(EPOCHS):
            if isinstance(loader.sampler, DistributedSampler):
                loader.sampler.set_epoch(epoch)
            yield loader

    three_ways(monkeypatch, script)
    assert beginnings == [UNEXPECTED] + [BEGUN] * (EPOCHS - 1)


def test_the_real_feeder_is_asked_ahead(real_feeder, monkeypatch, beginnings):
    def script(loader_class):
        yield from [loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)] * EPOCHS

    three_ways(monkeypatch, script)
    assert beginnings == [UNEXPECTED] + [BEGUN] * (EPOCHS - 1)


def with_an_evaluation(loader_class):
    loader, evaluation = (loader_class(Numbers(count), num_workers=2, batch_size=4, shuffle=count == 37) for count in (37, 9))
    for _ in range(EPOCHS):
        yield loader
        yield evaluation


def with_draws_between_epochs(loader_class):
    loader = loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)
    for epoch in range(EPOCHS):
        yield loader
        torch.rand(1 + epoch)


def with_draws_in_the_loop(loader_class):
    loader = loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)
    for epoch in range(EPOCHS):
        batches = []
        for batch in loader:
            torch.randn(5 + epoch)
            batches.append(batch)
        yield batches


def with_a_new_seed_each_epoch(loader_class):
    loader = loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)
    for epoch in range(EPOCHS):
        torch.manual_seed(epoch)
        yield loader


def with_a_changing_attribute(loader_class):
    dataset = Numbers()
    loader = loader_class(dataset, num_workers=2, batch_size=4, sampler=range(9))
    for epoch in range(EPOCHS):
        dataset.count = 9 + epoch
        yield loader


def that_never_sets_the_epoch(loader_class):
    yield from [loader_class(Numbers(), num_workers=2, batch_size=4, sampler=DistributedSampler(range(37), 2, 0))] * EPOCHS


def that_breaks(loader_class):
    loader = loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)
    for taken in (1, 9, 10, 8, 3):
        yield itertools.islice(loader, taken)


def with_two_iterators(loader_class):
    loader = loader_class(Numbers(), num_workers=2, batch_size=4, shuffle=True)
    for _ in range(EPOCHS):
        for pair in zip(loader, loader, strict=True):
            yield pair


# Of how many epochs the beginning was expected, and of how many it was so.
SCRIPTS = {
    with_an_evaluation: (2 * EPOCHS - 2, 2 * EPOCHS - 4),  # learnt after one
    with_draws_between_epochs: (3, 0),                     # and then given up
    with_draws_in_the_loop: (3, 0),
    with_a_new_seed_each_epoch: (3, 0),
    with_a_changing_attribute: (3, 0),
    that_never_sets_the_epoch: (EPOCHS - 1, EPOCHS - 2),
    that_breaks: (4, 4),
    with_two_iterators: None,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_whatever_a_script_does_between_epochs_it_gets_the_same(make_fake, monkeypatch, beginnings, script):
    make_fake(window_batches=12, **ROOMY)
    three_ways(monkeypatch, script)
    if SCRIPTS[script] is not None:
        assert (len(beginnings) - beginnings.count(UNEXPECTED), beginnings.count(BEGUN)) == SCRIPTS[script]


FAULTS = {
    "twice": dict(send_twice=True),
    "newest first": dict(newest_first=True),
    "lost again and again": dict(drop_after=7, drops=6),
    "answers for closed streams": dict(keep_answering_closed=True),
    "executors lost": dict(lose_executors=9),
    "refused": dict(refuse_all=True),
}


@pytest.mark.parametrize("script", [with_an_evaluation, with_draws_between_epochs, that_breaks], ids=lambda script: script.__name__)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_feeder_with_faults_gives_each_batch_once(make_fake, monkeypatch, fault, script):
    make_fake(window_batches=5, **FAULTS[fault], **ROOMY)
    three_ways(monkeypatch, script)


def test_a_resumed_loop_gets_the_same(make_fake, monkeypatch, beginnings):
    make_fake(window_batches=12, **ROOMY)

    def script(ahead: str) -> list:
        monkeypatch.setenv("SLUICE_AHEAD", ahead)
        torch.manual_seed(4)
        loader = DataLoader(Numbers(), num_workers=2, batch_size=4, shuffle=True, generator=own())
        epochs = [list(loader)]
        batches = iter(loader)
        epochs.append([next(batches) for _ in range(7)])
        state = loader.state_dict()
        epochs += [list(batches), list(loader)]
        loader.load_state_dict(state)
        return [*epochs, list(loader), list(loader), list(loader)]

    without, with_ahead = script("off"), script("on")
    assert equal(without, with_ahead)
    assert beginnings == [UNEXPECTED, BEGUN, BEGUN, DIFFERENT, BEGUN, BEGUN]


def test_both_epochs_together_stay_within_the_window(make_fake):
    fake = make_fake(window_batches=6)
    loader = DataLoader(Numbers(16), batch_size=4, num_workers=2)
    batches = iter(loader)
    eventually(lambda: batches._stream.limit_batches == 6 and batches._stream._asked.ready_batches == 4)
    batches._fill()
    eventually(lambda: [request[0] for request in fake.ask()["requests"]] == [0, 1, 2, 3, 0, 1])
    next(batches)
    eventually(lambda: [request[0] for request in fake.ask()["requests"]] == [0, 1, 2, 3, 0, 1, 2])


def test_an_epoch_that_was_expected_begins_without_a_message(make_fake):
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, shuffle=True)
    list(loader)
    eventually(lambda: len(fake.ask()["requests"]) == 14)
    before = fake.ask()
    batches = iter(loader)
    eventually(lambda: batches._stream._asked.ready_batches == 4)
    after = fake.ask()
    assert before["opens"] == after["opens"] == 2 and before["requests"] == after["requests"]


def test_what_was_made_in_vain_is_at_most_a_window_and_goes_with_the_loader(make_fake):
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    list(loader)
    eventually(lambda: len(fake.ask()["held"]) == 4)
    del loader
    eventually(lambda: len(fake.ask()["closed"]) == 2 and not fake.ask()["held"])


@pytest.mark.parametrize("announced, opened", [({"epochs": 2}, 2), ({"batches": 20}, 2), ({"batches": 11}, 3), ({"epochs": 3}, 3)])
def test_an_epoch_that_will_not_come_is_not_expected(make_fake, announced, opened):
    fake = make_fake(window_batches=6)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    loader.announce(**announced)
    for _ in range(2):
        list(loader)
    eventually(lambda: len(fake.ask()["closed"]) == 2)
    assert fake.ask()["opens"] == opened


def test_of_an_announced_rest_no_more_is_made(make_fake):
    fake = make_fake(window_batches=6)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    loader.announce(batches=12)
    list(loader)
    eventually(lambda: fake.ask()["closed"])
    assert len(fake.ask()["requests"]) == 12


def test_only_the_epoch_that_runs_is_reported(make_fake):
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    list(loader)
    del loader
    eventually(lambda: len(fake.ask()["closed"]) == 2)
    assert len(fake.ask()["progress"]) == 1


def test_an_epoch_that_waits_is_not_reported_beside_another_loaders(make_fake, monkeypatch):
    monkeypatch.setattr("sluice.feeder.connection._PROGRESS_INTERVAL_SECONDS", 0.02)
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    list(loader)
    other = iter(DataLoader(Numbers(), batch_size=4, num_workers=2))
    next(other)
    eventually(lambda: any(report["batches"] == 1 for report in fake.ask()["progress"].values()))
    assert fake.ask()["opens"] == 3 and len(fake.ask()["progress"]) == 2


def test_the_epoch_after_is_reported_as_its_own(make_fake):
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    for _ in range(2):
        list(loader)
    eventually(lambda: len(fake.ask()["closed"]) == 2)
    reports = list(fake.ask()["progress"].values())
    assert [(report["epoch"], report["batches"], report["samples"]) for report in reports] == [(0, 10, 37), (1, 10, 37)]


def test_batches_made_ahead_give_way_when_another_loader_needs_the_memory(make_fake, beginnings):
    fake = make_fake(window_batches=4, slots=9)
    loader, other = (DataLoader(Numbers(), batch_size=4, num_workers=2, generator=own()) for _ in range(2))
    indices_of(loader)
    eventually(lambda: len(fake.ask()["held"]) == 4)
    kept = list(other)
    assert indices_of(kept)[-1] == [36] and indices_of(loader)[-1] == [36]
    assert beginnings == [UNEXPECTED, UNEXPECTED, DIFFERENT]


def test_the_limit_of_another_loader_does_not_shrink(make_fake):
    make_fake(window_batches=6)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    list(loader)
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=2))
    eventually(lambda: batches._stream.limit_batches == 6)


def test_a_sampler_of_the_user_is_not_drawn_ahead(make_fake, beginnings):
    make_fake(window_batches=6)
    loader = DataLoader(Numbers(), num_workers=2, **SAMPLERS["of the user"]())
    for _ in range(3):
        list(loader)
    assert beginnings == [UNEXPECTED] * 3 and loader.sampler.position == 3 * 40


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
def test_copies_of_a_loader_get_the_same(make_fake, copied):
    make_fake(window_batches=6)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    whole = indices_of(loader)
    another = copied(loader)
    assert indices_of(another) == indices_of(loader) == indices_of(another) == whole


def test_of_a_data_set_that_reads_nothing_is_made_ahead(make_fake, beginnings):
    fake = make_fake(window_batches=6, reads=True)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    for _ in range(3):
        list(loader)
    eventually(lambda: len(fake.ask()["closed"]) == 3)
    assert fake.ask()["opens"] == 3 and beginnings == [UNEXPECTED] * 3


def test_what_was_read_before_its_epoch_is_made_again(make_fake, beginnings):
    """The first epoch reads nothing, the beginning of the second one does."""
    fake = make_fake(window_batches=4)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    batches = iter(loader)
    whole = indices_of(next(batches) for _ in range(6))
    eventually(lambda: batches._stream._asked.ready_batches == 4)
    fake.set(reads=True)
    whole += indices_of(batches)
    eventually(lambda: len(fake.ask()["requests"]) == 14)
    eventually(lambda: not fake.ask()["held"])
    assert indices_of(loader) == whole and beginnings == [UNEXPECTED, BEGUN]
    assert [request[0] for request in fake.ask()["requests"]].count(0) == 3
