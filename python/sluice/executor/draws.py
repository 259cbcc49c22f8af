"""The random numbers that samples draw, each from a seed of its own, at no more cost than they are worth.

Seeding torch, `random` and numpy for a sample takes seven microseconds, longer than making a cheap one, and most data sets draw from one of them or from
none. So each is seeded once for a batch until a data set is seen to draw from it. Their states tell: if they are unmoved once the samples are made, these are what
they are with seeds of their own. If one has moved, the samples are made once more with those of that generator, and so are all later ones.
A data set that always draws is noticed at the first sample of its first batch, and makes nothing twice.

`torch.initial_seed()` is then the seed of the batch's first sample, for a data set that draws nothing from torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.executor.numpy_state import state_of_numpy
from sluice.executor.seeds import seed_everything, seed_numpy, seed_python, seed_torch

_FEWEST_SAMPLES = 16  # Of a batch: reading the states takes as long as seeding for some five samples.


@dataclass(frozen=True, eq=False)
class _Generator:
    """`state`: equal as long as it has neither drawn nor been seeded anew."""

    seed: Callable[[int], None]
    state: Callable[[], Any]


def _state_of_torch() -> bytes:
    return torch.default_generator.get_state().numpy().tobytes()


_GENERATORS = (_Generator(seed_torch, _state_of_torch), _Generator(seed_python, random.getstate), _Generator(seed_numpy, state_of_numpy))


class Draws:
    """From which generators one data set, in this process, has been seen to draw. Not thread-safe."""

    def __init__(self) -> None:
        self._is_new = True  # It has been asked for no batch.
        self._seen: tuple[_Generator, ...] = ()

    def samples(self, count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
        """Samples 0 to `count` - 1 of a batch, each as after seed_everything(seed_of(place)). Raises whatever `sample_at` raises."""
        if count < _FEWEST_SAMPLES or len(self._seen) == len(_GENERATORS):
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
            unmoved = self._see(before)
            if len(unmoved) == len(before):
                if failure is not None:
                    raise failure
                return all_made
            before = unmoved

    @property
    def _seed(self) -> Callable[[int], None] | None:
        """What seeds the generators that the data set has been seen to draw from."""
        match [generator.seed for generator in self._seen]:
            case []:
                return None
            case [alone]:
                return alone
            case [first, second]:

                def seed_both(seed: int) -> None:
                    first(seed)
                    second(seed)

                return seed_both
        return seed_everything

    def _unseen_states(self) -> dict[_Generator, Any]:
        """Of the generators that the data set has not been seen to draw from."""
        return {generator: generator.state() for generator in _GENERATORS if generator not in self._seen}

    def _see(self, before: dict[_Generator, Any]) -> dict[_Generator, Any]:
        """Notes which of them have moved. What `before` is of those that have not."""
        unmoved = {generator: state for generator, state in before.items() if generator.state() == state}
        self._seen += tuple(before.keys() - unmoved.keys())
        return unmoved


def _seeded(seed: Callable[[int], None] | None, made: list[Any], count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
    """`made`, and the samples that it lacks."""
    if seed is None:
        made.extend(map(sample_at, range(len(made), count)))
        return made
    for place in range(len(made), count):
        seed(seed_of(place))
        made.append(sample_at(place))
    return made
