"""Whether an executor is worth its start: it has to import PyTorch, which costs more than many loaders ever wait.

As long as it is not, the loop's own process makes the batches. The rule and its reasons: docs/designs/stepping-aside.md.
"""

from __future__ import annotations

from collections import deque

from sluice.notices import log

WAIT_SHARE = 0.03
START_SECONDS = 5.0
FORK_SECONDS = 0.2  # of num_workers processes, with their queues
WARM_START_SECONDS = 0.5
_RECENT_BATCHES = 8
_LONG_WAIT_SECONDS = 3.0


class Payback:
    """Of one loader, over all its epochs. `pays` and `forks_pay` turn true once, and stay: what has been paid for is kept.

    A wait counts as far as it exceeds WAIT_SHARE of the loop's time. An executor pays once those excesses, and what the rest
    of the epoch is expected to add, come to the seconds that its start takes. Forks of the process pay as soon
    as the rest, or as much again as has been, is expected to add what their start takes: one slow batch starts none."""

    def __init__(self, forks_at_once: bool = False) -> None:
        """`forks_at_once`: this process makes no batch, forks of it make the first one."""
        self.pays = False
        self.forks_at_once = forks_at_once
        self.forks_pay = forks_at_once
        self._excess_seconds = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT_BATCHES)
        self._batches = 0
        self._wait_seconds = 0.0
        self._loop_seconds = 0.0

    def note(self, wait_seconds: float, compute_seconds: float, batches_left: int, start_seconds: float, may_fork: bool = False) -> None:
        """The loop has waited so long for a batch that its process or a fork made, and then computed so long. `batches_left`: of
        this epoch, 0 if unknown. `start_seconds`: what an executor's start takes now. `may_fork`: forks are tried first."""
        self._batches += 1
        self._wait_seconds += wait_seconds
        self._loop_seconds += wait_seconds + compute_seconds
        excess_seconds = wait_seconds - WAIT_SHARE * (wait_seconds + compute_seconds)
        self._excess_seconds = max(0.0, self._excess_seconds + excess_seconds)
        self._recent.append(excess_seconds)
        # One slow batch, the first most often, says little of the next ones.
        if len(self._recent) >= 2 or wait_seconds >= _LONG_WAIT_SECONDS:
            typical_seconds = sorted(self._recent)[(len(self._recent) - 1) // 2]
            expected_seconds = self._excess_seconds + max(0.0, typical_seconds) * batches_left
            if may_fork and not self.forks_pay and typical_seconds * max(batches_left, self._batches) >= FORK_SECONDS:
                self.forks_pay = True
                self._forget()  # What executors would bring shows beside the forks.
                return
            self.pays = self.pays or expected_seconds >= start_seconds
        if self.pays or self._batches == _RECENT_BATCHES:
            log.info("a loader's batches: %s", self.in_words())

    def _forget(self) -> None:
        self._excess_seconds = 0.0
        self._recent.clear()

    def in_words(self) -> str:
        """Where the loader's batches are made, and why."""
        if self._batches == 0 and self.forks_at_once:
            return "forks of this process make them, as torch's own workers would, until an executor pays for its start"
        if self._batches == 0:
            return "the first ones are made in this process, until an executor pays for its start"
        share_percent = 100 * self._wait_seconds / self._loop_seconds if self._loop_seconds > 0 else 0.0
        waits = f"made there, the loop waits {share_percent:.1f} % of its time ({self._wait_seconds / self._batches:.3g} s a batch)"
        if self.pays:
            return f"executors of the feeder make them, and until these are there {self._until_then()}: {waits}"
        if self.forks_pay:
            return f"forks of this process make them, as torch's own workers would, and no executor is started: {waits}"
        return f"this process makes them, and no executor is started: {waits}"

    def _until_then(self) -> str:
        return "forks of this process" if self.forks_at_once else "this process and its forks"
