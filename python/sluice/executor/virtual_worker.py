"""One of torch's worker processes, wherever it runs: it keeps a copy of the data set and random states of its own, and makes
its batches in their order (docs/designs/sticky-workers.md).

So it draws the very numbers that torch's worker draws. One that is lost is rebuilt: a new one makes the same batches again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data._utils import worker as torch_worker

from sluice.base.settings import SKIP
from sluice.executor.collation import Collation
from sluice.executor.generators import ProcessGenerators
from sluice.executor.history import batches_of
from sluice.executor.iterable import Reader
from sluice.executor.keys import restored
from sluice.executor.laps import Laps
from sluice.executor.reading_ahead import read_ahead
from sluice.executor.skipping import leave_out_failures

if TYPE_CHECKING:
    from sluice.executor.computation import BatchRequest, PythonPipeline


class VirtualWorker:
    """Of one pass over the samples. Not thread-safe. Its random states are the process's own only while it works, unless it has the
    process to itself."""

    def __init__(self, pipeline: PythonPipeline, base_seed: int, worker_id: int, num_workers: int, has_process: bool = False) -> None:
        """`pipeline` belongs to this worker alone from now on. `has_process`: so does the process, as with torch. Then no batch
        pays for putting its random states aside."""
        self._pipeline = pipeline
        self._base_seed = base_seed
        self._has_process = has_process
        seed = base_seed + worker_id
        self._info = torch_worker.WorkerInfo(id=worker_id, num_workers=num_workers, seed=seed, dataset=pipeline.dataset)
        self._has_started = False
        self._generators: ProcessGenerators | None = None  # What it has put aside.
        self._start_error: Exception | None = None
        self._made_batches = 0
        self._collate = Collation(pipeline.collate_fn, pipeline.auto_collation)
        self._reader: Reader | None = None  # Of an iterable data set.

    def make(self, request: BatchRequest, history: bytes, laps: Laps) -> Any:
        """The batch, or the StreamEnd or Reduced in its place. `history`: those that come before it, as sluice.executor.history has them;
        what this worker has not made of them it makes first. `laps`: of all these. Of a stream, the number of the request says
        how many come before. Raises whatever the user's code raises."""
        self._collate.laps = laps
        before = request.seq // request.num_workers
        with self._at_work():
            if self._made_batches < before:
                for keys in self._keys_before(request, history):
                    with contextlib.suppress(Exception, SystemExit, KeyboardInterrupt):  # It was told when it happened.
                        self._next(keys)
            if self._made_batches != before:
                raise RuntimeError(f"virtual worker {request.worker_id} has made {self._made_batches} batches of the {before} before this one")
            return self._next(request.indices)

    def _keys_before(self, request: BatchRequest, history: bytes) -> list[list]:
        """Of the batches that it has not made, and that come before this one."""
        before = request.seq // request.num_workers
        if self._pipeline.iterable:
            return [request.indices] * (before - self._made_batches)
        return [restored(keys, self._pipeline.key_type) for keys in batches_of(history)[self._made_batches : before]]

    def _next(self, keys: list) -> Any:
        self._made_batches += 1
        if self._start_error is not None:
            raise self._start_error
        pipeline, dataset = self._pipeline, self._pipeline.dataset
        if self._reader is not None:
            return self._reader.fetch(keys, self._collate.laps)
        if pipeline.auto_collation:
            read_ahead(dataset, keys)
        if pipeline.on_error == SKIP:
            return self._next_without_failures(keys)
        if not pipeline.auto_collation:
            data = dataset[keys[0]]
        elif getattr(dataset, "__getitems__", None):
            data = dataset.__getitems__(keys)
        else:
            data = [dataset[key] for key in keys]
        return self._collate(data)

    def _next_without_failures(self, keys: list) -> Any:
        pipeline, info = self._pipeline, self._info
        number = info.id + info.num_workers * (self._made_batches - 1)
        at_once = pipeline.auto_collation and bool(getattr(pipeline.dataset, "__getitems__", None))
        return leave_out_failures(pipeline.dataset, number, keys, pipeline.auto_collation, at_once, lambda place: None, self._collate)

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """The process has this worker's random states and info inside."""
        with self._pipeline.at_work():
            torch_worker._worker_info = self._info
            if not self._has_started:
                self._has_started = True
                self._start()
            elif self._generators is not None:
                self._generators.enter()
            try:
                yield
            finally:
                if not self._has_process:
                    self._generators = ProcessGenerators.capture()

    def _start(self) -> None:
        ProcessGenerators.seed_as_worker(self._base_seed, self._info.id)
        try:
            if self._pipeline.worker_init_fn is not None:
                self._pipeline.worker_init_fn(self._info.id)
            if self._pipeline.iterable:
                self._reader = Reader(self._pipeline)
        except Exception as error:  # torch tells it in the place of the first batch.
            self._start_error = error
