"""Whether a data set changes itself while it is read: a counter, the last sample, a buffer.

Each worker has its own copy of the data set. So what such a data set returns depends on which samples its worker has read before, with torch as with
us. It cannot be told from the outside whether the change shows in a sample. Hence the user is told, and nothing else changes.

A cache is no such change: what a container holds and an attribute that was None before are not looked at.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections import deque
from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from sluice.base.notices import say_once

_MOST_ATTRIBUTES = 256
_DEEPEST = 4  # A transform in a composition in a data set that a Subset wraps.
_VALUES = (bool, int, float, complex, str, bytes)
_LONGEST_VALUE = 256  # characters or bytes


class Watch:
    """Looks at a data set before and after it is read. Not thread-safe. Cheap: large values are told apart by identity."""

    def __init__(self, dataset: Any) -> None:
        """What it is to be compared with is its state now."""
        self._dataset = dataset
        self._before = dict(_attributes(dataset))
        self._holders = {id(holder) for _, holder in _objects(dataset)}

    def changed(self) -> str:
        """The attribute that has changed since, as "Class.name"; "" if none."""
        for place, (name, value) in _attributes(self._dataset):
            if place in self._before and _differ(self._before[place][1], value):
                return name
        return ""


    def has_learnt(self) -> bool:
        """Whether an object that it had then has got a plain value since, in an attribute that had none: a rank that it looked up, for
        instance. What an object holds that came since, such as an open file, does not count."""
        return any((*place, name) not in self._before and type(value) in _VALUES
                   for place, holder in _objects(self._dataset) if id(holder) in self._holders
                   for name, value in _members(holder))  # fmt: skip


class FirstBatches:
    """Tells what the data set changes in itself between this process's first batch, which may open files, and the second."""

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._is_over = False

    def follow(self, dataset: Any) -> None:
        """Call after each batch."""
        if self._is_over:
            return
        if self._watch is None:
            self._watch = Watch(dataset)
            return
        name = self._watch.changed()
        self._watch, self._is_over = None, True
        if name:
            say_once(logging.WARNING, f"the data set changes its {name} while it is read: what it returns may depend on which worker reads it; "
                     "SLUICE_RANDOMNESS=torch keeps a copy of the data set for each worker, as torch does")


def _attributes(dataset: Any) -> Iterator[tuple[tuple, tuple[str, Any]]]:
    """Values and tensors within the data set's objects: by the place where each was found, its name and itself."""
    examined = 0
    for place, holder in _objects(dataset):
        for name, value in _members(holder):
            examined += 1
            if examined > _MOST_ATTRIBUTES:
                return
            if _is_compared(value):
                yield (*place, name), (f"{type(holder).__name__}.{name}", value)


def _objects(dataset: Any) -> Iterator[tuple[tuple, Any]]:
    """The data set and what it is made of, by the place where each was found; at most as many as may have attributes that are examined."""
    waiting: deque[tuple[tuple, Any]] = deque([((), dataset)])
    seen: set[int] = set()
    while waiting and len(seen) < _MOST_ATTRIBUTES:
        place, holder = waiting.popleft()
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        yield place, holder
        if len(place) < _DEEPEST:
            members = ((name, value) for name, value in _members(holder) if not _is_compared(value))
            waiting.extend(((*place, name), value) for name, value in itertools.islice(members, _MOST_ATTRIBUTES))


def objects_within(holder: Any) -> Iterator[Any]:
    """It and what it is made of."""
    return (inner for _, inner in _objects(holder))


def attributes_within(holder: Any) -> Iterator[Any]:
    """The values of its attributes, and of those of what it is made of."""
    for inner in objects_within(holder):
        yield from (value for _, value in _members(inner))


def _members(holder: Any) -> list[tuple[Any, Any]]:
    """The attributes of an object of the user's, and the objects in a list of transforms."""
    if isinstance(holder, (list, tuple)):
        return [(number, item) for number, item in enumerate(holder[:_MOST_ATTRIBUTES]) if hasattr(item, "__dict__") and not _is_compared(item)]
    if isinstance(holder, (type, ModuleType, FunctionType, MethodType)):
        return []
    return list(getattr(holder, "__dict__", {}).items())


def _is_compared(value: Any) -> bool:
    return type(value) in _VALUES or isinstance(value, (torch.Tensor, _numpy_array()))


def _numpy_array() -> type | tuple:
    numpy = sys.modules.get("numpy")
    return () if numpy is None else numpy.ndarray


def _differ(before: Any, after: Any) -> bool:
    if before is after:
        return False
    if type(before) in _VALUES and type(before) is type(after):
        is_short = not isinstance(after, (str, bytes)) or max(len(before), len(after)) <= _LONGEST_VALUE
        return is_short and before != after and before == before  # A NaN differs from itself.
    return type(before) is type(after) and type(before) not in _VALUES
