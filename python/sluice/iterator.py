"""The iterator of a loader whose batches a feeder makes.

It subclasses torch's own base iterator, so that the sampler and the base seed are drawn from the same generators, in the same
order and equally often as by torch's multi-process iterator.
"""

from __future__ import annotations

import contextlib
import logging
import operator
import os
from typing import Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sluice import checkpoint
from sluice.checkpoint import Progress
from sluice.computation import BatchRequest, untouched_process
from sluice.connection import Connection
from sluice.failures import describe, reraise
from sluice.notices import say_once
from sluice.pipeline import Pipeline
from sluice.stream import Answer, Outcome, Stream


class FeederIterator(_BaseDataLoaderIter):
    """One pass over the samples, or with persistent_workers one after the other. Not thread-safe, as torch's is not."""

    def __init__(self, loader: Any, connection: Connection, pipeline: Pipeline) -> None:
        """Raises NotSendable, before anything is drawn, if the pipeline cannot leave this process."""
        pipeline.registration(1, 1)
        self._stream: Stream | None = None
        self._connection = connection
        self._pipeline = pipeline
        self._in_order = loader.in_order
        self._batch_size = loader.batch_size or 1
        self._prefetch_batches = loader.prefetch_factor * loader.num_workers
        self._workers: list = []  # torch's iterator has processes here; some programs look.
        self._pass_number = 0
        self._begin(loader, loader._take_resume(), first=True)

    def _begin(self, loader: Any, resume: Progress | None, first: bool) -> None:
        """Starts a pass; `first`: the first of this iterator. A new epoch draws what torch would draw; a resumed one draws
        again what it has drawn, and leaves the process's own generators as they are."""
        resuming = resume is not None and resume.begun
        with checkpoint.untouched_generators() if resuming else contextlib.nullcontext():
            if resuming:
                checkpoint.restore_generators(loader, resume.generators)
            generators = checkpoint.capture_generators(loader)
            self._draw_base_seed(loader, resume, first)
            super()._reset(loader, first)
            if resume is not None and resume.base_seed is not None:
                self._base_seed, self._pass_number = resume.base_seed, resume.pass_number
            epoch = resume.epoch if resume is not None else loader._next_epoch
            self._progress = Progress(self._base_seed, True, self._pass_number, epoch, generators=generators)
            loader._follow(self._progress)
            self._next_seq, self._position = 0, 0
            self._outstanding: dict[int, BatchRequest] = {}
            self._exhausted = False
            if resuming:
                self._skip(resume)
        self._stream = Stream(self._connection, self._pipeline, self._base_seed, self._pass_number, epoch,
                              self._prefetch_batches, self._batch_size)
        self._stream.begin()
        for request in self._outstanding.values():
            if self._can_travel(request):
                self._stream.request(request)
        self._fill()

    def _draw_base_seed(self, loader: Any, resume: Progress | None, first: bool) -> None:
        """torch's constructor draws the base seed; the later passes of a persistent iterator keep it. So the drawing must
        leave no trace where a pass is resumed that drew none, and be made up for where one is resumed that did."""
        drew = resume is None or resume.pass_number == 0
        if first:
            with contextlib.nullcontext() if drew else checkpoint.untouched_generators(loader):
                super().__init__(loader)
        elif resume is not None and resume.base_seed is not None and drew:
            self._sampler_iter = iter(self._index_sampler)
            torch.empty((), dtype=torch.int64).random_(generator=loader.generator)

    def _skip(self, resume: Progress) -> None:
        """Lets the sampler run over the batches that the resumed epoch has consumed, and one further: many samplers draw only
        when first asked, and that must happen with the generators of the resumed epoch. What was not consumed is asked for."""
        consumed_end = max([resume.consumed, *(seq + 1 for seq in resume.beyond)])
        while self._next_seq <= consumed_end and self._draw() is not None:
            pass
        if self._next_seq < consumed_end:
            raise checkpoint.StateError(f"the sampler ends before batch {consumed_end}, where the state was made")
        for seq in [seq for seq in self._outstanding if seq < resume.consumed or seq in resume.beyond]:
            del self._outstanding[seq]
        self._progress.consumed, self._progress.beyond = resume.consumed, set(resume.beyond)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """torch calls this for every epoch after the first with persistent_workers."""
        self._close()
        self._pass_number += 1
        self._begin(loader, loader._take_resume(), first=False)

    def __next__(self) -> Any:
        self._check_process()
        account = self._stream.account
        account.wait()
        try:
            batch = super().__next__()
        except StopIteration:
            account.stop()
            raise
        except BaseException:
            account.compute()
            raise
        account.compute()
        return batch

    def _next_data(self) -> Any:
        self._fill()
        if not self._outstanding:
            self._progress.finished = True
            self._close()
            raise StopIteration
        request, made = self._obtain()
        del self._outstanding[request.seq]
        self._progress.hand_over(request.seq)
        self._stream.deliver(len(request.indices))
        self._fill()
        if isinstance(made, Answer):
            if made.failed and self._stream.pipeline.native is None:
                reraise(made.message, made.blob, request.worker_id)
            made = self._compute(request) if made.failed else made.open()
        elif made is None:
            made = self._compute(request)
        return pin_memory(made, self._pin_memory_device) if self._pin_memory else made

    def _obtain(self) -> tuple[BatchRequest, Answer | None]:
        """The next request to hand over, and its answer; None if it has to be computed here. Raises RuntimeError after the
        loader's timeout."""
        first = min(self._outstanding)
        if not self._can_travel(self._outstanding[first]):
            return self._outstanding[first], None
        deadline_seconds = self._connection.clock() + self._timeout if self._timeout > 0 else None
        taken = self._stream.take(first if self._in_order else None, deadline_seconds)
        if taken is Outcome.TIMED_OUT:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        if taken is Outcome.COMPUTE_HERE:
            self._stream.forget(first)
            return self._outstanding[first], None
        seq, answer = taken
        return self._outstanding[seq], answer

    def _compute(self, request: BatchRequest) -> Any:
        """Makes the batch in this process: from the same seeds, so with the same result. A native executor's failure comes
        here too: lowering must not add errors of its own, so the original decides what is wrong with the sample."""
        with untouched_process():
            try:
                return self._pipeline.computation().compute(request)
            except Exception as error:
                failure = describe(error)
        reraise(*failure, request.worker_id)

    def _fill(self) -> None:
        """Asks for batches up to the window."""
        while not self._exhausted and len(self._outstanding) < self._stream.limit_batches:
            request = self._draw()
            if request is not None and self._can_travel(request):
                self._stream.request(request)

    def _draw(self) -> BatchRequest | None:
        """The sampler's next batch; None at its end."""
        try:
            drawn = self._next_index()
        except StopIteration:
            self._exhausted = True
            return None
        keys = list(drawn) if self._auto_collation else [drawn]
        with contextlib.suppress(TypeError):
            keys = [operator.index(key) for key in keys]
        seq = self._next_seq
        request = BatchRequest(seq, self._base_seed, self._pass_number, self._position, keys, seq % self._num_workers,
                               self._num_workers)
        self._outstanding[seq] = request
        self._next_seq += 1
        self._position += len(keys)
        return request

    def _can_travel(self, request: BatchRequest) -> bool:
        """Whether a feeder can be asked: keys that are not integers, and such as the native form does not know (negative or
        too large), only the dataset itself can judge."""
        if not all(type(key) is int and -(2**63) <= key < 2**63 for key in request.indices):
            say_once(logging.WARNING, f"the sampler yields {type(request.indices[0]).__name__} keys, which only this process can look up")
            return False
        native = self._stream.pipeline.native if self._stream is not None else None
        return native is None or all(0 <= key < native.samples for key in request.indices)

    def _check_process(self) -> None:
        if self._connection.owner_pid != os.getpid():
            raise RuntimeError("this iterator was made before a fork, in the parent process; make a new one from the loader")

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._outstanding.clear()
        self._exhausted = True

    def _shutdown_workers(self) -> None:
        """What torch's iterator calls its end."""
        self._close()

    def __del__(self) -> None:
        if getattr(self, "_stream", None) is not None:
            self._stream.close()
