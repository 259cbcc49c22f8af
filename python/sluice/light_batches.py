"""Small tensors of a batch on their way from a forked process: by value, through the pipe that carries the batch.

torch moves each tensor into shared memory and hands over its descriptor by a connection of its own. A small one costs many times what its bytes cost.
All other tensors still go that way.
"""

from __future__ import annotations

from typing import Any

import torch

from sluice.structure import is_plain, travels_in_arena

LIGHT_BYTES = 16 << 10  # Of one tensor.
_MOST_MEMBERS = 64  # Of a container that is looked into, and its depth: the search must cost less than it saves.
_MOST_DEPTH = 4


class _Light:
    """Stands for a tensor, and is unpickled as one."""

    def __init__(self, data: bytearray, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
        self._origin = (data, dtype, shape)

    def __reduce__(self) -> Any:
        return _tensor, self._origin


def lightened(batch: Any) -> Any:
    """What to pickle in the place of `batch`: unpickled, it is the batch. Looks into lists, tuples and dicts only. Tensors that are one, or share
    their memory, do so there, too."""
    return _lighten(batch, {}, 0)


def _lighten(value: Any, known: dict[Any, Any], depth: int) -> Any:
    """`known`: the answer for each object that was seen, and the bytes of each tensor's memory. The batch keeps these objects alive."""
    kind = type(value)
    if kind is torch.Tensor:
        if id(value) not in known:
            known[id(value)] = _light(value, known) if _is_light(value) else value
        return known[id(value)]
    if kind not in (list, tuple, dict) or len(value) > _MOST_MEMBERS or depth == _MOST_DEPTH:
        return value
    if id(value) not in known:
        if kind is dict:
            known[id(value)] = {key: _lighten(member, known, depth + 1) for key, member in value.items()}
        else:
            known[id(value)] = kind(_lighten(member, known, depth + 1) for member in value)
    return known[id(value)]


def _is_light(tensor: torch.Tensor) -> bool:
    """Whether its bytes are all of its memory, and few."""
    nbytes = tensor.nbytes if travels_in_arena(tensor) else 0
    return 0 < nbytes <= LIGHT_BYTES and is_plain(tensor) and tensor.untyped_storage().nbytes() == nbytes


def _light(tensor: torch.Tensor, known: dict[Any, Any]) -> _Light:
    memory = ("memory", tensor.data_ptr())
    if memory not in known:
        known[memory] = bytearray(tensor.view(-1).view(torch.uint8).numpy())
    return _Light(known[memory], tensor.dtype, tuple(tensor.shape))


def _tensor(data: bytearray, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).view(shape)
