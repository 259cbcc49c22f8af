"""What a loader's next epoch will ask for, drawn from copies of its generators: no state of the process changes.

Only the draws of torch's own samplers are known. Between two epochs a script often does the same each time: it calls set_epoch,
or an evaluation draws its own base seed. Such a habit is learnt from one epoch and expected of the next.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler

from sluice.executor.generators import named_generators

_DRAW_NOTHING = (SequentialSampler, list, tuple, range)
_DRAW_FROM_THEIR_GENERATOR = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler)
_MOST_WORDS = 256


class _NotKnown(Exception):
    """A sampler whose draws cannot be predicted."""


@dataclass(frozen=True)
class Habit:
    """What a script does from one moment to the beginning of the next epoch: the 32-bit words that it draws from each generator,
    and by how much it changes the sampler's epoch."""

    words: tuple[int, ...] = ()
    epoch_step: int = 1


@dataclass(frozen=True)
class Moment:
    """All that decides the order of an epoch that would begin now. The first generator is torch's default one."""

    generators: list[torch.Generator]
    states: list[torch.Tensor]
    sampler_epoch: int

    @staticmethod
    def of(loader: Any) -> Moment:
        default = torch.default_generator
        generators = [default, *(own for own in named_generators(loader).values() if own is not default)]
        sampler = _innermost(loader._index_sampler)
        epoch = sampler.epoch if type(sampler) is DistributedSampler else 0
        return Moment(generators, [generator.get_state() for generator in generators], epoch)

    @property
    def can_be_copied(self) -> bool:
        return all(generator.device.type == "cpu" for generator in self.generators)

    def habit_until(self, later: Moment) -> Habit:
        """As far as it can be told: where a generator has gone too far, nothing is expected of it."""
        words = tuple(_words_between(*states) for states in zip(self.states, later.states, strict=False))
        return Habit(words, later.sampler_epoch - self.sampler_epoch)


@dataclass(frozen=True)
class Forecast:
    """`batches` are what the sampler will yield. Iterating over them may raise whatever the sampler raises."""

    base_seed: int
    batches: Iterator[Any]
    order: dict | None = None  # As `order_from` gives it.


def forecast(loader: Any, moment: Moment, habit: Habit, base_seed: int | None) -> Forecast | None:
    """The next epoch of `loader`. `base_seed`: that of the persistent iterator; None if one will be drawn. None if the draws of the sampler are
    not known."""
    if not moment.can_be_copied:
        return None
    copies = _Copies(moment, habit)
    if base_seed is None:
        base_seed = _draw_seed(copies.of(loader.generator))
    try:
        sampler = _copied(loader._index_sampler, copies, habit)
    except _NotKnown:
        return None
    return Forecast(base_seed, iter(sampler), _order_of(_innermost(loader._index_sampler), _innermost(sampler)))


def order_from(loader: Any, moment: Moment, draws_base_seed: bool) -> dict | None:
    """Of the epoch that begins at this moment, as a feeder is told it; None if no seed makes it."""
    if not moment.can_be_copied:
        return None
    sampler, habit = _innermost(loader._index_sampler), Habit(epoch_step=0)
    copies = _Copies(moment, habit)
    if draws_base_seed:
        _draw_seed(copies.of(loader.generator))
    try:
        return _order_of(sampler, _copied(sampler, copies, habit))
    except _NotKnown:
        return None


class _Copies:
    """Generators in the states that they will have when the epoch begins."""

    def __init__(self, moment: Moment, habit: Habit) -> None:
        self._originals = moment.generators
        self._copies = [torch.Generator().set_state(state) for state in moment.states]
        for generator, words in zip(self._copies, habit.words, strict=False):
            _skip_words(generator, words)

    def of(self, generator: torch.Generator | None) -> torch.Generator:
        """None stands for torch's default one."""
        if generator is None:
            return self._copies[0]
        return next(copied for original, copied in zip(self._originals, self._copies, strict=True) if original is generator)


def _copied(sampler: Any, copies: _Copies, habit: Habit) -> Iterable[Any]:
    """A sampler that yields what `sampler` will yield. Raises _NotKnown."""
    kind = type(sampler)
    if kind is BatchSampler:
        return BatchSampler(_copied(sampler.sampler, copies, habit), sampler.batch_size, sampler.drop_last)
    if kind in _DRAW_NOTHING:
        return sampler
    if kind is not DistributedSampler and kind not in _DRAW_FROM_THEIR_GENERATOR:
        raise _NotKnown
    copied = copy.copy(sampler)
    if kind is DistributedSampler:
        copied.epoch += habit.epoch_step
    elif kind is RandomSampler and sampler.generator is None:
        copied.generator = torch.Generator().manual_seed(_draw_seed(copies.of(None)))  # What it would make for itself.
    else:
        copied.generator = copies.of(sampler.generator)
    return copied


def _order_of(sampler: Any, copied: Any) -> dict | None:
    """The order of an epoch as the seed that it is a permutation of; None if it is none. `copied`: of `sampler`, before it has drawn."""
    kind = type(sampler)
    if kind is DistributedSampler and sampler.shuffle:
        seed = copied.seed + copied.epoch
        return _seeded(seed, len(sampler.dataset), rank=sampler.rank, ranks=sampler.num_replicas, drops_last=bool(sampler.drop_last))
    if kind is RandomSampler and sampler.generator is None and not sampler.replacement and sampler.num_samples == len(sampler.data_source):
        return _seeded(copied.generator.initial_seed(), sampler.num_samples)
    return None


def _seeded(seed: int, length: int, **deal: Any) -> dict:
    return {"seed": seed % 2**64, "length": length, **deal}


def _innermost(sampler: Any) -> Any:
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def _draw_seed(generator: torch.Generator) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def _skip_words(generator: torch.Generator, words: int) -> None:
    torch.empty(words, dtype=torch.int32).random_(generator=generator)


def _words_between(earlier: torch.Tensor, later: torch.Tensor) -> int:
    """How many words were drawn in between; 0 if it cannot be told."""
    generator = torch.Generator().set_state(earlier)
    for words in range(_MOST_WORDS):
        if torch.equal(generator.get_state(), later):
            return words
        _skip_words(generator, 1)
    return 0
