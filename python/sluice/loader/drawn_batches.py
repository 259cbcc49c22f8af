"""What a pass draws from the loader's sampler and its generators, and when: as torch would, and what is decided already up to the feeder's window."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from sluice.executor.computation import BatchRequest
from sluice.executor.generators import StateError, untouched_generators
from sluice.executor.history import History
from sluice.executor.iterable import Streams
from sluice.loader.checkpoint import Progress
from sluice.loader.own_batches import TRIAL_BATCHES
from sluice.loader.pipeline import Pipeline
from sluice.loader.shown_warnings import begin
from sluice.shipping.failures import note_sampler_error


class DrawnBatches:
    """A part of FeederIterator, which has the attributes."""

    _pipeline: Pipeline
    _history: History | Streams | None
    _progress: Progress
    _outstanding: dict[int, BatchRequest]  # What was drawn and the loop has not got, in order.
    _unasked: deque[int]                   # Of that, what no feeder was asked for.
    _first_drawn: list[BatchRequest]
    _next_seq: int
    _position: int
    _pass_number: int
    _prefetch_batches: int
    _decided_batches: float
    _exhausted: bool
    _num_workers: int
    _base_seed: int
    _sampler_iter: Any
    _index_sampler: Any
    _auto_collation: bool
    _next_index: Callable[[], Any]

    def _draw_base_seed(self, loader: Any, resume: Progress | None, first: bool) -> None:
        """torch's constructor draws the base seed; later passes of a persistent iterator keep it. So the drawing must leave no trace where a pass is resumed that
        drew none, and be made up for where one is resumed that did."""
        drew = resume is None or resume.pass_number == 0
        if first:
            with contextlib.nullcontext() if drew else untouched_generators(loader):
                begin(self, loader)
        elif resume is not None and resume.base_seed is not None and drew:
            self._sampler_iter = iter(self._index_sampler)
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)

    def _skip(self, resume: Progress) -> None:
        """Lets the sampler run over the batches that the resumed epoch has consumed, and one further. Many samplers draw only when first asked, and
        that must happen with the generators of the resumed epoch. What was not consumed is asked for."""
        consumed_end = resume.consumed_end
        while self._next_seq <= consumed_end and self._draw() is not None:
            pass
        if self._next_seq < consumed_end:
            raise StateError(f"the sampler ends before batch {consumed_end}, where the state was made")
        for seq in [seq for seq in self._outstanding if seq < resume.consumed or seq in resume.beyond]:
            del self._outstanding[seq]
            self._unasked.remove(seq)
        self._progress.consumed, self._progress.beyond = resume.consumed, set(resume.beyond)

    def _follow_keys(self, loader: Any) -> None:
        """The data set gets keys of the type that the sampler yields. torch's workers, too, have drawn by now."""
        first = None if self._pipeline.is_iterable else next(iter(self._outstanding.values()), None) or self._draw()
        if first is not None:
            self._pipeline = self._pipeline.with_keys_like(first.indices)
            loader._sluice_key_type = self._pipeline.key_type

    def _draw_at_once(self, window: int) -> dict[int, BatchRequest]:
        """Draws what torch would have drawn by now, and up to the window what is decided. Returns what the loop has not got."""
        while not self._exhausted and self._may_draw(window):
            self._draw()
        return self._outstanding

    def _may_draw(self, window: int) -> bool:
        due = self._next_seq < self._prefetch_batches + self._progress.handed_over
        return due or (len(self._outstanding) < window and self._next_seq < self._decided_batches)

    def _draw(self) -> BatchRequest | None:
        """The sampler's next batch; None at its end."""
        try:
            drawn = self._next_index()
        except StopIteration:
            self._exhausted = True
            return None
        except Exception as error:
            raise note_sampler_error(error)
        return self._add(BatchRequest.of(drawn, self._next_number(), self._base_seed, self._pass_number, self._position, self._num_workers, self._auto_collation))

    def _next_number(self) -> int:
        """Of the batch that is drawn next."""
        return self._next_seq

    def _place(self, request: BatchRequest) -> int:
        """Its number in the pass."""
        return request.seq

    def _add(self, request: BatchRequest) -> BatchRequest:
        """The loop needs this batch next but for those that it waits for."""
        seq = request.seq
        self._outstanding[seq] = request
        if self._next_seq < (1 if self._history is not None else TRIAL_BATCHES):
            self._first_drawn.append(request)
        if self._history is not None:
            self._history.add(request)
        self._unasked.append(seq)
        self._next_seq += 1
        self._position += len(request.indices)
        return request
