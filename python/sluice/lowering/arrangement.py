"""Batches in the form of a data set's samples, where these are no pairs of an image and a class number, as native executors make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate

from sluice.lowering.lowered import ImageForm, name_of
from sluice.lowering.pictures import Picture
from sluice.lowering.sample_values import NUMPYS_NUMBERS, NUMPYS_TEXT, Column, Joined, Known, Labels, Named, Rows, Several, Value, in_words
from sluice.shipping.failures import NotNative


@dataclass(frozen=True)
class Arrangement:
    """`sample`: what a data set gives for each of its keys. `pictures`: those in it, in the order in which executors make them. `selection`: the data
    set's keys of a Subset's."""

    sample: Value
    pictures: tuple[Picture, ...]
    selection: list[int] | None

    def batch(self, made: list[torch.Tensor], keys: list) -> Any:
        """As default_collate would have made it of these samples. `made`: by an executor, the images of each picture and the labels."""
        places = {id(picture): number for number, picture in enumerate(self.pictures)}
        return self._batch(self.sample, made, places, keys if self.selection is None else [self.selection[key] for key in keys], list)

    def require_joinable(self, images: tuple[ImageForm, ...]) -> None:
        """Raises NotNative if torch would refuse to join some of them. `images`: of each picture."""
        forms = dict(zip(map(id, self.pictures), images, strict=True))
        if any(len({forms[id(picture)] for picture in joined.pictures}) > 1 for joined in _joined_in(self.sample)):
            raise NotNative("it joins images of several sizes or types")

    def _batch(self, value: Value, made: list[torch.Tensor], places: dict[int, int], keys: list, gathered: type) -> Any:
        """`gathered`: in what torch has the values of all samples when it collates them. Texts stay there."""
        match value:
            case Picture():
                return made[places[id(value)]]
            case Joined(pictures=pictures, join=join):
                return join([made[places[id(picture)]] for picture in pictures], 1)
            case Labels():
                return made[-1]
            case Several(items=items):
                return [self._batch(item, made, places, keys, tuple) for item in items]
            case Named(items=named):
                return {name: self._batch(item, made, places, keys, list) for name, item in named.items()}
            case Rows(tensor=tensor):
                return tensor[keys]
            case Column(values=values):
                return default_collate(gathered(values[key] for key in keys))
            case Known(value=same):
                return default_collate(gathered([same] * len(keys)))
        raise AssertionError


def _joined_in(value: Value) -> Iterator[Joined]:
    match value:
        case Joined():
            yield value
        case Several(items=items):
            yield from (joined for item in items for joined in _joined_in(item))
        case Named(items=named):
            yield from (joined for item in named.values() for joined in _joined_in(item))


def pictures_of(sample: Value) -> list[Picture]:
    """Raises NotNative for a sample that default_collate may refuse."""
    return [part for part in parts_of(sample) if isinstance(part, Picture)]


def parts_of(value: Value) -> Iterator[Value]:
    """All that is no tuple, list or dict. Raises NotNative for what default_collate may refuse."""
    match value:
        case Several(items=items):
            for item in items:
                yield from parts_of(item)
        case Named(items=named):
            for item in named.values():
                yield from parts_of(item)
        case Joined(pictures=pictures):
            yield from pictures
        case Rows(tensor=_) | Picture() | Labels():  # Rows are copied now, before the data set may change them.
            yield value
        case Known(value=same) if _is_collated({type(same)}, [same]):
            yield value
        case Column(values=values) if _is_collated(set(map(type, values)), values):
            yield value
        case _:
            raise NotNative(f"its samples have {in_words(value)}")


def _is_collated(kinds: set[type], values: list) -> bool:
    """Whether all have one type that torch knows and no more than 64 bits."""
    if kinds == {int}:
        return -(2**63) <= min(values) and max(values) < 2**63
    kind = next(iter(kinds))
    return len(kinds) == 1 and (kind in (bool, float, str, bytes) or name_of(kind) in NUMPYS_NUMBERS or name_of(kind) == NUMPYS_TEXT)
