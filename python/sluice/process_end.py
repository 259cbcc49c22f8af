"""A sample that ends its process: as in a worker of torch's, that must not be the trainer, and the loop is told."""

from __future__ import annotations

import contextlib
import os
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
