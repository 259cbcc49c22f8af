"""Exceptions of the script's own signal handlers. Python runs a handler in the midst of whatever the main thread does, for instance while it makes a
batch or describes a pipeline. What a handler raises, such as the end of a job that is preempted, is no failure of that."""

from __future__ import annotations

import functools
import signal
import traceback
from types import CodeType, FunctionType
from typing import Any


def pass_on_of_a_handler(error: BaseException) -> None:
    """Raises it if a signal handler of the script's has. Call it where an exception is caught and handled."""
    codes = {code for number in signal.valid_signals() if (code := _code(signal.getsignal(number))) is not None}
    if any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__)):
        raise error


def _code(handler: Any) -> CodeType | None:
    """What runs first where a handler of the script's is called; None for those of C code."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)
    return function.__code__ if isinstance(function, FunctionType) else None
