"""Whether an executor is worth its start: it has to import PyTorch, which costs more than many loaders ever wait.

As long as it is not, the loop's own process makes the batches. The rule and its reasons: docs/designs/stepping-aside.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sluice.base.notices import log
from sluice.base.queued import queued_seconds
from sluice.makers.accounting import Totals
from sluice.makers.fork_comparison import ForkComparison, Verdict
from sluice.makers.way_back import WayBack

WAIT_SHARE = 0.03
HELD_BACK_SHARE = 0.1  # Of the loop's time, without a CPU beside its forks.
START_SECONDS = 5.0
FORK_SECONDS = 0.2  # of num_workers processes, with their queues
WARM_START_SECONDS = 0.5
_SEEN_SECONDS = 0.05  # Of samples, before they say how long the next ones take.
_RECENT_BATCHES = 8
_LONG_WAIT_SECONDS = 3.0
# A batch that takes this process longer is worth a fork's handing over, which takes 0.1 to 3 ms.
_CHEAP_BATCH_SECONDS = 0.01
_WARMING_BATCHES = 24


class Payback:
    """Of one loader, over all its epochs. What `pays` is kept, unless executors prove slower than what the loop had before (WayBack).

    A wait counts as far as it exceeds WAIT_SHARE of the loop's time. An executor pays once those excesses, and what the rest
    of the epoch is expected to add, come to the seconds that its start takes. Forks of the process pay as soon
    as the rest, or as much again as has been, is expected to add what their start takes: one slow batch starts none.

    Forks of cheap batches are given up that do not help (ForkComparison). From then on only waits count that exceed what handing over takes."""

    def __init__(self, forks_at_once: bool = False, forks_suffice: bool = False, executors_at_once: bool = False) -> None:
        """`forks_at_once`: this process makes no batch, forks of it make the first one. `forks_suffice`: executors would add no CPU, so none
        ever pays. `executors_at_once`: they need no start, as those of native pipelines."""
        self.pays = executors_at_once
        self.forks_at_once = forks_at_once
        self.forks_suffice = forks_suffice
        self.executors_at_once = executors_at_once
        self.forks_pay = forks_at_once or executors_at_once
        self.way_back = WayBack()
        self._comparison: ForkComparison | None = None  # Of cheap batches, until it has decided.
        self._epoch_batches = 0  # The most that have been left of one.
        self._handing_over_seconds = 0.0
        self._excess_seconds = 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT_BATCHES)
        self._recent_waits: deque[float] = deque(maxlen=_RECENT_BATCHES)
        self._batches = 0
        self._wait_seconds = 0.0
        self._loop_seconds = 0.0

    def note(self, wait_seconds: float, compute_seconds: float, batches_left: int, start_seconds: float, may_fork: bool = False,
             held_back_seconds: float = 0.0, by_fork: bool = False, may_rest: bool = False) -> None:
        """The loop has waited so long for a batch that its process or a fork made, and then computed so long. `batches_left`: of
        this epoch, 0 if unknown. `start_seconds`: what an executor's start takes now. `may_fork`: forks are tried first. `held_back_seconds`: of
        `compute_seconds`, as the loop had no CPU beside its forks. `by_fork` and `may_rest`: as ForkComparison needs them."""
        self._batches += 1
        self._epoch_batches = max(self._epoch_batches, batches_left)
        self._wait_seconds += wait_seconds
        self._loop_seconds += wait_seconds + compute_seconds
        excess_seconds = wait_seconds + held_back_seconds - max(WAIT_SHARE * (wait_seconds + compute_seconds), self._handing_over_seconds)
        self._excess_seconds = max(0.0, self._excess_seconds + excess_seconds)
        self._recent.append(excess_seconds)
        self._recent_waits.append(wait_seconds)
        if self._comparison is not None and self._compare(self._comparison, wait_seconds, by_fork, may_rest):
            return
        # One slow batch, the first most often, says little of the next ones.
        if len(self._recent) >= 2 or wait_seconds >= _LONG_WAIT_SECONDS:
            typical_seconds = _median(self._recent)
            expected_seconds = self._excess_seconds + max(0.0, typical_seconds) * batches_left
            wait_alone_seconds = _median(self._recent_waits)
            is_cheap = wait_alone_seconds < _CHEAP_BATCH_SECONDS
            # Cheap batches become cheaper at first: what a process does for the first time takes longer.
            is_known = not is_cheap or self._batches >= _WARMING_BATCHES
            if may_fork and not self.forks_pay and is_known and typical_seconds * max(batches_left, self._batches) >= FORK_SECONDS:
                self.forks_pay = True
                self._comparison = ForkComparison(wait_alone_seconds) if is_cheap else None
                self._forget()  # What executors would bring shows beside the forks.
                return
            self.pays = self.pays or (expected_seconds >= start_seconds and not (self.forks_suffice or self.way_back.rests))
        if self.pays or self._batches == _RECENT_BATCHES:
            log.info("a loader's batches: %s", self.in_words())

    def _compare(self, comparison: ForkComparison, wait_seconds: float, by_fork: bool, may_rest: bool) -> bool:
        """The loop has waited for a cheap batch. Whether the wait says nothing about executors yet, as forks have just begun, or rest, or are given up."""
        verdict = comparison.note(wait_seconds, by_fork, self._epoch_batches or self._batches, may_rest)
        if verdict is None:
            return comparison.forks_rest or comparison.is_first
        self.forks_pay = verdict is Verdict.FORKS
        if verdict is not Verdict.FORKS_REST:
            self._comparison = None
        if verdict is Verdict.NO_FORKS:
            self._handing_over_seconds = max(self._handing_over_seconds, comparison.handing_over_seconds)
        self._forget()
        return True

    @property
    def forks_rest(self) -> bool:
        """Whether forks are kept that get nothing to do for a while."""
        return self._comparison is not None and self._comparison.forks_rest

    def go_back(self) -> None:
        """Executors have proven slower. What they would bring has to show anew."""
        self.pays = False
        self._forget()

    def _forget(self) -> None:
        self._excess_seconds = 0.0
        self._recent.clear()
        self._recent_waits.clear()

    @property
    def knows_nothing(self) -> bool:
        """Whether no batch has been noted, and nothing was decided."""
        return self._batches == 0 and not (self.pays or self.forks_pay)

    def in_words(self) -> str:
        """Where the loader's batches are made, and why."""
        if self._batches == 0:
            until = "and no executor is started, as it would add no CPU" if self.forks_suffice else "until an executor pays for its start"
            at_first = "forks of this process make them, as torch's own workers would" if self.forks_at_once else "the first ones are made in this process"
            return f"{at_first}, {until}"
        share_percent = 100 * self._wait_seconds / self._loop_seconds if self._loop_seconds > 0 else 0.0
        waits = f"made there, the loop waits {share_percent:.1f} % of its time ({self._wait_seconds / self._batches:.3g} s a batch)"
        if self.pays:
            return f"executors of the feeder make them, and until these are there {self._until_then()}: {waits}"
        if self.forks_pay:
            slower = "they are faster than executors" if self.way_back.rests else "no executor is started"
            return f"forks of this process make them, as torch's own workers would, and {slower}: {waits}"
        unhelpful = " (its forks take longer to hand them over)" if self._handing_over_seconds > 0 else ""
        return f"this process makes them{unhelpful}, and no executor is started: {waits}"

    def _until_then(self) -> str:
        return "forks of this process" if self.forks_at_once else "this process and its forks"


class TakesLong(BaseException):
    """A batch that forks should make, and that this process has begun. No code of the user's may take it for an error of a sample."""


class FirstBatch:
    """The first batch of a loader, while this process makes it: raises TakesLong before a sample if the rest of the batch takes longer than forks
    take to start. Otherwise a data set that waits 0.5 s for each sample would keep the loop for two batches before it has forks. The first
    sample, which may import and open what it needs, says nothing."""

    def __init__(self, samples: int, batches_left: int, clock: Callable[[], float]) -> None:
        """`batches_left`: after this one; 0 if unknown."""
        self._samples = samples
        self._batches_left = max(1, batches_left)
        self._clock = clock
        self._first_ended_seconds = 0.0

    def __call__(self, made: int) -> None:
        if made == 0:
            return
        now_seconds = self._clock()
        if made == 1:
            self._first_ended_seconds = now_seconds
            return
        seconds = now_seconds - self._first_ended_seconds
        sample_seconds = seconds / (made - 1)
        is_long = sample_seconds * (self._samples - made) >= FORK_SECONDS
        if seconds >= _SEEN_SECONDS and is_long and sample_seconds * self._samples * self._batches_left >= 2 * FORK_SECONDS:
            raise TakesLong


class Scales:
    """What each batch of one pass costs the loop. `here_seconds`: what the last batch took, if this process or a fork of it has made it; `by_fork`: a
    fork."""

    def __init__(self) -> None:
        self.here_seconds: float | None = None
        self.by_fork = False
        self._before_last = Totals()  # Of the loop's time.
        self._queued_before_seconds: float | None = None  # Of the loop's thread, when there were forks first.
        self._beside_forks_seconds = 0.0  # Of the loop, since then.

    def weigh(self, payback: Payback, totals: Totals, batches_left: int, has_warm_feeder: bool, can_fork: bool, window_batches: int = 0,
              may_rest: bool = False) -> None:
        """`totals`: of the loop, now that it has computed with the last batch. The wait is that of the whole call, so it includes what handing
        over takes in this thread; for the first batch, which the account leaves out, it is `here_seconds`. `window_batches`: as WayBack needs
        it. `may_rest`: as ForkComparison does."""
        last = totals.since(self._before_last)
        if self.here_seconds is not None:
            wait_seconds = max(self.here_seconds, last.wait_seconds)
            start_seconds = WARM_START_SECONDS if has_warm_feeder else START_SECONDS
            beside_forks = payback.forks_pay and not payback.forks_suffice
            held_back_seconds = self._held_back(wait_seconds, last.compute_seconds) if beside_forks else 0.0
            returns = payback.way_back.note_without(wait_seconds, last.compute_seconds, window_batches)
            payback.pays = payback.pays or returns
            may_fork = can_fork and not payback.forks_pay
            payback.note(wait_seconds, last.compute_seconds, batches_left, start_seconds, may_fork, held_back_seconds, self.by_fork, may_rest)
        self.here_seconds, self._before_last = None, totals

    def weigh_executors(self, payback: Payback, totals: Totals, forks_seconds: Callable[[], float | None]) -> bool:
        """The same where executors make the batches. `forks_seconds`: as WayBack needs it. Whether the loop goes back from these."""
        last, is_theirs = totals.since(self._before_last), self.here_seconds is None
        self.here_seconds, self._before_last = None, totals
        return is_theirs and payback.way_back.note_beside(last.wait_seconds, last.compute_seconds, forks_seconds)

    def _held_back(self, wait_seconds: float, compute_seconds: float) -> float:
        """Of the time in which the loop has computed with the last batch, what exceeds HELD_BACK_SHARE. A quota is given by tenths of a second, so the
        share is that of all the time since there are forks."""
        queued = queued_seconds()
        if queued is None or self._queued_before_seconds is None:
            self._queued_before_seconds = queued
            return 0.0
        self._beside_forks_seconds += wait_seconds + compute_seconds
        share = min(1.0, (queued - self._queued_before_seconds) / max(self._beside_forks_seconds, 1e-9))
        return max(0.0, share - HELD_BACK_SHARE) * compute_seconds


def _median(values: deque[float]) -> float:
    return sorted(values)[(len(values) - 1) // 2]
