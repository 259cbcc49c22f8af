"""What torch's Subsets wrap, and what their keys are called there. A class that inherits from Subset is none: it may do as it likes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from torch.utils.data import Subset


def innermost(dataset: Any) -> Any:
    """The data set that Subsets wrap, or the given one."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return dataset


def innermost_keys(dataset: Any, keys: Sequence[Any]) -> Sequence[Any] | None:
    """What innermost(dataset) gets for these keys. None where a Subset gets one that is no number, or none of its own."""
    while type(dataset) is Subset:
        if not are_numbers(keys):
            return None
        try:
            dataset, keys = dataset.dataset, [dataset.indices[key] for key in keys]
        except (IndexError, KeyError, TypeError):
            return None
    return keys


def are_numbers(keys: Sequence[Any]) -> bool:
    """Not tensors: one of bytes is a mask. Not truth values, which are masks as well."""
    return len(keys) > 0 and all(issubclass(kind, Integral) and kind is not bool for kind in set(map(type, keys)))
