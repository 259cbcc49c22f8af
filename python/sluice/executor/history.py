"""The keys of all batches that virtual workers make, by worker: what is needed to rebuild one that was lost.

As bytes: for each batch the number of its keys and the keys, all i64 little-endian.
"""

from __future__ import annotations

import sys
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.executor.computation import BatchRequest

MOST_WORDS = 1 << 27  # Of one virtual worker: no frame holds more.


class History:
    """Of one pass, or of all passes of workers that persist. Not thread-safe, but it only grows: other threads may ask for what comes
    before a batch that was added."""

    def __init__(self, num_workers: int) -> None:
        self._words = [array("q") for _ in range(num_workers)]
        self._starts: list[list[int]] = [[] for _ in range(num_workers)]  # By batch: where its words begin.
        self._forgotten = [0] * num_workers  # Batches.
        self._made_before = [0] * num_workers  # Of the present pass: batches.
        self.is_complete = True  # False from the first batch on whose keys are no integers, or that find no room.

    def begin_pass(self, *, forgets: bool) -> None:
        """What is added from now on is of the next pass of the same workers. `forgets`: no later request is for what came before."""
        self._made_before = [forgotten + len(starts) for forgotten, starts in zip(self._forgotten, self._starts, strict=True)]
        if forgets:
            self._forgotten = list(self._made_before)
            self._words = [array("q") for _ in self._words]
            self._starts = [[] for _ in self._starts]

    def number(self, place: int) -> int:
        """Of the batch at this place of the present pass. Batch k of worker w's life has the number k * workers + w, so that it says how
        many come before. In the first pass it is the place."""
        workers = len(self._made_before)
        turn, worker_id = divmod(place, workers)
        return (self._made_before[worker_id] + turn) * workers + worker_id

    def place(self, number: int) -> int:
        """The place in the present pass of the batch of this number."""
        workers = len(self._made_before)
        turn, worker_id = divmod(number, workers)
        return (turn - self._made_before[worker_id]) * workers + worker_id

    def add(self, request: BatchRequest) -> None:
        """Call in the order of the sampler."""
        words = self._words[request.worker_id]
        self._starts[request.worker_id].append(len(words))
        self.is_complete = self.is_complete and len(words) + len(request.indices) < MOST_WORDS
        try:
            words.extend((len(request.indices), *request.indices) if self.is_complete else ())
        except (TypeError, OverflowError):
            self.is_complete = False
            del words[self._starts[request.worker_id][-1] :]

    def before(self, request: BatchRequest) -> bytes:
        """Of the batches of the same virtual worker before this one; as far as keys are integers."""
        batch = request.seq // request.num_workers - self._forgotten[request.worker_id]
        return _little_endian(self._words[request.worker_id][: self._starts[request.worker_id][batch]]).tobytes()


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
