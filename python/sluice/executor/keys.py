"""The keys that a sampler yields: plain integers most often, or integers of numpy's, or tensors of one.

To executors they travel as plain integers. A data set gets what torch would give it: it may ask a key for its type, its `item()` or its text. So a
pipeline says of which type its keys are, and executors make that of them again.
"""

from __future__ import annotations

import logging
import operator
from numbers import Integral
from typing import Any

import torch

from sluice.base.notices import say_once

INTEGERS = (-(2**63), 2**63)  # Those that travel: from, and up to but not.


def key_type(keys: list) -> type | None:
    """The one type of all these keys, if they may travel as plain integers; None if they may not, or for no keys."""
    kinds = set(map(type, keys))
    if kinds == {int}:
        return int
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is torch.Tensor:
        return kind if all(key.dtype is torch.int64 and key.dim() == 0 and key.device.type == "cpu" for key in keys) else None
    return kind if kind is not None and kind.__module__ == "numpy" and issubclass(kind, Integral) else None


def plain(keys: list) -> list[int]:
    """REQUIRES: key_type(keys) is not None, or there are none."""
    return keys if not keys or type(keys[0]) is int else [operator.index(key) for key in keys]


def restored(keys: list[int], kind: type) -> list[Any]:
    """Keys of that type; those that travelled."""
    if kind is int:
        return keys
    return [torch.tensor(key) if kind is torch.Tensor else kind(key) for key in keys]


def say_what_cannot_travel(keys: list, kind: type) -> None:
    """`kind`: of the keys that do."""
    if key_type(keys) is not kind:
        names = " and ".join(sorted({type(key).__name__ for key in keys}))
        say_once(logging.WARNING, f"the sampler yields {names} keys, which only this process can look up")
