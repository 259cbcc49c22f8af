"""When a loop leaves the executors for its own forks, and when it tries executors anew (docs/designs/stepping-aside.md).

In a full cluster a sidecar with a small CPU limit may be all that makes a loop's batches. Its forks have the CPUs of the trainer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from sluice.base.notices import log

_COMPARED_BATCHES = 24
_JUDGED_SECONDS = 10.0  # Of the loop, for one look.
_SLOW_LOOKS = 2  # In a row. One may be an executor that is lost and replaced, or that imports what it needs.
_SLOW_LOOKS_AFTER_REST = 1  # Where the executors are those that were slow before.
_SLOWER = 1.1
_STARVED_LOOKS = 3  # In a row, before forks are tried that the loop has never had. Data workers may have come by then.
_STARVED_SHARE = 0.5  # Of the loop's time.
_PROMISED_SHARE = 0.8  # Of the time that executors take.
_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 60.0, 960.0
_SHORTEST_REST_SECONDS = 20.0


class _Batches:
    """How long the loop has waited for some batches, and computed with them."""

    def __init__(self, batches: Iterable[tuple[float, float]] = ()) -> None:
        """`batches`: the wait and the computing of each."""
        self.count, self.wait_seconds, self.loop_seconds = 0, 0.0, 0.0
        for wait_seconds, compute_seconds in batches:
            self.add(wait_seconds, compute_seconds)

    def add(self, wait_seconds: float, compute_seconds: float) -> None:
        self.count += 1
        self.wait_seconds += wait_seconds
        self.loop_seconds += wait_seconds + compute_seconds

    @property
    def seconds_each(self) -> float:
        return self.loop_seconds / self.count

    def are_slower_than(self, other: _Batches) -> bool:
        """Whether the loop takes longer for one of them, and because it waits."""
        waits = self.wait_seconds / self.count > other.wait_seconds / other.count
        return waits and self.seconds_each > _SLOWER * other.seconds_each


class WayBack:
    """Of one loader, over all its epochs. A look is ten seconds of the loop.

    | the loop has | what ends it |
    | --- | --- |
    | executors, and had forks before | executors are slower in two looks in a row; after a rest in one |
    | executors from the beginning | once: it waits for half of its time in three looks in a row, and forks promise to be faster |
    | forks, and rests from executors | a minute, and twice as long after each further try; a feeder whose window grows, as it has got CPU or data workers |
    | the same | at once: forks are slower than executors were |
    """

    def __init__(self) -> None:
        self._without: deque[tuple[float, float]] = deque(maxlen=_COMPARED_BATCHES)  # The last batches that no executor has made.
        self._beside: _Batches | None = None  # The look beside executors before the rest.
        self._look = _Batches()
        self._slow_looks_left, self._starved_looks_left = _SLOW_LOOKS, _STARVED_LOOKS
        self._rest_seconds, self._next_rest_seconds = 0.0, _FIRST_REST_SECONDS  # Of the loop: what is left of one, and all of the next one.
        self._rested_seconds = 0.0
        self._least_window_batches: int | None = None  # Of the feeder, in this rest.

    @property
    def rests(self) -> bool:
        """Whether no executor is tried now."""
        return self._rest_seconds > 0

    def note_without(self, wait_seconds: float, compute_seconds: float, window_batches: int) -> bool:
        """The loop has had a batch from its own process or a fork. `window_batches`: the feeder's, now. Whether the loop returns to executors at once."""
        self._without.append((wait_seconds, compute_seconds))
        if not self.rests:
            return False
        self._rest_seconds -= wait_seconds + compute_seconds
        self._rested_seconds += wait_seconds + compute_seconds
        least = self._least_window_batches
        self._least_window_batches = window_batches if least is None else min(least, window_batches)
        look = self._looked(wait_seconds, compute_seconds)
        returns = look is not None and self._beside is not None and look.are_slower_than(self._beside)
        has_grown = self._rested_seconds >= _SHORTEST_REST_SECONDS and window_batches > self._least_window_batches
        if returns or has_grown:
            self._rest_seconds, self._slow_looks_left = 0.0, _SLOW_LOOKS
        if not self.rests:
            self._look = _Batches()  # What follows has another maker.
        return returns

    def note_beside(self, wait_seconds: float, compute_seconds: float, forks_seconds: Callable[[], float | None]) -> bool:
        """The loop has had a batch from an executor. `forks_seconds`: what forks would take for each, about; None if unknown. Whether the loop
        goes back now."""
        look = self._looked(wait_seconds, compute_seconds)
        if look is None or not (self._has_been_slow(look) if self._without else self._promises_more(look, forks_seconds)):
            return False
        log.info("beside executors the loop takes %.3g s for a batch: its own process and forks make them for the next %.0f s", look.seconds_each, self._next_rest_seconds)
        self._beside = look
        self.rest()
        return True

    def rest(self) -> None:
        """A rest from executors begins."""
        self._slow_looks_left, self._rested_seconds, self._least_window_batches = _SLOW_LOOKS_AFTER_REST, 0.0, None
        self._rest_seconds, self._next_rest_seconds = self._next_rest_seconds, min(_LONGEST_REST_SECONDS, 2 * self._next_rest_seconds)

    def _looked(self, wait_seconds: float, compute_seconds: float) -> _Batches | None:
        """The look that this batch ends, if it does."""
        self._look.add(wait_seconds, compute_seconds)
        if self._look.loop_seconds < _JUDGED_SECONDS:
            return None
        look, self._look = self._look, _Batches()
        return look

    def _has_been_slow(self, look: _Batches) -> bool:
        if look.are_slower_than(_Batches(self._without)):
            self._slow_looks_left -= 1
        else:
            self._slow_looks_left, self._next_rest_seconds = _SLOW_LOOKS, max(_FIRST_REST_SECONDS, self._next_rest_seconds / 2)
        return self._slow_looks_left <= 0

    def _promises_more(self, look: _Batches, forks_seconds: Callable[[], float | None]) -> bool:
        is_starved = look.wait_seconds > _STARVED_SHARE * look.loop_seconds
        self._starved_looks_left = self._starved_looks_left - 1 if is_starved else _STARVED_LOOKS
        if self._starved_looks_left > 0:
            return False
        promised_seconds = forks_seconds()
        return promised_seconds is not None and promised_seconds < _PROMISED_SHARE * look.seconds_each
