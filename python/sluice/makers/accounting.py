"""Where the training loop's time goes: the signal by which the cluster decides who gets data workers.

Between two calls of the iterator the loop computes; inside a call it waits for data. Every second belongs to one of the two, but for the wait for a
process's very first batch. Imports, the pipeline's transport and the executors' start are no sign of a starved job. Counted as one they bring data
workers to a job that needs none.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Totals:
    """Since the account was opened; an interval that is still open counts up to now."""

    batches: int = 0
    samples: int = 0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    skipped_samples: int = 0

    def since(self, earlier: Totals) -> Totals:
        return Totals(
            self.batches - earlier.batches,
            self.samples - earlier.samples,
            self.compute_seconds - earlier.compute_seconds,
            self.wait_seconds - earlier.wait_seconds,
            self.skipped_samples - earlier.skipped_samples,
        )


class Account:
    """One stream's time and batches. Thread-safe: the loop writes, the connection's thread reads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, starting: bool = False) -> None:
        """`clock`: seconds, monotonic. `starting`: nothing counts until the first `deliver`. The account is open neither for
        computing nor for waiting until `wait`."""
        self._clock = clock
        self._starting = starting
        self._lock = threading.Lock()
        self._batches, self._samples, self._skipped_samples = 0, 0, 0
        self._compute_seconds, self._wait_seconds = 0.0, 0.0  # Up to `_since_seconds`.
        self._waiting: bool | None = None
        self._since_seconds = clock()

    def wait(self) -> None:
        """The loop asks for a batch."""
        self._turn(True)

    def compute(self) -> None:
        """The loop has what it asked for, or an exception."""
        self._turn(False)

    def stop(self) -> None:
        """The epoch is over: what the loop does now is not this stream's time."""
        self._turn(None)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Inside the loop waits; afterwards it computes, unless the epoch has ended (StopIteration)."""
        self.wait()
        try:
            yield
        except StopIteration:
            self.stop()
            raise
        except BaseException:
            self.compute()
            raise
        self.compute()

    def deliver(self, samples: int) -> None:
        """A batch of so many samples is being handed over."""
        with self._lock:
            if self._starting:
                self._starting, self._since_seconds = False, self._clock()
            self._batches += 1
            self._samples += samples

    def skip(self, samples: int) -> None:
        """The batch that was handed over lacks so many of its samples."""
        with self._lock:
            self._skipped_samples += samples

    def totals(self) -> Totals:
        with self._lock:
            self._turn_locked(self._waiting)
            return Totals(self._batches, self._samples, self._compute_seconds, self._wait_seconds, self._skipped_samples)

    def _turn(self, waiting: bool | None) -> None:
        with self._lock:
            self._turn_locked(waiting)

    def _turn_locked(self, waiting: bool | None) -> None:
        now = self._clock()
        if self._waiting is not None and not self._starting:
            if self._waiting:
                self._wait_seconds += now - self._since_seconds
            else:
                self._compute_seconds += now - self._since_seconds
        self._waiting, self._since_seconds = waiting, now


class QueueSeen:
    """How full a queue of batches was when the loop asked for one: on average since the last report, or in that report if the loop has not asked since.
    Not what the queue is at the report: an epoch shorter than the time between two reports is told of at its end only, when its queue is empty. Not
    thread-safe."""

    def __init__(self) -> None:
        self._asked, self._ready, self._capacity = 0, 0, 0  # Since the last report.
        self._report = {"queue_depth": 0.0, "queue_capacity": 0.0}

    def note(self, ready: int, pending: int) -> None:
        """The loop asks for a batch: so many are ready, and so many besides are asked for."""
        self._asked += 1
        self._ready += ready
        self._capacity += ready + pending

    def report(self) -> dict[str, float]:
        if self._asked:
            self._report = {"queue_depth": round(self._ready / self._asked, 3), "queue_capacity": round(self._capacity / self._asked, 3)}
            self._asked, self._ready, self._capacity = 0, 0, 0
        return self._report
