"""Whether files that were about to be read are still as they were then: what was read of them in between is what would be read now."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

# Within a tick of its file system's clock a file can change twice and look the same. Ticks are up to 10 ms.
_SETTLED_SECONDS = 0.1


class FileStates:
    """Of the files whose paths were noted, each as it was when it was noted first. Not thread-safe."""

    def __init__(self) -> None:
        self._states: dict[str, tuple[int, ...] | None] = {}

    def note(self, paths: Iterable[str]) -> None:
        """Before they are read."""
        now_ns = time.time_ns()
        for path in paths:
            if path not in self._states:
                state = _state(path)
                is_settled = state is not None and abs(now_ns - state[-1]) > _SETTLED_SECONDS * 1e9
                self._states[path] = state if is_settled else None

    def are_the_same(self) -> bool:
        """False also where that cannot be told: of a file that had just changed, or was missing."""
        return all(state is not None and state == _state(path) for path, state in self._states.items())


def _state(path: str) -> tuple[int, ...] | None:
    """None if there is none to see. No program can set the time of the last change, which is the last field."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
