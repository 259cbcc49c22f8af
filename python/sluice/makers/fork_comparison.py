"""Whether forks shorten a loop's waits for cheap batches, which may take longer to hand over than to make (docs/designs/stepping-aside.md)."""

from __future__ import annotations

import enum

_FIRST_BATCHES = 24
_LATER_BATCHES = 200
_HELP_SHARE = 0.9


class Verdict(enum.Enum):
    """What a wait has decided."""

    FORKS = enum.auto()
    FORKS_REST = enum.auto()  # The process makes the next batches, for a comparison.
    NO_FORKS = enum.auto()


class ForkComparison:
    """Of one loader, from the start of its forks on.

    1. Of 24 batches of forks, the waits are compared with those before. Forks are given up that spare no tenth, or less in an epoch than their start took.
    2. A process's first batches are slower than later ones, so forks may have looked better than they are. 200 more batches come from them.
    3. The process makes 24 once more, while the forks rest. Forks that spare no tenth of these waits are given up.
    """

    def __init__(self, wait_alone_seconds: float) -> None:
        """`wait_alone_seconds`: a batch's wait before there were forks."""
        self._wait_alone_seconds = wait_alone_seconds
        self._first: list[float] = []  # Waits, of each step.
        self._later: list[float] = []
        self._alone: list[float] = []

    @property
    def is_first(self) -> bool:
        """Whether the first step is under way."""
        return len(self._first) < _FIRST_BATCHES

    @property
    def forks_rest(self) -> bool:
        """Whether the third step is under way."""
        return len(self._later) >= _LATER_BATCHES

    @property
    def handing_over_seconds(self) -> float:
        """A wait that no forks shorten, from what is known."""
        return max(_usual(self._later or self._first), _usual(self._alone) if self._alone else self._wait_alone_seconds)

    def note(self, wait_seconds: float, by_fork: bool, epoch_batches: int, may_rest: bool) -> Verdict | None:
        """The loop has waited so long. `by_fork`: a fork has made the batch, not the process. `may_rest`: the process may make
        batches itself now. Returns what that has decided."""
        if self.forks_rest:
            return None if by_fork else self._note_alone(wait_seconds)
        if not by_fork:
            return None
        if self.is_first:
            return self._note_first(wait_seconds, epoch_batches)
        if may_rest or len(self._later) < _LATER_BATCHES - 1:
            self._later.append(wait_seconds)
        return Verdict.FORKS_REST if self.forks_rest else None

    def _note_first(self, wait_seconds: float, epoch_batches: int) -> Verdict | None:
        self._first.append(wait_seconds)
        if self.is_first:
            return None
        beside_seconds = _usual(self._first)  # The longest wait is that for their start.
        spared_seconds = (self._wait_alone_seconds - beside_seconds) * epoch_batches
        helps = beside_seconds <= _HELP_SHARE * self._wait_alone_seconds and spared_seconds >= max(self._first)
        return None if helps else Verdict.NO_FORKS

    def _note_alone(self, wait_seconds: float) -> Verdict | None:
        self._alone.append(wait_seconds)
        if len(self._alone) < _FIRST_BATCHES:
            return None
        return Verdict.FORKS if _usual(self._later) <= _HELP_SHARE * _usual(self._alone) else Verdict.NO_FORKS


def _usual(waits: list[float]) -> float:
    """Their mean without the longest. Not the median: several batches of forks come at once, and then none for a while."""
    *others, _ = sorted(waits)
    return sum(others) / len(others)
