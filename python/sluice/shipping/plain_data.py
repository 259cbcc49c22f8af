"""Plain values of a data set by the thousand: lists of lines, of (path, label), of rows as dicts.

Pickling a million lines and reading them again takes 0.6 s, and as much memory once more. But a line cannot change. So a copy that stays in
this process has a list of its own with the same lines in it: 0.02 s, and eight bytes for each.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

_VALUES = frozenset((str, int, float, complex, bool, bytes, type(None)))
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))
_FEWEST = 256  # Of a container that is worth the trouble.
_MOST_PICKLED = 20_000  # Of one that is not plain: pickling so many values takes longer than a process's start.
_MOST_VALUES = 2_000_000  # All of them take some 30 ms to copy.
_CONTAINER_VALUES = 40  # As many take as long as a container within another one.
_DEEPEST = 16


class NotPlain(Exception):
    """It holds something that may be more than its value, or is too much."""


class PlainParts:
    """The large plain containers of one pickle, by number. Each is as it was when it was added. Not thread-safe."""

    def __init__(self) -> None:
        self._numbers: dict[int, int | None] = {}  # By the identity of the container; None: it is not plain.
        self._copier = _Copier()
        self.has_long = False  # A container that is not plain, and takes long to pickle.

    def __len__(self) -> int:
        return len(self._copier.roots)

    def add(self, value: Any) -> int | None:
        """The number of the container that `value` is; None if it is none, and has to be pickled. REQUIRES: `value` lives until the pickle is made."""
        if type(value) not in _CONTAINERS or len(value) < _FEWEST:
            return None
        if id(value) not in self._numbers:
            self._numbers[id(value)] = self._copier.add(value)
        number = self._numbers[id(value)]
        self.has_long = self.has_long or (number is None and len(value) > _MOST_PICKLED)
        return number

    def are_shared(self, pickled: set[int]) -> bool:
        """Whether a part holds an object that may change and is among these, by identity: in a copy it would be two."""
        return not self._copier.inner.isdisjoint(pickled)

    def copy(self) -> list[Any]:
        """All of them anew. What one part shares with another, the copies share, too."""
        copier = _Copier()
        for root in self._copier.roots:
            copier.add(root)
        return copier.roots


class _Copier:
    """Copies containers, each once. `roots`: the copies of those that were added. `inner`: the identities of what may change within these."""

    def __init__(self) -> None:
        self.roots: list[Any] = []
        self.inner: set[int] = set()
        self._copies: dict[int, Any] = {}
        self._begun: list[int] = []  # Identities of what the last root has.
        self._values_left = _MOST_VALUES

    def add(self, root: Any) -> int | None:
        """The number of its copy; None if it is not plain."""
        self._begun, values_left = [], self._values_left
        try:
            made = self._copy(root, 0)
        except NotPlain:
            for identity in self._begun:
                del self._copies[identity]
            self.inner.difference_update(self._begun)
            self._values_left = values_left
            return None
        self.inner.discard(id(root))
        self.roots.append(made)
        return len(self.roots) - 1

    def _copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _VALUES:
            return value
        if kind not in _CONTAINERS or depth > _DEEPEST:
            raise NotPlain
        if id(value) in self._copies:
            return self._copies[id(value)]
        self._values_left -= len(value) + _CONTAINER_VALUES
        if self._values_left < 0:
            raise NotPlain
        made = self._contents(value, kind, depth)
        if made is not value:
            self._copies[id(value)] = made
            self.inner.add(id(value))
            self._begun.append(id(value))
        return made

    def _contents(self, value: Any, kind: type, depth: int) -> Any:
        """A container with the same values, which is the same one if neither it nor they can change."""
        if kind is dict:
            if not (_are_values(value) or all(self._copy(key, depth + 1) is key for key in value)):
                raise NotPlain
            return value.copy() if _are_values(value.values()) else {key: self._copy(each, depth + 1) for key, each in value.items()}
        if _are_values(value) or self._are_tuples_of_values(value):
            return value.copy() if kind in (list, set) else value
        made = [self._copy(each, depth + 1) for each in value]
        if kind is list:
            return made
        if any(copy is not each for copy, each in zip(made, value, strict=True)):
            return tuple(made) if kind is tuple else _refuse()  # What can change is in no set.
        return value.copy() if kind is set else value

    def _are_tuples_of_values(self, value: Any) -> bool:
        """Whether they are, as lists of files with their labels have them; so many are looked at fast."""
        if set(map(type, value)) != {tuple}:
            return False
        self._values_left -= sum(map(len, value))
        return _are_values(chain.from_iterable(value))


def _are_values(values: Any) -> bool:
    return _VALUES.issuperset(map(type, values))


def _refuse() -> Any:
    raise NotPlain
