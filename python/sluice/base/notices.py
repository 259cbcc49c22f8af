"""The package's log (`logging.getLogger("sluice")`), and things worth saying once.

A loader is built once and iterated thousands of times: whatever holds for all its iterators must not fill the log.
"""

from __future__ import annotations

import logging
import threading

log = logging.getLogger("sluice")

_MOST_NOTICES = 1000
_said: set[str] = set()
_lock = threading.Lock()


def say_once(level: int, message: str) -> None:
    """Logs `message` unless this process has logged the very same text before. Any thread, but not from a finaliser."""
    with _lock:
        if message in _said or len(_said) >= _MOST_NOTICES:
            return
        _said.add(message)
    log.log(level, "%s", message)


def forget() -> None:
    """Lets everything be said again (tests)."""
    with _lock:
        _said.clear()
