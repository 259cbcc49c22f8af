"""The random numbers that samples draw, each from a seed of its own, at no more cost than they are worth.

Seeding `random` and numpy for a sample takes longer than making a cheap one, and most data sets draw from neither. So both are seeded once for a
batch until a data set is seen to draw. Their states tell: if they are unmoved once the samples are made, these are what they are with seeds of
their own. If they have moved, the samples are made once more with those, and so are all later ones. A data set that always draws is
noticed at the first sample of its first batch, and makes nothing twice.

torch's generator always gets the sample's seed. That takes little, and `torch.initial_seed()` shows it without a draw.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from sluice.numpy_state import NumpyState
from sluice.seeds import seed_everything, seed_torch
from sluice.signal_handlers import pass_on_of_a_handler

_FEWEST_SAMPLES = 16  # Of a batch: reading the states takes as long as seeding for some five samples.


class Draws:
    """Whether one data set, in this process, has been seen to draw from `random` or numpy. Not thread-safe."""

    def __init__(self) -> None:
        self._seen = False

    def samples(self, count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
        """Samples 0 to `count` - 1 of a batch, each as after seed_everything(seed_of(place)). Raises whatever `sample_at` raises."""
        if self._seen or count < _FEWEST_SAMPLES:
            return self._all_seeded([], count, seed_of, sample_at)
        seed_everything(seed_of(0))
        before = _states()
        made = [sample_at(0)]
        if _states() != before:
            self._seen = True
            return self._all_seeded(made, count, seed_of, sample_at)
        try:
            for place in range(1, count):
                seed_torch(seed_of(place))
                made.append(sample_at(place))
        except Exception as error:
            pass_on_of_a_handler(error)
            if _states() == before:
                raise
        else:
            if _states() == before:
                return made
        self._seen = True
        return self._all_seeded(made[:1], count, seed_of, sample_at)

    @staticmethod
    def _all_seeded(made: list[Any], count: int, seed_of: Callable[[int], int], sample_at: Callable[[int], Any]) -> list[Any]:
        for place in range(len(made), count):
            seed_everything(seed_of(place))
            made.append(sample_at(place))
        return made


def _states() -> tuple[Any, ...]:
    """Of both generators: equal as long as neither has drawn or was seeded anew."""
    numpy = NumpyState.capture()
    if numpy is None or numpy.memory:
        return random.getstate(), numpy and numpy.memory
    _, words, *rest = numpy.told
    return random.getstate(), words.tobytes(), rest
