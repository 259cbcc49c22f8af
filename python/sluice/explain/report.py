"""Which loaders a process has iterated, and who has made their batches: one line for each, at its end or on request.

The lines go to the package's log at level INFO, and with SLUICE_REPORT=1 to standard error. With SLUICE_EXPLAIN=1 (`sluice explain`) each line comes
with what `loader.explain()` says then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from sluice.base.notices import log
from sluice.base.settings import SettingError, Settings
from sluice.explain.explanation import Explanation
from sluice.makers.measured import Measured

_MOST_LINES = 100
_MOST_LOADERS = 100  # Of one line, that are measured.


@dataclass
class _Alike:
    """Loaders that share a line."""

    iterators: int = 0
    explanation: Explanation | None = None  # Of the last one.
    measured: list[Measured] = field(default_factory=list)

    def note(self, explanation: Explanation | None) -> None:
        self.iterators += 1
        self.explanation = explanation
        measured = explanation.measured if explanation is not None else None
        if measured is not None and not any(known is measured for known in self.measured) and len(self.measured) < _MOST_LOADERS:
            self.measured.append(measured)

    def explained(self) -> str:
        """"" where no report is asked for."""
        if self.explanation is None:
            return ""
        return replace(self.explanation, measured=Measured.together(self.measured) if self.measured else None).report()


_loaders: dict[str, _Alike] = {}


def note(loader: Any, outcome: str, explanation: Explanation | None = None) -> None:
    """An iterator of `loader` has been made. Loaders that look alike share a line. Any thread."""
    line = f"{type(loader).__name__} of {type(loader.dataset).__name__}, batch_size {loader.batch_size}, num_workers {loader.num_workers}: {outcome}"
    if line in _loaders or len(_loaders) < _MOST_LINES:
        _loaders.setdefault(line, _Alike()).note(explanation)


def lines() -> list[str]:
    """Of the loaders so far, in the order of their first iterators."""
    return [_line(line, alike) for line, alike in list(_loaders.items())]


def _line(line: str, alike: _Alike) -> str:
    return f"{line} ({alike.iterators} iterator{'s' if alike.iterators > 1 else ''})"


def forget() -> None:
    """Begins anew: in a forked process, whose parent tells of its own loaders."""
    _loaders.clear()


def _tell() -> None:
    reports = explains = False
    with contextlib.suppress(SettingError):  # Said already, where the loader was left to torch.
        settings = Settings.from_environment()
        reports, explains = settings.report, settings.explain
    for line, alike in list(_loaders.items()):
        log.info("%s", _line(line, alike))
        if reports or explains:
            _print(f"sluice: {_line(line, alike)}")
        for explained in alike.explained().splitlines() if explains else ():
            _print(f"  {explained}")


def _print(line: str) -> None:
    """In one go: ranks that end together share their standard error, and print() writes a line and its end by themselves."""
    sys.stderr.write(line + "\n")


atexit.register(_tell)
os.register_at_fork(after_in_child=forget)
