"""Loaders that torch serves have a state, too: with num_workers=0, without a feeder, and where Sluice is off."""

from __future__ import annotations

import json
import pickle

import pytest
import torch
from torch.utils.data import IterableDataset, get_worker_info

from sample_datasets import TORCH_HAS_IN_ORDER, Numbers, Reads, own_state
from sluice.loader.checkpoint import StateError
from sluice.torch import DataLoader
from test_loader import equal


class Split(IterableDataset):
    """The numbers of each worker, and a draw of it. The first of several workers has none."""

    def __iter__(self):
        info = get_worker_info()
        number, workers = (0, 1) if info is None else (info.id, info.num_workers)
        for value in range(number * 100, number * 100 + (20 if workers == 1 else 12 * number)):
            yield torch.tensor([value, torch.randint(1000, ()).item()])


class Remembering(IterableDataset):
    """Says itself how far it is; `made` are the numbers that it has yielded."""

    def __init__(self) -> None:
        self.position, self.made = 0, []

    def __iter__(self):
        start, self.position = self.position, 0
        for self.position in range(start + 1, 13):
            self.made.append(self.position)
            yield self.position
        self.position = 0

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class Reading:
    """An iterator that says how far it is, and from which random numbers it goes on."""

    def __init__(self, made: list) -> None:
        self.position, self.made = 0, made
        self.cannot_be_pickled = lambda: None

    def __iter__(self):
        return self

    def __next__(self):
        if self.position == 12:
            raise StopIteration
        self.position += 1
        self.made.append(self.position)
        return torch.tensor([self.position, torch.randint(1000, ()).item()])

    def state_dict(self):
        return {"position": self.position, "generator": torch.get_rng_state().tolist()}

    def load_state_dict(self, state):
        self.position = state["position"]
        torch.set_rng_state(torch.tensor(state["generator"], dtype=torch.uint8))


class ReadByStatefulIterators(IterableDataset):
    def __init__(self) -> None:
        self.made: list = []

    def __iter__(self):
        return Reading(self.made)


class OwnIterator(Remembering):
    """Is its own iterator; a new pass begins at its start."""

    def __iter__(self):
        self.position = 0
        return self

    def __next__(self):
        if self.position == 12:
            raise StopIteration
        self.position += 1
        self.made.append(self.position)
        return self.position


class Drawing(Numbers):
    """Draws from torch's generator, whose state it keeps."""

    def __getitem__(self, index):
        return index, torch.randint(1000, ()).item()

    def state_dict(self):
        return {"generator": torch.get_rng_state().tolist()}

    def load_state_dict(self, state):
        torch.set_rng_state(torch.tensor(state["generator"], dtype=torch.uint8))


class Tallying(Numbers):
    """Returns how many samples were read before, which its state remembers."""

    def __init__(self) -> None:
        super().__init__(20)
        self.read = 0

    def __getitem__(self, index):
        self.read += 1
        return index, self.read

    def state_dict(self):
        return {"read": self.read}

    def load_state_dict(self, state):
        self.read = state["read"]


CASES = {
    "map-style here": (lambda: Numbers(21), dict(batch_size=4, shuffle=True)),
    "map-style here, by single samples": (lambda: Numbers(9), dict(batch_size=None)),
    "map-style here, with state": (Tallying, dict(batch_size=3, shuffle=True)),
    "map-style in workers": (lambda: Numbers(41), dict(batch_size=4, shuffle=True, num_workers=3)),
    "map-style in workers, by single samples": (lambda: Numbers(9), dict(batch_size=None, num_workers=2)),
    "map-style in persistent workers": (lambda: Numbers(41), dict(batch_size=4, num_workers=3, persistent_workers=True)),
    "map-style in workers with state": (lambda: Reads(41), dict(batch_size=4, shuffle=True, num_workers=3, worker_init_fn=own_state)),
    "iterable here": (Split, dict(batch_size=3)),
    "iterable here, with state": (Remembering, dict(batch_size=2)),
    "iterable in workers": (Split, dict(batch_size=3, num_workers=3)),
    "iterable in workers, by single samples": (Split, dict(batch_size=None, num_workers=2)),
    "iterable in persistent workers": (Split, dict(batch_size=3, num_workers=2, persistent_workers=True)),
}


def plain(batches, with_draws):
    """Batches that can be compared; a loader in this process draws from generators that the training script restores."""
    found = [[part.tolist() for part in (batch if isinstance(batch, (list, tuple)) else [batch])] for batch in batches]
    return found if with_draws else [batch[0] for batch in found]


@pytest.mark.parametrize("consumed", [0, 1, 3])
@pytest.mark.parametrize("case", CASES)
def test_resumes_in_the_middle_of_an_epoch(case, consumed):
    make, arguments = CASES[case]
    torch.manual_seed(5)
    loader = DataLoader(make(), **arguments)
    assert loader.state_dict()["batches"] == 0
    batches = iter(loader)
    for _ in range(consumed):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    after = torch.get_rng_state()
    rest = list(batches)
    assert rest and state["batches"] == consumed

    torch.manual_seed(99)
    resumed = DataLoader(make(), **arguments)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    torch.set_rng_state(after)
    again = list(resumed)
    with_draws = type(loader.dataset) is not Numbers  # These draw from numpy's generator, too.
    assert plain(rest, with_draws) == plain(again, with_draws)


def test_a_sampler_that_had_not_been_asked_draws_what_it_would_have_drawn():
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True)
    batches = iter(loader)
    state = loader.state_dict()
    expected = plain(batches, False)
    torch.manual_seed(99)
    loader.load_state_dict(state)
    assert plain(loader, False) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_end_of_an_epoch_resumes_with_the_next(case):
    make, arguments = CASES[case]
    loader = DataLoader(make(), **arguments)
    first = len(list(loader))
    state = loader.state_dict()
    assert (state["epoch"], state["batches"]) == (1, 0)
    resumed = DataLoader(make(), **arguments)
    resumed.load_state_dict(state)
    batches = iter(resumed)
    assert resumed.state_dict()["epoch"] == 1
    assert len(list(batches)) == first
    assert len(list(resumed)) == first and resumed.state_dict()["epoch"] == 3


def test_a_data_set_with_state_is_not_read_again():
    loader = DataLoader(Remembering(), batch_size=2)
    batches = iter(loader)
    next(batches), next(batches)
    again = Remembering()
    resumed = DataLoader(again, batch_size=2)
    resumed.load_state_dict(loader.state_dict())
    assert [batch.tolist() for batch in resumed] == [[5, 6], [7, 8], [9, 10], [11, 12]]
    assert again.made[0] == 5


@pytest.mark.parametrize("make", [ReadByStatefulIterators, OwnIterator])
def test_an_iterator_with_state_is_not_read_again(make):
    loader = DataLoader(make(), batch_size=2)
    batches = iter(loader)
    next(batches), next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    assert "data" not in state
    assert pickle.loads(pickle.dumps(loader)).state_dict()["batches"] == 2  # A copy knows no iterator.
    expected = plain(batches, True)
    torch.manual_seed(99)
    again = make()
    resumed = DataLoader(again, batch_size=2)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert plain(resumed, True) == expected
    assert again.made[0] == 5
    assert resumed.state_dict()["batches"] == 0


OTHERS = {"iterator has no load_state_dict": lambda: DataLoader(Split(), batch_size=2),
          "needs num_workers=0 and an iterable": lambda: DataLoader(Split(), batch_size=2, num_workers=2)}


@pytest.mark.parametrize("message", OTHERS)
def test_the_state_of_an_iterator_needs_one_of_its_kind(message):
    loader = DataLoader(ReadByStatefulIterators(), batch_size=2)
    batches = iter(loader)
    next(batches)
    other = OTHERS[message]()
    with pytest.raises(StateError, match=message):
        other.load_state_dict(loader.state_dict())
        iter(other)


@pytest.mark.parametrize("begun", [False, True])
def test_a_data_set_that_puts_the_generator_back_draws_what_it_would_have_drawn(begun):
    loader = DataLoader(Drawing(10), batch_size=2, shuffle=True)
    batches = iter(loader) if begun else loader
    state = json.loads(json.dumps(loader.state_dict()))
    expected = list(batches)
    torch.rand(3)
    loader.load_state_dict(state)
    assert equal(list(loader), expected)


def test_persistent_workers_go_back_to_a_state_of_their_own_loader():
    loader = DataLoader(Split(), batch_size=3, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    state = loader.state_dict()
    expected = plain(batches, True)
    loader.load_state_dict(state)
    assert plain(loader, True) == expected
    next(iter(loader))
    with pytest.raises(StateError, match="gone on from earlier epochs"):
        loader.load_state_dict(loader.state_dict())
        iter(loader)


def test_another_number_of_workers_is_refused_for_iterable_data():
    loader = DataLoader(Split(), num_workers=2)
    next(iter(loader))
    other = DataLoader(Split(), num_workers=1)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="divided by num_workers=2, this one by num_workers=1"):
        iter(other)


class UpTo(IterableDataset):
    def __init__(self, count) -> None:
        self.count = count

    def __iter__(self):
        return iter(range(self.count))


SHORTER = {
    "a sampler": (lambda count: DataLoader(Numbers(10), batch_size=1, sampler=range(count)), "sampler ends before batch 5"),
    "a sampler, in workers": (lambda count: DataLoader(Numbers(10), batch_size=1, sampler=range(count), num_workers=2), "sampler ends before batch 5"),
    "iterable data": (lambda count: DataLoader(UpTo(count), batch_size=1), "data set ends before batch 5"),
}


@pytest.mark.parametrize("case", SHORTER)
def test_data_that_has_become_shorter_is_noticed(case):
    make, message = SHORTER[case]
    loader = make(10)
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    resumed = make(4)
    resumed.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match=message):
        iter(resumed)


def test_the_data_sets_own_state_is_not_lost_in_silence(make_fake):
    make_fake()
    state = DataLoader(Tallying()).state_dict()
    for other in (DataLoader(Tallying(), num_workers=1), DataLoader(Numbers(20))):
        with pytest.raises(StateError, match="holds the data set's own"):
            other.load_state_dict(state)


@pytest.mark.skipif(not TORCH_HAS_IN_ORDER, reason="this torch has no in_order")
def test_no_state_without_an_order():
    with pytest.raises(RuntimeError, match="another order"):
        DataLoader(Split(), num_workers=2, in_order=False).state_dict()


def test_snapshot_every_n_steps_is_accepted():
    loader = DataLoader(Numbers(8), 4, snapshot_every_n_steps=10)
    next(iter(loader))
    assert loader.state_dict()["batches"] == 1
