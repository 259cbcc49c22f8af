"""When a loop leaves the executors again for its own forks, and when it tries executors anew (docs/designs/stepping-aside.md).

In a full cluster a sidecar with a small CPU limit may be all that makes a loop's batches. Its forks have the CPUs of the trainer.
"""

from __future__ import annotations

from collections import deque

from sluice.notices import log

_COMPARED_BATCHES = 24
_JUDGED_SECONDS = 10.0  # Of the loop, for one look.
_SLOW_LOOKS = 2  # In a row. One may be an executor that is lost and replaced, or that imports what it needs.
_SLOW_LOOKS_AFTER_REST = 1  # Where the executors are those that were slow before.
_SLOWER = 1.1
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 60.0, 960.0
_SHORTEST_REST_SECONDS = 20.0


class _Batches:
    """How long the loop has waited for some batches, and computed with them."""

    def __init__(self) -> None:
        self.count, self.wait_seconds, self.compute_seconds = 0, 0.0, 0.0

    def add(self, wait_seconds: float, compute_seconds: float) -> None:
        self.count += 1
        self.wait_seconds += wait_seconds
        self.compute_seconds += compute_seconds

    @property
    def loop_seconds(self) -> float:
        return self.wait_seconds + self.compute_seconds

    def are_slower_than(self, other: _Batches) -> bool:
        """Whether the loop takes longer for one of them, and because it waits."""
        waits = self.wait_seconds * other.count > other.wait_seconds * self.count
        return waits and self.loop_seconds * other.count > _SLOWER * other.loop_seconds * self.count


class WayBack:
    """Of one loader, over all its epochs. The loop goes back once executors have been slower than what it had before, in two looks of ten seconds in a
    row. Then it rests from them: for a minute at first, and twice as long each time. After that one slow look is enough. A feeder whose window grows
    has got CPU or data workers, so that ends the rest, and they get two looks."""

    def __init__(self) -> None:
        self._before: deque[tuple[float, float]] = deque(maxlen=_COMPARED_BATCHES)  # Waits and computing without executors, the last ones.
        self._look = _Batches()
        self._slow_looks_left = _SLOW_LOOKS
        self._rest_seconds = 0.0  # Of the loop, that are left.
        self._rested_seconds = 0.0
        self._next_rest_seconds = _FIRST_REST_SECONDS
        self._least_window_batches: int | None = None  # Of the feeder, in this rest.

    @property
    def rests(self) -> bool:
        """Whether no executor is tried now."""
        return self._rest_seconds > 0

    def note_without(self, wait_seconds: float, compute_seconds: float, window_batches: int) -> None:
        """The loop has had a batch from its own process or a fork. `window_batches`: the feeder's, now."""
        self._before.append((wait_seconds, compute_seconds))
        if not self.rests:
            return
        seconds = wait_seconds + compute_seconds
        self._rest_seconds -= seconds
        self._rested_seconds += seconds
        least = self._least_window_batches
        self._least_window_batches = window_batches if least is None else min(least, window_batches)
        if self._rested_seconds >= _SHORTEST_REST_SECONDS and window_batches > self._least_window_batches:
            self._rest_seconds, self._slow_looks_left = 0.0, _SLOW_LOOKS

    def note_beside(self, wait_seconds: float, compute_seconds: float) -> bool:
        """The loop has had a batch from an executor. Whether it goes back now."""
        self._look.add(wait_seconds, compute_seconds)
        if self._look.loop_seconds < _JUDGED_SECONDS:
            return False
        look, self._look, before = self._look, _Batches(), _Batches()
        for waited_seconds, computed_seconds in self._before:
            before.add(waited_seconds, computed_seconds)
        if not (before.count and look.are_slower_than(before)):
            self._slow_looks_left, self._next_rest_seconds = _SLOW_LOOKS, max(_FIRST_REST_SECONDS, self._next_rest_seconds / 2)
            return False
        self._slow_looks_left -= 1
        if self._slow_looks_left > 0:
            return False
        log.info("executors take %.3g s for a batch of the loop, its own process and forks took %.3g s: it goes back to these for %.0f s", look.loop_seconds / look.count,
                 before.loop_seconds / before.count, self._next_rest_seconds)  # fmt: skip
        self._slow_looks_left, self._rested_seconds, self._least_window_batches = _SLOW_LOOKS_AFTER_REST, 0.0, None
        self._rest_seconds = self._next_rest_seconds
        self._next_rest_seconds = min(_LONGEST_REST_SECONDS, 2 * self._next_rest_seconds)
        return True
