"""The keys of all batches of a pass, by virtual worker: what is needed to rebuild one that was lost.

As bytes: for each batch the number of its keys and the keys, all i64 little-endian.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.computation import BatchRequest


class History:
    """Of one pass. Not thread-safe, but it only grows: other threads may ask for what comes before a batch that was added."""

    def __init__(self, num_workers: int) -> None:
        self._words = [array("q") for _ in range(num_workers)]
        self._starts: list[list[int]] = [[] for _ in range(num_workers)]  # By batch: where its words begin.
        self.is_complete = True  # False from the first batch on whose keys are no integers.

    def add(self, request: BatchRequest) -> None:
        """Call in the order of the sampler."""
        words = self._words[request.worker_id]
        self._starts[request.worker_id].append(len(words))
        try:
            words.extend((len(request.indices), *request.indices) if self.is_complete else ())
        except (TypeError, OverflowError):
            self.is_complete = False
            del words[self._starts[request.worker_id][-1] :]

    def before(self, request: BatchRequest) -> bytes:
        """Of the batches of the same virtual worker before this one; as far as keys are integers."""
        starts = self._starts[request.worker_id]
        return _little_endian(self._words[request.worker_id][: starts[request.seq // request.num_workers]]).tobytes()


def batches_of(history: bytes) -> list[list[int]]:
    """The keys of each batch. Raises ValueError for bytes that `History.before` cannot have made."""
    words = array("q")
    words.frombytes(history)
    numbers, batches, place = _little_endian(words).tolist(), [], 0
    while place < len(numbers):
        end = place + 1 + numbers[place]
        if not place < end <= len(numbers):
            raise ValueError("a virtual worker's history ends in the middle of a batch")
        batches.append(numbers[place + 1 : end])
        place = end
    return batches


def _little_endian(words: array) -> array:
    if sys.byteorder == "big":
        words = words[:]
        words.byteswap()
    return words
