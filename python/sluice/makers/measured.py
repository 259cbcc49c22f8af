"""What a loader's batches have cost and who has made them, and how long its loop has computed and waited for them.

One entry for each batch that the loop gets: of the executors' CPU-seconds by operation, as the answers say it, and of the loop's time, as its
account says it.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice.makers.accounting import Account, Totals

# Who makes batches. The first two are a feeder's words.
LOCAL, REMOTE, FORKS, HERE = "local", "remote", "forks", "here"
MAKERS = {LOCAL: "executors of the feeder", REMOTE: "data workers", FORKS: "forks of this process", HERE: "this process"}
# The first batches of an epoch, and of new makers, are not what follows: queues fill, files and code are read for the first time.
WARM_UP_BATCHES = 20
_MOST_UNREAD = 128


@dataclass
class Cost:
    """Of one operation, over all its batches: CPU-seconds, and the bytes that it has made (0: not known)."""

    seconds: float = 0.0
    bytes: int = 0

    def include(self, other: Cost) -> None:
        self.seconds += other.seconds
        self.bytes += other.bytes


@dataclass
class Kept:
    """Of one function whose results a cache may keep: its calls, and how many of these were found there. `saved_seconds`: estimated; `bytes`: of what was found."""

    calls: int = 0
    hits: int = 0
    saved_seconds: float = 0.0
    bytes: int = 0

    def include(self, other: Kept) -> None:
        self.calls += other.calls
        self.hits += other.hits
        self.saved_seconds += other.saved_seconds
        self.bytes += other.bytes


@dataclass
class Work:
    """The batches of one kind of executor, native or Python. `seconds`: CPU, all of it; `ops`: of that, by operation. `blocked_seconds`: that executors
    waited for what they read; None: some do not know it. `kept`: by function."""

    batches: int = 0
    samples: int = 0
    seconds: float = 0.0
    ops: dict[str, Cost] = field(default_factory=dict)
    blocked_seconds: float | None = 0.0
    kept: dict[str, Kept] = field(default_factory=dict)

    def include(self, other: Work) -> None:
        is_known = self.blocked_seconds is not None and other.blocked_seconds is not None
        self.blocked_seconds = (self.blocked_seconds or 0.0) + (other.blocked_seconds or 0.0) if is_known else None
        self.batches += other.batches
        self.samples += other.samples
        self.seconds += other.seconds
        for op, cost in other.ops.items():
            self.ops.setdefault(op, Cost()).include(cost)
        for function, calls in other.kept.items():
            self.kept.setdefault(function, Kept()).include(calls)


@dataclass
class Pace:
    """The loop's latest batches that came from one and the same place, but for the first ones of it. Seconds of all together: the loop computed and
    waited by its own clock, executors computed (`cpu_seconds`) and waited for what they read (`blocked_seconds`; None: some do not know it)."""

    maker: str = ""
    batches: int = 0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    cpu_seconds: float = 0.0
    blocked_seconds: float | None = 0.0


class Measured:
    """Of one loader's present pipeline, over all its epochs. Thread-safe: the loop adds, any thread looks."""

    def __init__(self, pipeline: tuple[str, ...] = ()) -> None:
        """`pipeline`: in words."""
        self._pipeline = pipeline
        self._lock = threading.Lock()
        self._unread: deque[tuple] = deque()
        self._made: dict[str, int] = {}
        self._work: dict[str, Work] = {}
        self._pace = Pace()
        self._warm_up = WARM_UP_BATCHES
        self._account: Account | None = None  # Of the last batch's epoch,
        self._last = Totals()                 # and what it said then.

    def __reduce__(self) -> tuple:
        """A copy of the loader, pickled or not, has measured nothing yet."""
        return Measured, (self._pipeline,)

    @staticmethod
    def of(before: Measured | None, pipeline: tuple[str, ...]) -> Measured:
        """What was measured `before`, if it was this pipeline; else nothing yet."""
        return before if before is not None and before._pipeline == pipeline else Measured(pipeline)

    @staticmethod
    def together(parts: list[Measured]) -> Measured:
        """Of loaders that look alike; the pace is that of the loop which has had the most batches of late."""
        total = Measured()
        for made, work, pace in [part.so_far() for part in parts]:
            for maker, count in made.items():
                total._made[maker] = total._made.get(maker, 0) + count
            for executor, one in work.items():
                total._work.setdefault(executor, Work()).include(one)
            total._pace = max(total._pace, pace, key=lambda each: each.batches)
        return total

    def add(self, maker: str, executor: str, samples: int, ops: list, account: Account, seconds: float | None = None,
            blocked_seconds: float | None = None, kept: Sequence = ()) -> None:
        """A batch that the loop gets, made by an executor `native` or `python`. `ops`: [name, CPU-seconds, bytes] each. `account`: of the
        loop's epoch. `seconds`: the CPU that the batch has taken; None: that of its operations. `blocked_seconds`: None if unknown. `kept`:
        [function, calls, hits, seconds saved, bytes] each."""
        self._unread.append((maker, executor, samples, ops, account, account.totals(), seconds, blocked_seconds, kept))
        if len(self._unread) >= _MOST_UNREAD:
            with self._lock:
                self._read()

    def _read(self) -> None:
        """Many at a time, as one alone would find nothing of this in the processor's caches. REQUIRES: the lock is held."""
        for _ in range(len(self._unread)):
            maker, executor, samples, ops, account, totals, seconds, blocked_seconds, kept = self._unread.popleft()
            self._made[maker] = self._made.get(maker, 0) + 1
            work = self._work.setdefault(executor, Work())
            spent_seconds = 0.0
            for name, op_seconds, op_bytes in ops:
                work.ops.setdefault(name, Cost()).include(Cost(op_seconds, op_bytes))
                spent_seconds += op_seconds
            for function, *calls in kept:
                work.kept.setdefault(function, Kept()).include(Kept(*calls[:4]))  # A newer feeder may say more.
            seconds = spent_seconds if seconds is None else max(seconds, spent_seconds)
            work.include(Work(1, samples, seconds, blocked_seconds=blocked_seconds))
            before = self._last if account is self._account else Totals()
            self._pass(maker, seconds, blocked_seconds, totals.since(before))
            self._account, self._last = account, totals

    def _pass(self, maker: str, cpu_seconds: float, blocked_seconds: float | None, loop: Totals) -> None:
        """Data workers and the feeder's own executors are one place."""
        place = LOCAL if maker == REMOTE else maker
        pace = self._pace
        if place != pace.maker:
            self._pace, self._warm_up = Pace(maker=place), WARM_UP_BATCHES
        elif self._warm_up > 0:
            self._warm_up -= 1
        else:
            pace.batches += 1
            pace.compute_seconds += loop.compute_seconds
            pace.wait_seconds += loop.wait_seconds
            pace.cpu_seconds += cpu_seconds
            is_known = pace.blocked_seconds is not None and blocked_seconds is not None
            pace.blocked_seconds = (pace.blocked_seconds or 0.0) + (blocked_seconds or 0.0) if is_known else None

    def so_far(self) -> tuple[dict[str, int], dict[str, Work], Pace]:
        """Batches by who has made them; work by kind of executor; the pace. Copies."""
        with self._lock:
            self._read()
            return copy.deepcopy((self._made, self._work, self._pace))
