"""state_dict() counts what the loop has received; resuming is exact for any number of workers."""

from __future__ import annotations

import base64
import json
import pickle

import pytest
import torch
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler

from sample_datasets import TORCH_HAS_IN_ORDER, Numbers
from sluice.feeder.choice import NoFeeder
from sluice.loader.checkpoint import StateError
from sluice.torch import DataLoader
from test_loader import equal, indices_of

LOADERS = {
    "shuffled by the default generator": lambda **kw: DataLoader(Numbers(), batch_size=4, shuffle=True, **kw),
    "shuffled by its own generator": lambda **kw: DataLoader(
        Numbers(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(9), **kw),
    "in order": lambda **kw: DataLoader(Numbers(), batch_size=4, **kw),
    "sampler with a generator of its own": lambda **kw: DataLoader(
        Numbers(), batch_size=4, sampler=RandomSampler(range(37), True, 90, torch.Generator().manual_seed(2)), **kw),
    "distributed": lambda **kw: DataLoader(Numbers(), batch_size=4, sampler=DistributedSampler(range(37), 2, 1), **kw),
    "persistent": lambda **kw: DataLoader(Numbers(), batch_size=4, shuffle=True, persistent_workers=True, **kw),
}
if TORCH_HAS_IN_ORDER:
    LOADERS["out of order"] = lambda **kw: DataLoader(Numbers(), batch_size=4, shuffle=True, in_order=False, **kw)


@pytest.fixture
def fake(make_fake):
    return make_fake()


def sorted_batches(batches):
    return sorted(batches, key=lambda batch: batch[0].tolist())


@pytest.mark.parametrize("consumed", [0, 1, 4])
@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("case", LOADERS)
def test_resumes_in_the_middle_of_an_epoch(fake, case, epoch, consumed):
    make = LOADERS[case]
    torch.manual_seed(31)
    loader = make(num_workers=2)
    for _ in range(epoch):
        list(loader)
    batches = iter(loader)
    for _ in range(consumed):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    rest = list(batches)
    assert (state["epoch"], state["batches"]) == (epoch, consumed)

    torch.manual_seed(99)
    resumed = make(num_workers=3)
    resumed.load_state_dict(state)
    assert resumed.state_dict()["batches"] == consumed
    before = torch.get_rng_state()
    again = list(resumed)
    assert torch.equal(before, torch.get_rng_state())
    if case == "out of order":
        rest, again = sorted_batches(rest), sorted_batches(again)
    assert equal(rest, again)


@pytest.mark.parametrize("case", LOADERS)
def test_the_epochs_after_a_resumed_one_follow(fake, case):
    """Exact where the loader's own generators decide; those of the process are the script's to restore, as here."""
    make = LOADERS[case]
    torch.manual_seed(31)
    loader = make(num_workers=2)
    batches = iter(loader)
    next(batches)
    state, generator = loader.state_dict(), torch.get_rng_state()
    del batches
    expected = []
    for run, workers in ((loader, None), (make(num_workers=5), 5)):
        torch.set_rng_state(generator)
        run.load_state_dict(state)
        list(run)
        following = list(run)
        expected.append(sorted_batches(following))
    assert equal(*expected)


@pytest.mark.parametrize("case", LOADERS)
def test_the_end_of_an_epoch_resumes_with_the_next(fake, case):
    make = LOADERS[case]
    torch.manual_seed(31)
    loader = make(num_workers=2)
    list(loader)
    state, generator = loader.state_dict(), torch.get_rng_state()
    assert (state["epoch"], state["batches"]) == (1, 0)
    expected = sorted_batches(list(loader))
    resumed = make(num_workers=4)
    resumed.load_state_dict(state)
    torch.set_rng_state(generator)
    got = sorted_batches(list(resumed))
    assert equal(expected, got)


def test_all_batches_received_but_the_epoch_not_ended_resumes_with_nothing(fake):
    loader = DataLoader(Numbers(8), batch_size=4, num_workers=2)
    batches = iter(loader)
    next(batches), next(batches)
    resumed = DataLoader(Numbers(8), batch_size=4, num_workers=2)
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == []
    assert indices_of(resumed) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_before_the_first_epoch(fake):
    loader = DataLoader(Numbers(), num_workers=1)
    assert loader.state_dict()["batches"] == 0
    loader.load_state_dict(loader.state_dict())
    assert len(list(loader)) == 37


def test_prefetched_batches_do_not_count(fake):
    loader = DataLoader(Numbers(), batch_size=1, num_workers=4, prefetch_factor=8)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    assert loader.state_dict()["batches"] == 3


REFUSED = {
    "another batch size": ({"batch_size": 8}, "batch_size"),
    "another drop_last": ({"drop_last": True}, "drop_last"),
    "another dataset": ({"dataset_length": 38}, "dataset_length"),
    "another kind of sampler": ({"sampler": "BatchSampler of RandomSampler"}, "sampler"),
    "another number of ranks": ({"world_size": 2}, "world_size"),
    "another library's state": ({"sluice": None}, "not a state"),
    "a state of version 1": ({"sluice": 1}, "older Sluice and holds pickles"),
    "a generator too many": ({"generators": {"generator0": ""}}, "generators"),
    "a count below zero": ({"epoch": -1}, "epoch is not a count"),
    "no generators": ({"generators": None}, "generators cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_states_that_do_not_fit_are_refused(case):
    change, message = REFUSED[case]
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    with pytest.raises(StateError, match=message):
        loader.load_state_dict({**loader.state_dict(), **change})


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, path) -> None:
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("field", ["random", "numpy", "torch", "generator0"])
def test_a_crafted_state_runs_no_code(fake, tmp_path, field):
    loader = LOADERS["shuffled by its own generator"](num_workers=2)
    next(iter(loader))
    state = loader.state_dict()
    state["generators"][field] = base64.b64encode(pickle.dumps(Bomb(tmp_path / "crater"))).decode()
    with pytest.raises(StateError, match="cannot be read"):
        loader.load_state_dict(state)
        next(iter(loader))
    assert not (tmp_path / "crater").exists()


def of_rank(rank, ranks, **settings):
    sampler = DistributedSampler(range(37), ranks, rank, seed=5, drop_last=settings.get("drop_last", False))
    return DataLoader(Numbers(), batch_size=4, sampler=sampler, num_workers=2, **settings)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("before, consumed, now", [(2, 1, 1), (2, 2, 1), (1, 2, 2), (1, 6, 2), (4, 1, 2), (2, 2, 4), (3, 2, 2)])
def test_another_number_of_ranks_goes_on_behind_the_samples_that_were_seen(fake, before, consumed, now, drop_last):
    seen, states = [], []
    for rank in range(before):
        loader = of_rank(rank, before, drop_last=drop_last)
        loader.sampler.set_epoch(3)
        batches = iter(loader)
        seen += sum(indices_of(next(batches) for _ in range(consumed)), [])
        states.append(json.loads(json.dumps(loader.state_dict())))
    alone = DistributedSampler(range(37), 1, 0, seed=5)
    alone.set_epoch(3)
    order = list(alone)
    assert sorted(seen) == sorted(order[: len(seen)])
    dealt = order[: 37 // now * now] if drop_last else (order + order)[: -(-37 // now) * now]
    for rank in range(now):
        resumed = of_rank(rank, now, drop_last=drop_last)
        resumed.load_state_dict(states[rank % before])
        assert resumed.state_dict()["batches"] == consumed * before // now
        want = dealt[len(seen) + rank :: now]
        assert sum(indices_of(resumed), []) == want[: len(want) // 4 * 4 if drop_last else None]


@pytest.mark.parametrize("before, now", [(2, 1), (1, 2), (2, 4), (5, 3)])
def test_another_number_of_ranks_has_nothing_left_of_an_epoch_that_is_over(fake, before, now):
    loader = of_rank(0, before)
    batches = iter(loader)
    for _ in range(len(loader)):
        next(batches)
    resumed = of_rank(0, now)
    resumed.load_state_dict(loader.state_dict())
    assert list(resumed) == []


def test_a_state_of_two_ranks_is_refused_by_four_in_the_middle_of_their_batch(fake):
    two = of_rank(1, 2)
    next(iter(two))
    with pytest.raises(StateError, match="1 batches of each of 2 ranks are no whole number of batches of each of 4; a state of a multiple of 2 batches is"):
        of_rank(1, 4).load_state_dict(two.state_dict())


def test_another_number_of_ranks_is_refused_where_the_order_depends_on_it(fake):
    class Own(DistributedSampler):
        pass

    def loader(ranks):
        return DataLoader(Numbers(), batch_size=4, sampler=Own(range(37), ranks, 0), num_workers=2)

    with pytest.raises(StateError, match="world_size=2, this loader has 1"):
        loader(1).load_state_dict(loader(2).state_dict())


def test_a_sampler_that_has_become_shorter_is_noticed(fake):
    loader = DataLoader(Numbers(40), batch_size=4, num_workers=2)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    shorter = DataLoader(Numbers(40), batch_size=4, num_workers=2, sampler=SequentialSampler(range(8)))
    shorter.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="the sampler ends before batch 5"):
        iter(shorter)


def test_a_state_of_executors_is_resumed_by_torchs_workers(fake, monkeypatch):
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    expected = [batch[0].tolist() for batch in batches]
    monkeypatch.setattr("sluice.torch.shared_connection", no_feeder)
    loader.load_state_dict(state)
    assert [batch[0].tolist() for batch in loader] == expected


def no_feeder(settings):
    raise NoFeeder("there is none")


@pytest.mark.skipif(not TORCH_HAS_IN_ORDER, reason="this torch has no in_order")
def test_a_state_is_not_resumed_by_torchs_workers_in_any_order(monkeypatch):
    monkeypatch.setattr("sluice.torch.shared_connection", no_feeder)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, in_order=False)
    loader.load_state_dict(loader.state_dict())
    with pytest.raises(RuntimeError, match="cannot be resumed"):
        iter(loader)
