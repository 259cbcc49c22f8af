"""Samples draw as if each had a seed of its own, whatever seeding is left out."""

import random

import numpy as np
import pytest
import torch
from sluice.executor import numpy_state
from sluice.executor.draws import Draws
from sluice.executor.seeds import seed_everything

COUNT = 32


def seed_of(place):
    return 1000 + 17 * place


def never(place):
    return place


def by_torch(place):
    return torch.rand(1).item(), torch.initial_seed()


def by_python(place):
    return random.random()


def by_numpy(place):
    return np.random.rand()


def normal_by_numpy(place):
    return np.random.normal(), np.random.normal(), np.random.normal()


def rarely(place):
    return random.random() if place == 20 else place


def rarely_by_torch(place):
    return torch.rand(1).item() if place == 20 else place


def by_all_in_turns(place):
    return [lambda: place, random.random, np.random.rand, lambda: torch.rand(1).item()][place % 4]()


def with_torchs_seed(place):
    return torch.manual_seed(place % 3).initial_seed(), torch.rand(1).item()


def with_numpys_seed(place):
    np.random.seed(place % 3)
    return np.random.rand()


def of_another_kind(place):
    return random.gauss(0, 1), torch.randint(100, (1,)).item()


def all_seeded(sample_at, count=COUNT):
    made = []
    for place in range(count):
        seed_everything(seed_of(place))
        made.append(sample_at(place))
    return made


@pytest.mark.parametrize("sample_at", [never, by_torch, by_python, by_numpy, normal_by_numpy, rarely, rarely_by_torch, by_all_in_turns,
                                       with_numpys_seed, with_torchs_seed, of_another_kind])
def test_each_sample_draws_from_its_own_seed(sample_at):
    draws = Draws()
    for _ in range(3):
        np.random.normal()  # Leaves a deviate behind.
        assert draws.samples(COUNT, seed_of, sample_at) == all_seeded(sample_at)


def test_a_numpy_that_does_not_tell_its_memory_is_seen_to_draw(monkeypatch):
    monkeypatch.setattr(numpy_state, "_published", lambda numpy: None)
    for sample_at in (by_numpy, normal_by_numpy, never):
        assert Draws().samples(COUNT, seed_of, sample_at) == all_seeded(sample_at)


def test_samples_that_draw_nothing_are_made_once(calls):
    Draws().samples(COUNT, seed_of, calls.of(never))
    assert calls.places == list(range(COUNT))


@pytest.mark.parametrize("sample_at", [by_torch, by_python, by_numpy, of_another_kind])
def test_samples_that_always_draw_are_made_once(calls, sample_at):
    Draws().samples(COUNT, seed_of, calls.of(sample_at))
    assert calls.places == list(range(COUNT))


@pytest.mark.parametrize("sample_at", [rarely, rarely_by_torch])
def test_samples_that_draw_rarely_are_made_again_in_one_batch_alone(calls, sample_at):
    draws = Draws()
    draws.samples(COUNT, seed_of, calls.of(sample_at))
    assert calls.places == [*range(COUNT), *range(1, COUNT)]
    calls.places.clear()
    draws.samples(COUNT, seed_of, calls.of(sample_at))
    assert calls.places == list(range(COUNT))


@pytest.mark.parametrize("count", [0, 1, 15, 16])
def test_a_batch_may_have_any_size(count):
    assert Draws().samples(count, seed_of, by_python) == all_seeded(by_python, count)


def test_what_a_sample_raises_is_raised(calls):
    def fails(place):
        if place == 9:
            raise LookupError("sample 9")
        return place

    with pytest.raises(LookupError, match="sample 9"):
        Draws().samples(COUNT, seed_of, calls.of(fails))
    assert calls.places == list(range(10))


def test_a_sample_that_raises_by_a_draw_is_asked_again_with_its_own_seed():
    def fails_by_a_draw(place):
        if place > 0 and random.random() < 0.5:
            raise LookupError(f"sample {place}")
        return place

    with pytest.raises(LookupError) as seeded:
        all_seeded(fails_by_a_draw)
    with pytest.raises(LookupError) as drawn:
        Draws().samples(COUNT, seed_of, fails_by_a_draw)
    assert str(drawn.value) == str(seeded.value)


@pytest.mark.parametrize("sample_at, seeded", [(never, 1), (by_torch, COUNT), (by_python, 1)], ids=["nothing", "from torch", "from random"])
def test_torch_is_seeded_for_each_sample_where_they_draw_from_it(monkeypatch, sample_at, seeded):
    seeds = []
    monkeypatch.setattr(torch, "default_generator", _Noting(torch.default_generator, seeds))
    Draws().samples(COUNT, seed_of, sample_at)
    assert len(seeds) == seeded


@pytest.mark.parametrize("sample_at, seeded", [(never, 1), (by_python, COUNT), (by_numpy, 1), (by_torch, 1)], ids=["nothing", "from random", "from numpy", "from torch"])
def test_random_is_seeded_for_each_sample_where_they_draw_from_it(monkeypatch, sample_at, seeded):
    """Four microseconds, most of what seeding costs."""
    seeds, seed = [], random.seed
    monkeypatch.setattr(random, "seed", lambda value: (seeds.append(value), seed(value)))
    Draws().samples(COUNT, seed_of, sample_at)
    assert len(seeds) == seeded


class _Noting:
    def __init__(self, generator, seeds):
        self._generator, self._seeds = generator, seeds

    def manual_seed(self, seed):
        self._seeds.append(seed)
        self._generator.manual_seed(seed)

    def get_state(self):
        return self._generator.get_state()


class Calls:
    def __init__(self):
        self.places = []

    def of(self, sample_at):
        def noted(place):
            self.places.append(place)
            return sample_at(place)

        return noted


@pytest.fixture
def calls():
    return Calls()
