"""The end of the process in which a sample is made. Here that is the trainer: a sample that ends its process must not end it, and one that starts threads
must not keep it from its end."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn


@contextlib.contextmanager
def ends_are_told() -> Iterator[None]:
    """os._exit raises SystemExit inside. In other threads, and in processes that are forked inside, it is what it was. What C code does, and
    who has the function under another name, is not seen: a crash ends this process, and tells where the code was.

    New threads are daemons, unless the sample says otherwise. torch ends a worker whose threads go on; the trainer would wait for them for ever."""
    end, process, thread = os._exit, os.getpid(), threading.get_ident()

    def tell(status: int) -> NoReturn:
        if (os.getpid(), threading.get_ident()) != (process, thread):
            end(status)
        raise SystemExit(f"a sample has called os._exit({status})")

    own = vars(threading.current_thread())
    is_daemon, own["_daemonic"] = own["_daemonic"], True  # What a new thread is, too.
    os._exit = tell
    _tell_of_crashes()
    try:
        yield
    finally:
        os._exit = end
        own["_daemonic"] = is_daemon


def _tell_of_crashes() -> None:
    """From now on, as going to and fro takes 8 microseconds. The script may have a way of its own, and there may be no place to write to."""
    if not faulthandler.is_enabled() and sys.__stderr__ is not None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            faulthandler.enable(sys.__stderr__)
