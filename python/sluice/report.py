"""Which loaders a process has iterated, and who has made their batches: one line for each, at its end or on request.

The lines go to the package's log at level INFO, and with SLUICE_REPORT=1 to standard error.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import Any

from sluice.notices import log
from sluice.settings import SettingError, Settings

_MOST_LINES = 100
_iterators: dict[str, int] = {}


def note(loader: Any, outcome: str) -> None:
    """An iterator of `loader` has been made. Loaders that look alike share a line. Any thread."""
    line = f"{type(loader).__name__} of {type(loader.dataset).__name__}, batch_size {loader.batch_size}, num_workers {loader.num_workers}: {outcome}"
    if line in _iterators or len(_iterators) < _MOST_LINES:
        _iterators[line] = _iterators.get(line, 0) + 1


def lines() -> list[str]:
    """Of the loaders so far, in the order of their first iterators."""
    return [f"{line} ({count} iterator{'s' if count > 1 else ''})" for line, count in list(_iterators.items())]


def forget() -> None:
    """Begins anew: in a forked process, whose parent tells of its own loaders."""
    _iterators.clear()


def _tell() -> None:
    to_standard_error = False
    with contextlib.suppress(SettingError):  # Said already, where the loader was left to torch.
        to_standard_error = Settings.from_environment().report
    for line in lines():
        log.info("%s", line)
        if to_standard_error:
            print(f"sluice: {line}", file=sys.stderr)


atexit.register(_tell)
os.register_at_fork(after_in_child=forget)
