"""The random numbers that samples draw, each from a seed of its own, at no more cost than they are worth.

Seeding torch, `random` and numpy for a sample takes longer than making a cheap one, and most data sets draw from one of them or from none. So each is
seeded once for a batch until a data set is seen to draw from it. Their states tell: if they are unmoved once the samples are made, these are what
they are with seeds of their own. If one has moved, the samples are made once more with those of that generator, and so are all later ones.
A data set that always draws is noticed at the first sample of its first batch, and makes nothing twice.

`torch.initial_seed()` is then the seed of the batch's first sample, for a data set that draws nothing from torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from sluice.numpy_state import state_of_numpy
from sluice.seeds import seed_everything, seed_others, seed_torch
from sluice.signal_handlers import pass_on_of_a_handler

_FEWEST_SAMPLES = 16  # Of a batch: reading the states takes as long as seeding for some five samples.


class Draws:
    """From which generators one data set, in this process, has been seen to draw. Not thread-safe."""

    def __init__(self) -> None:
        self._is_new = True  # It has been asked for no batch.
        self._from_torch = False
        self._from_others = False  # `random` and numpy, which are seeded together: a data set that draws from one does from the other.

    def samples(self, count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
        """Samples 0 to `count` - 1 of a batch, each as after seed_everything(seed_of(place)). Raises whatever `sample_at` raises."""
        if count < _FEWEST_SAMPLES or (self._from_torch and self._from_others):
            return _seeded(seed_everything, [], count, seed_of, sample_at)
        seed_everything(seed_of(0))
        before = self._unseen_states()
        made = [sample_at(0)]
        if self._is_new:
            self._is_new, before = False, self._see(before)
        while True:
            all_made = made.copy()
            failure: Exception | None = None
            try:
                _seeded(self._seed, all_made, count, seed_of, sample_at)
            except Exception as error:
                pass_on_of_a_handler(error)
                failure = error
            seen = self._see(before)
            if seen == before:
                if failure is not None:
                    raise failure
                return all_made
            before = seen

    @property
    def _seed(self) -> Callable[[int], None] | None:
        """What seeds the generators that the data set has been seen to draw from."""
        if self._from_torch:
            return seed_everything if self._from_others else seed_torch
        return seed_others if self._from_others else None

    def _unseen_states(self) -> tuple[Any, Any]:
        """Of the generators that the data set has not been seen to draw from; None for the others."""
        return None if self._from_torch else _state_of_torch(), None if self._from_others else _state_of_others()

    def _see(self, before: tuple[Any, Any]) -> tuple[Any, Any]:
        """Notes which of them have moved. What `before` is of those that have not."""
        now = self._unseen_states()
        self._from_torch = self._from_torch or now[0] != before[0]
        self._from_others = self._from_others or now[1] != before[1]
        return None if self._from_torch else before[0], None if self._from_others else before[1]


def _seeded(seed: Callable[[int], None] | None, made: list[Any], count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
    """`made`, and the samples that it lacks."""
    if seed is None:
        made.extend(map(sample_at, range(len(made), count)))
        return made
    for place in range(len(made), count):
        seed(seed_of(place))
        made.append(sample_at(place))
    return made


def _state_of_torch() -> bytes:
    return torch.default_generator.get_state().numpy().tobytes()


def _state_of_others() -> tuple[Any, ...]:
    """Equal as long as neither has drawn or was seeded anew."""
    return random.getstate(), state_of_numpy()
