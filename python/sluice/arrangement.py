"""Batches in the form of a data set's samples, where native executors make the images alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate

from sluice.failures import NotNative
from sluice.lowered import name_of
from sluice.sample_values import NUMPYS_NUMBERS, NUMPYS_TEXT, Column, Known, Named, Picture, Rows, Several, Value, in_words


@dataclass(frozen=True)
class Arrangement:
    """`sample`: what a data set gives for each of its keys, with one picture in it. `selection`: the data set's keys of a Subset's."""

    sample: Value
    selection: list[int] | None

    def batch(self, images: torch.Tensor, keys: list) -> Any:
        """As default_collate would have made it of these samples."""
        return _batch(self.sample, images, keys if self.selection is None else [self.selection[key] for key in keys], list)


def _batch(value: Value, images: torch.Tensor, keys: list, gathered: type) -> Any:
    """`gathered`: in what torch has the values of all samples when it collates them. Texts stay there."""
    match value:
        case Picture():
            return images
        case Several(items=items):
            return [_batch(item, images, keys, tuple) for item in items]
        case Named(items=named):
            return {name: _batch(item, images, keys, list) for name, item in named.items()}
        case Rows(tensor=tensor):
            return tensor[keys]
        case Column(values=values):
            return default_collate(gathered(values[key] for key in keys))
        case Known(value=same):
            return default_collate(gathered([same] * len(keys)))
    raise AssertionError


def parts_of(value: Value) -> Iterator[Value]:
    """All that is no tuple, list or dict. Raises NotNative for what default_collate may refuse."""
    match value:
        case Several(items=items):
            for item in items:
                yield from parts_of(item)
        case Named(items=named):
            for item in named.values():
                yield from parts_of(item)
        case Picture() | Rows():
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
