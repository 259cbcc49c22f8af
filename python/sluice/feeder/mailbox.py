"""What other threads hand to a thread that waits for a socket: they append to a queue and ring an eventfd.

That is also all a finaliser may do. It can run in the middle of any allocation, in any thread, whatever locks that thread holds.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable
from typing import Any


class Mailbox:
    """Thread-safe: any thread posts and rings, without a lock; one thread waits for `fileno()` to become readable, hears and takes."""

    def __init__(self) -> None:
        self._posted: deque[Any] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._rung = False  # And not heard yet: then ringing again would only cost time.

    def fileno(self) -> int:
        return self._bell

    def post(self, item: Any) -> None:
        """Hands over an item. Does nothing once the mailbox is abandoned."""
        if self._bell >= 0:
            self._posted.append(item)
            self.ring()

    def ring(self) -> None:
        """Wakes the thread that waits, though it may find nothing."""
        if self._rung or self._bell < 0:
            return
        self._rung = True
        # Full only after 2^64 - 1 rings without a listener; closed only if the interpreter is going down.
        with contextlib.suppress(OSError):
            os.eventfd_write(self._bell, 1)

    def hear(self) -> None:
        """Before what was posted is taken: who posts later rings anew."""
        os.eventfd_read(self._bell)
        self._rung = False

    def take(self) -> Any | None:
        """The oldest item; None if there is none."""
        return self._posted.popleft() if self._posted else None

    def abandon(self) -> None:
        """In a forked child: nothing can be handed over here. Closes this process's copy of the bell."""
        bell, self._bell = self._bell, -1
        if bell >= 0:
            os.close(bell)

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # Not when its thread ends: a finaliser in another thread may still ring, and the number may then mean another file.
        # `close`: at the process's end this module may have no `os` any more.
        if getattr(self, "_bell", -1) >= 0:
            close(self._bell)
