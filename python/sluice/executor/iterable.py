"""Streams: the virtual workers of an iterable data set (docs/designs/iterable.md).

A stream's batches come in one order, so their number says all that has to be known to make them again. The end of a stream is an
answer like a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.utils.data._utils.fetch import _IterableDatasetFetcher

from sluice.executor.collation import Collation
from sluice.executor.laps import Laps

if TYPE_CHECKING:
    from sluice.executor.computation import BatchRequest, PythonPipeline


class StreamEnd:
    """In the place of a batch: the stream has no more."""


class Reader:
    """What a worker of torch's does with its copy of an iterable data set. Not thread-safe."""

    def __init__(self, pipeline: PythonPipeline) -> None:
        """Raises what the data set's `__iter__` raises."""
        self._collate = Collation(pipeline.collate_fn, pipeline.auto_collation)
        self._fetcher = _IterableDatasetFetcher(pipeline.dataset, pipeline.auto_collation, self._collate, pipeline.drop_last)
        self._has_ended = False

    def fetch(self, keys: list, laps: Laps) -> Any:
        """The next batch of at most so many samples, or a StreamEnd. `laps`: of this batch. Raises whatever the user's code raises."""
        if self._has_ended:
            return StreamEnd()
        self._collate.laps = laps
        try:
            return self._fetcher.fetch(keys)
        except StopIteration:
            self._has_ended = True
            return StreamEnd()


class Streams:
    """How far the loop is in each stream of a pass, in place of a History. Batch number n of all is asked of stream n modulo their
    number, as torch does it; an ended stream is passed over. Not thread-safe."""

    is_complete = True

    def __init__(self, num_workers: int, taken: list[int | None] | None = None) -> None:
        """`taken`: where a resumed pass begins."""
        self.taken: list[int | None] = list(taken) if taken is not None else [0] * num_workers  # Batches; None: it has ended.

    def add(self, request: BatchRequest) -> None:
        """As History.add: there is nothing to remember."""

    def before(self, request: BatchRequest) -> bytes:
        """As History.before: the number of the request says it."""
        return b""

    def take(self, worker_id: int) -> None:
        """The loop gets the stream's next batch."""
        taken = self.taken[worker_id]
        if taken is not None:
            self.taken[worker_id] = taken + 1

    def end(self, worker_id: int) -> None:
        """The stream has no more batches."""
        self.taken[worker_id] = None

    def has_ended(self, worker_id: int) -> bool:
        return self.taken[worker_id] is None

    @property
    def have_ended(self) -> bool:
        """Whether all have."""
        return all(taken is None for taken in self.taken)

    def first_number(self) -> int:
        """Of the batch that the loop needs next; 0 if all have ended."""
        workers = len(self.taken)
        return min((taken * workers + worker_id for worker_id, taken in enumerate(self.taken) if taken is not None), default=0)
