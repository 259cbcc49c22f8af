"""When a request is asked for once more: the slowest of a hundred keep a whole batch waiting, and another server of the store answers at once.

As "The Tail at Scale" (Dean, Barroso, 2013) has hedged requests. Thread-safe.
"""

from __future__ import annotations

import threading
from collections import deque

_REMEMBERED = 256
_KNOWN_ENOUGH = 32  # With fewer answers no request counts as late.
_SHARE_IN_TIME = 0.99
_LEAST_SECONDS = 0.02  # Another request costs more than such a wait.
_REQUESTS_PER_HEDGE = 20
_BYTES_LIKE_A_REQUEST = 1 << 20  # A mebibyte takes about as long again as the first byte.


class LateRequests:
    """What requests took, and how many were asked for once more: one of twenty at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds: deque[float] = deque(maxlen=_REMEMBERED)  # for a size of one
        self._allowance = 0.0

    def took(self, nbytes: int, seconds: float) -> None:
        """Of an answer that was good."""
        with self._lock:
            self._seconds.append(seconds / _size(nbytes))
            self._allowance = min(self._allowance + 1 / _REQUESTS_PER_HEDGE, _REMEMBERED / _REQUESTS_PER_HEDGE)

    def late_after_seconds(self, nbytes: int) -> float | None:
        """Seconds that a request of this size may take. None while fewer than 32 answers are known."""
        with self._lock:
            known = sorted(self._seconds)
        if len(known) < _KNOWN_ENOUGH:
            return None
        return max(_LEAST_SECONDS, known[min(len(known) - 1, int(len(known) * _SHARE_IN_TIME))] * _size(nbytes))

    def may_ask_again(self) -> bool:
        """Takes one from what may be asked for again."""
        with self._lock:
            allowed = self._allowance >= 1
            self._allowance -= allowed
            return allowed

    def store_is_busy(self) -> None:
        """It said that it is too much: nothing is asked for twice until more answers have come."""
        with self._lock:
            self._allowance = 0.0


def _size(nbytes: int) -> float:
    return 1 + nbytes / _BYTES_LIKE_A_REQUEST
