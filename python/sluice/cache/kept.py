"""`sluice.cached`: functions whose results a cache may keep, as the user says that they are deterministic (docs/user-guide.md).

A batch's executor finds results and keeps them (sluice.executor.kept_calls). Everywhere else, and where there is no cache, a marked function is called as ever.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from sluice.cache.kept_keys import FunctionKey, NoKey
from sluice.cache.source_cache import asks_for_cache

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Calls(Protocol):
    """What finds results of marked functions: a part of the executor's child (sluice.executor.kept_calls)."""

    def result(self, function: FunctionKey, arguments: tuple, named: dict[str, Any]) -> Any: ...


def cached(*, version: str, key: Callable[..., Any] | None = None) -> Callable[[_Function], _Function]:
    """Marks a function whose result depends on its arguments alone, and on the files that they name. `version`: another one for whatever else changes
    it, such as what it calls. `key`: gets the arguments and gives a tuple of plain values that stand for them.

    A call raises TypeError for arguments that are not plain (an object, such as `self`), unless there is a `key`."""

    def mark(function: _Function) -> _Function:
        global _are_marked
        _are_marked = True
        marked = _Marked(FunctionKey(function, version, key))

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            calls = at_work()
            if calls is not None:
                return calls.result(marked.key, arguments, named)
            return function(*arguments, **named) if marked.is_checked else marked.first_call(arguments, named)

        return call  # type: ignore[return-value]

    return mark


class _Marked:
    """One function. Its first call shows that its arguments are plain, with a cache or without."""

    def __init__(self, key: FunctionKey) -> None:
        self.key = key
        self.is_checked = False

    def __reduce__(self) -> tuple:
        return _Marked, (self.key,)

    def first_call(self, arguments: tuple, named: dict[str, Any]) -> Any:
        try:
            self.key.of(arguments, named)
        except NoKey:
            pass
        self.is_checked = True
        return self.key.function(*arguments, **named)


_are_marked = False
_at_work: tuple[Calls, int] | None = None  # And the thread that makes a batch with it.


def at_work() -> Calls | None:
    """What finds the results of this thread's calls; None: nothing does."""
    present = _at_work
    return present[0] if present is not None and present[1] == threading.get_ident() else None


def enter(calls: Calls | None) -> None:
    """This thread's calls are found by `calls` from now on. None: no thread's are."""
    global _at_work
    _at_work = None if calls is None else (calls, threading.get_ident())


def wants_executors() -> bool:
    """Whether executors make a difference that forks of this process cannot: a function is marked, and there is a cache for its results."""
    return _are_marked and asks_for_cache(os.environ)


def _leave() -> None:
    """A process that user code has forked has no part in its parent's conversation."""
    enter(None)


os.register_at_fork(after_in_child=_leave)
