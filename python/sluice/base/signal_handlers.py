"""Exceptions of the script's own signal handlers. Python runs a handler in the midst of whatever the main thread does, for instance while it makes a
batch or describes a pipeline. What a handler raises, such as the end of a job that is preempted, is no failure of that."""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any


def pass_on_of_a_handler(error: BaseException) -> None:
    """Raises it if a signal handler of the script's has. Call it where an exception is caught and handled."""
    codes = {code for handler in map(_handler, range(_FIRST, signal.NSIG)) if (code := _code(handler)) is not None}
    if any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)):
        raise error


@contextlib.contextmanager
def handlers_stay() -> Iterator[None]:
    """What code inside makes of them is undone: in a worker of torch's it would not be the script's affair."""
    if threading.current_thread() is not threading.main_thread():  # Only that one may change them.
        yield
        return
    before = _handlers()
    try:
        yield
    finally:
        for number, (was, now) in enumerate(zip(before, _handlers(), strict=True), _FIRST):
            if was is not now and was is not None:
                signal.signal(number, was)


def _handlers() -> list[Any]:
    return list(map(_handler, range(_FIRST, _LAST + 1)))


_handler: Callable[[int], Any] = vars(signal)["_signal"].getsignal  # Without the enumerations, which take ten times as long.
_FIRST, _LAST = 1, 31  # Those that are not for real time.


def _code(handler: Any) -> CodeType | None:
    """What runs first where a handler of the script's is called; None for those of C code."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)
    return function.__code__ if isinstance(function, FunctionType) else None
