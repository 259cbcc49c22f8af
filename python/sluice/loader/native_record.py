"""Whether a native pipeline suits its files. What native executors cannot decode, this process makes, a whole batch at a time, while the loop
waits. That is right for a few odd files. With many of them the Python executors are faster."""

from __future__ import annotations

LEAST_FAILED_BATCHES = 8
MOST_FAILED_SHARE = 1 / 8


class NativeRecord:
    """Of one pass. Not thread-safe."""

    def __init__(self) -> None:
        self._batches = 0
        self._failed = 0

    def note(self, failed: bool) -> bool:
        """A batch has been made, or has failed for one of its files. Whether so many have failed that others should make the rest."""
        self._batches += 1
        self._failed += failed
        return failed and self._failed >= LEAST_FAILED_BATCHES and self._failed >= MOST_FAILED_SHARE * self._batches

    def in_words(self) -> str:
        return f"{self._failed} of {self._batches} batches failed natively"
