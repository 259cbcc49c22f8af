"""The iterator of a loader with persistent_workers whose data set keeps state (docs/designs/sticky-workers.md).

torch's workers go on over all epochs: with their copies of the data set, with their random states, and without another call of worker_init_fn. So
the virtual workers of all passes are the same ones. What the loop leaves behind of a pass they make all the same, as torch's workers do.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

from sluice.executor.computation import BatchRequest
from sluice.executor.history import History
from sluice.executor.skipping import Reduced
from sluice.feeder.answer import Answer
from sluice.loader.checkpoint import Progress
from sluice.loader.iterator import FeederIterator
from sluice.loader.prediction import Moment
from sluice.loader.stream import Stream
from sluice.makers.forks import Forked
from sluice.makers.payback import Payback


class PersistentIterator(FeederIterator):
    """Its virtual workers stay where they were in the first pass: forks of this process, or executors. Elsewhere they would have to make again
    all that they have made."""

    _history: History

    def __init__(self, *arguments: Any) -> None:
        """As FeederIterator's."""
        self._first_pass: int | None = None  # Of its virtual workers; None: there are none.
        self._lives_here: bool | None = None  # None: not decided.
        super().__init__(*arguments)

    def _new_history(self, resume: Progress | None) -> History:
        if self._first_pass is None:
            self._first_pass, self._lives_here = self._pass_number, None
            self._history = History(self._pipeline.num_workers)
        else:
            self._history.begin_pass(forgets=bool(self._lives_here))
        self._progress.first_pass = self._first_pass
        return self._history

    def _begin_stream(self, loader: Any, epoch: int, before: Moment | None) -> Stream:
        if self._first_pass == self._pass_number:
            return super()._begin_stream(loader, epoch, before)
        self._stream.begin_pass(epoch)
        return self._stream

    def _serves_here(self) -> bool:
        if self._lives_here is None:
            self._lives_here = super()._serves_here()
        return self._lives_here

    def _may_leave_to_forks(self, first: BatchRequest) -> bool:
        """In each pass the first fork begins, which so has to be the first virtual worker."""
        self._lives_here = first.worker_id == 0 and super()._may_leave_to_forks(first)
        return self._lives_here

    def _try_executor(self, payback: Payback) -> None:
        """None takes over."""

    def _may_draw(self, window: int) -> bool:
        """As far as torch and no further: what is drawn when the loop breaks off, its workers make."""
        return self._next_seq < self._prefetch_batches + self._progress.handed_over

    def _next_number(self) -> int:
        return self._history.number(self._next_seq)

    def _place(self, request: BatchRequest) -> int:
        return self._history.place(request.seq)

    def _open(self, request: BatchRequest, made: Answer | Forked | None) -> Any:
        batch = super()._open(request, made)
        if not isinstance(batch, Reduced):
            return batch
        return dataclasses.replace(batch, skipped=[dataclasses.replace(sample, batch=self._place(request)) for sample in batch.skipped])

    def _close(self) -> None:
        """The pass is over, and its workers go on. torch's make first what the loop has not taken."""
        if self._payback is not None and self._lives_here:
            self._finish_in_forks(self._payback)
        elif self._history.is_complete:
            self._finish_in_executors()
        else:
            self._finish_in_this_process()
        self._outstanding.clear()
        self._unasked.clear()
        self._exhausted = True
        self._stream.rest()

    def _finish_in_forks(self, payback: Payback) -> None:
        """Raises RuntimeError, torch's own, if one has died."""
        self._give_to_forks(payback)
        while self._forks is not None and not self._forks.is_idle:
            self._forks.take()
            self._give_to_forks(payback)
        if self._forks is not None:
            self._forks.rest()

    def _finish_in_executors(self) -> None:
        """Their answers are dropped. A worker that is lost meanwhile gets to know the batches with the next request."""
        for seq in self._unasked:
            self._stream.request(self._outstanding[seq])
        for seq in self._outstanding:
            self._stream.forget(seq)

    def _finish_in_this_process(self) -> None:
        """Where keys are no integers it makes them all, from the first of these on."""
        for request in self._outstanding.values():
            with contextlib.suppress(Exception):
                self._compute(request)
            self._stream.forget(request.seq)

    def _shutdown_workers(self) -> None:
        super()._close()
        self._end_forks()
        self._let_go()
        self._first_pass = None
