"""The end of the process in which a sample is made: a sample that ends it must not end the trainer, and one that starts threads must not keep it."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn


@contextlib.contextmanager
def exit_is_an_error() -> Iterator[None]:
    """os._exit raises SystemExit inside. In other threads, and in processes that are forked inside, it is what it was. What C code does, and
    who has the function under another name, is not seen."""
    end, process, thread = os._exit, os.getpid(), threading.get_ident()

    def tell(status: int) -> NoReturn:
        if (os.getpid(), threading.get_ident()) != (process, thread):
            end(status)
        raise SystemExit(f"a sample has called os._exit({status})")

    os._exit = tell
    try:
        yield
    finally:
        os._exit = end


@contextlib.contextmanager
def new_threads_are_daemons() -> Iterator[None]:
    """Unless the sample says otherwise of a thread that it starts. torch ends a worker whose threads go on. The trainer would wait for them for ever."""
    own = vars(threading.current_thread())
    before, own["_daemonic"] = own["_daemonic"], True  # What a new thread is, too.
    try:
        yield
    finally:
        own["_daemonic"] = before


@contextlib.contextmanager
def crash_is_told() -> Iterator[None]:
    """A crash inside ends this process, and tells where the code was: a worker of torch's would have left the loop to tell of it."""
    if faulthandler.is_enabled() or sys.__stderr__ is None:  # The script's own way.
        yield
        return
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # Nobody listens there.
        faulthandler.enable(sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.disable()
