"""Collating a batch as torch's workers do, except that tensors take no detour through named shared memory."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import torch
from torch.utils.data._utils import collate as torch_collate

from sluice.executor.laps import COLLATE, DATASET, Laps
from sluice.shipping.structure import Stack, travels_in_arena

_TORCH_TYPES = frozenset(torch_collate.default_collate_fn_map)  # Before anybody adds to them.
_LEAVES = frozenset((torch.Tensor, int, float, bool, str, bytes))


def collate(collate_fn: Any, auto_collation: bool, data: Any, stacks: bool = False) -> Any:
    """`collate_fn` None stands for torch's default. `stacks`: a Stack may stand for a tensor, where no code but torch's sees it.
    Raises whatever the user's code raises."""
    if collate_fn is not None:
        return collate_fn(data)
    if not auto_collation:
        return torch_collate.default_convert(data)
    registered = torch_collate.default_collate_fn_map
    if registered.get(torch.Tensor) is not torch_collate.collate_tensor_fn:
        return torch_collate.collate(data, collate_fn_map=registered)  # The user has put a function of their own there.
    postponed = stacks and registered.keys() == _TORCH_TYPES and _is_plain(data[0])
    return torch_collate.collate(data, collate_fn_map={**registered, torch.Tensor: _postponed_stack if postponed else _stack})


def makes_all_anew(collate_fn: Any, auto_collation: bool) -> bool:
    """Whether nothing of a batch can be an object, or memory, that the data set keeps: torch alone puts it together."""
    registered = torch_collate.default_collate_fn_map
    return collate_fn is None and auto_collation and registered.keys() == _TORCH_TYPES and registered.get(torch.Tensor) is torch_collate.collate_tensor_fn


def runs_no_code_of_the_user(collate_fn: Any, auto_collation: bool, data: Any) -> bool:
    """Whether torch alone puts these samples together. Then nothing is drawn."""
    return type(data) is list and bool(data) and makes_all_anew(collate_fn, auto_collation) and _is_plain(data[0])


class Collation:
    """`collate` with its arguments, that counts. Not thread-safe."""

    def __init__(self, collate_fn: Any, auto_collation: bool) -> None:
        self._collate_fn = collate_fn
        self._auto_collation = auto_collation
        self.laps = Laps()  # Of the present batch.

    def __call__(self, data: Any) -> Any:
        self.laps.lap(DATASET)
        made = collate(self._collate_fn, self._auto_collation, data)
        self.laps.lap(COLLATE)
        return made


def _is_plain(sample: Any) -> bool:
    """Whether torch alone puts the batch of such samples together."""
    if type(sample) is dict:
        return all(map(_is_plain, sample.values()))
    if type(sample) in (list, tuple):
        return all(map(_is_plain, sample))
    return type(sample) in _LEAVES or type(sample) is getattr(sys.modules.get("numpy"), "ndarray", None)


def _stack(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
    """torch's collation of tensors without its detour, which is of no use here: the arena is the shared memory."""
    first = batch[0]
    if not first.is_nested and first.layout is torch.strided:
        with contextlib.suppress(RuntimeError):  # A tensor has a gradient, or another shape.
            # As torch's workers have it: contiguous, and of the first one's type.
            return torch.stack(batch, 0, out=first.new_empty((len(batch), *first.shape)))
    return torch_collate.default_collate_fn_map[torch.Tensor](batch, collate_fn_map=collate_fn_map)


def _postponed_stack(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor | Stack:
    first = batch[0]
    alike = all(type(t) is torch.Tensor and t.shape == first.shape and t.dtype is first.dtype for t in batch)
    if alike and all(map(travels_in_arena, batch)):
        return Stack(batch)
    return _stack(batch, collate_fn_map=collate_fn_map)
