"""The iterator of a loader of an iterable data set: its batches come from streams (docs/designs/iterable.md)."""

from __future__ import annotations

import warnings
from typing import Any

from sluice.executor.computation import BatchRequest
from sluice.executor.iterable import StreamEnd, Streams
from sluice.feeder.answer import Answer
from sluice.loader import costs
from sluice.loader.checkpoint import Progress
from sluice.loader.iterator import FeederIterator
from sluice.makers.forks import Forked


class IterableIterator(FeederIterator):
    """The streams' batches in turn, as torch has them: worker after worker, without those that have ended."""

    _history: Streams

    def __next__(self) -> Any:
        batch = super().__next__()
        length = self._IterableDataset_len_called
        if length is not None and self._num_yielded > length:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {length}(when accessing len(dataloader)), but {self._num_yielded} "
                "samples have been fetched. For multiprocessing data-loading, this could be caused by not properly configuring the "
                "IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples.",
                stacklevel=2,
            )
        return batch

    def _new_history(self, resume: Progress | None) -> Streams:
        streams = Streams(self._pipeline.num_workers, resume.streams if resume is not None else None)
        self._progress.streams = streams.taken
        return streams

    def _skip(self, resume: Progress) -> None:
        """Each stream makes its own batches again, when it is first asked."""
        self._next_seq = self._history.first_number()
        self._progress.consumed = self._num_yielded = resume.consumed

    def _may_draw(self, window: int) -> bool:
        self._exhausted = self._history.have_ended
        return not self._exhausted and len(self._outstanding) < self._prefetch_batches

    def _may_leave_to_forks(self, first: BatchRequest) -> bool:
        """Before any stream has ended: forks and executors differ in what comes then."""
        return first.seq == 0

    def _draw(self) -> BatchRequest | None:
        """The next request in turn, of a stream that has not ended. REQUIRES: _may_draw()."""
        while self._history.has_ended(self._next_seq % self._num_workers):
            self._next_seq += 1
        seq, workers = self._next_seq, self._num_workers
        first_sample = seq // workers * self._batch_size
        keys = list(range(first_sample, first_sample + self._batch_size))
        return self._add(BatchRequest(seq, self._base_seed, self._pass_number, seq * self._batch_size, keys, seq % workers, workers))

    def _next_data(self) -> Any:
        self._weigh()
        while True:
            self._require_next()
            request, made = self._obtain()
            del self._outstanding[request.seq]
            try:
                batch = self._open(request, made)
            except BaseException:
                self._take(request, made)
                raise
            if isinstance(batch, StreamEnd):
                self._end(request.worker_id)
                continue
            self._take(request, made)
            costs.note(self._measured, self._stream, self._pipeline, request, made)
            return self._pinned(batch)

    def _take(self, request: BatchRequest, made: Answer | Forked | None) -> None:
        """The loop gets the request's batch, or what was raised in its place."""
        self._history.take(request.worker_id)
        self._progress.hand_over(self._progress.consumed)
        self._note_taken(request)
        self._fill()

    def _end(self, worker_id: int) -> None:
        """A stream has ended: nothing more is expected of it."""
        self._history.end(worker_id)
        if self._history.have_ended:
            self._forget(list(self._outstanding))
        elif not self._serves_here():
            self._forget([seq for seq, request in self._outstanding.items() if request.worker_id == worker_id])

    def _forget(self, seqs: list[int]) -> None:
        for seq in seqs:
            del self._outstanding[seq]
            if seq in self._unasked:
                self._unasked.remove(seq)
            elif self._forks is None:
                self._stream.forget(seq)
