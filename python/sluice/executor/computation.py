"""A loaded Python pipeline and how it makes one batch. The same code runs in an executor's child and, when no feeder answers, in the trainer's own
process. A batch depends on the request alone, never on who computes it or what was computed before. Only where the data set
keeps state, virtual workers make the batches: then it depends on those that came before it, too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils.data._utils import worker as torch_worker

from sluice.base.inherited import Inherited
from sluice.base.settings import RAISE, SKIP
from sluice.base.signal_handlers import handlers_stay
from sluice.executor.collation import collate, runs_no_code_of_the_user
from sluice.executor.draws import Draws
from sluice.executor.generators import untouched_generators
from sluice.executor.keys import restored
from sluice.executor.laps import COLLATE, DATASET, Laps
from sluice.executor.process_end import ends_are_told
from sluice.executor.reading_ahead import read_ahead
from sluice.executor.seeds import collate_seed, sample_seed, seed_everything
from sluice.executor.skipping import leave_out_failures
from sluice.executor.subsets import innermost
from sluice.executor.tensor_rows import batch_of_rows
from sluice.executor.virtual_worker import VirtualWorker
from sluice.shipping.own_code import Snapshot
from sluice.shipping.plain_data import PlainParts
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.self_change import Watch
from sluice.shipping.shipment import Received

_MOST_RANKS = 16  # Whose copies of a data set that learns are kept.


@dataclass(frozen=True)
class BatchRequest:
    """One batch to make. `position` is that of its first sample, counted in samples from the start of the epoch; `indices`
    are dataset keys, a single one if the loader does not batch; `worker_id` is virtual, 0 .. num_workers-1."""

    seq: int
    base_seed: int
    epoch: int
    position: int
    indices: list
    worker_id: int
    num_workers: int

    @staticmethod
    def of(drawn: Any, seq: int, base_seed: int, epoch: int, position: int, num_workers: int, batched: bool) -> BatchRequest:
        """For what a sampler has yielded: a batch's keys, or a single key unless `batched`."""
        keys = list(drawn) if batched else [drawn]
        return BatchRequest(seq, base_seed, epoch, position, keys, seq % num_workers, num_workers)


@dataclass
class PythonPipeline:
    """What the Python executor needs. `collate_fn` None stands for torch's default. `sticky`: its batches are made by virtual
    workers; only those call `worker_init_fn`. `iterable`: these are streams (sluice.executor.iterable), for which alone `drop_last` counts.
    `on_error`: of a sample, as the loader has it; not for streams. `key_type`: of the keys that travel to it as plain integers."""

    dataset: Any
    collate_fn: Any
    auto_collation: bool
    worker_init_fn: Any = None
    sticky: bool = False
    iterable: bool = False
    drop_last: bool = False
    on_error: str = RAISE
    key_type: type = int
    snapshot: Snapshot | None = None  # Of the script's code, in a copy that its own process has made.

    def at_work(self) -> contextlib.AbstractContextManager:
        """Inside, the copy's code sees what it would see in a worker of its own."""
        return self.snapshot.in_place() if self.snapshot is not None else contextlib.nullcontext()


class Computation:
    """Makes batches of one pipeline; of a sticky one, those of a single pass. Not thread-safe; changes this process's random
    state (see `untouched_process`)."""

    def __init__(self, memory: SealedMemory, state: bytes = b"", at_home: bool = False, parts: PlainParts | None = None) -> None:
        """`memory`, `state` and `parts`: as sluice.shipping.shipment describes a PythonPipeline. `at_home`: in this process. Raises whatever unpickling
        the user's objects raises."""
        self._received = Received(memory, at_home, parts)
        self._pipeline: PythonPipeline = self._received.load(state)
        if not at_home:
            self._received.surroundings(state).enter_modules()
        self._state = state
        self._rank: frozenset = frozenset()
        self._watch: Watch | None = None  # Of a process that serves ranks, from before its first batch on.
        self._of_ranks: dict[frozenset, PythonPipeline] = {}
        self._virtual_workers: dict[int, VirtualWorker] = {}
        self._draws = Draws()
        self.laps = Laps()  # Of the last batch, whether it was made or has failed.
        self.watch: Callable[[int], None] | None = None  # Told before a sample how many of its batch are made. What it raises ends the batch.

    @property
    def dataset(self) -> Any:
        """The copy of the data set that batches are made from; of a sticky pipeline, that of its first virtual worker."""
        return self._pipeline.dataset

    def arrived(self, request: BatchRequest) -> BatchRequest:
        """The request with the sampler's own keys. `request`: as it has travelled, with plain integers."""
        return replace(request, indices=restored(request.indices, self._pipeline.key_type))

    @property
    def is_sticky(self) -> bool:
        """Whether virtual workers make its batches."""
        return self._pipeline.sticky

    def enter(self, state: bytes) -> None:
        """Goes over to `state` (empty: as described), surroundings included: for an executor's child. Raises whatever
        unpickling the user's objects raises."""
        surroundings = self._received.surroundings(state)
        surroundings.enter()
        self.renew(state)
        surroundings.enter_modules()
        self._follow(surroundings.rank())

    def renew(self, state: bytes) -> None:
        """Goes over to `state`, but not to its surroundings."""
        self._state = state
        if (loaded := self._received.load(state)) is not None:
            self._pipeline, self._watch, self._of_ranks = loaded, None, {}

    def _follow(self, rank: frozenset) -> None:
        """The next batches are those of `rank`. All ranks share what was loaded, unless it has learnt something when it was read: then that
        may be the rank, and each has its own."""
        before, self._rank = self._rank, rank
        self._watch = self._watch or Watch(self._pipeline.dataset)
        if rank == before or not (self._of_ranks or self._watch.has_learnt()):
            return
        self._of_ranks[before] = self._pipeline
        known = self._of_ranks.pop(rank, None)
        self._pipeline = self._received.copy(self._state) if known is None else known
        while len(self._of_ranks) > _MOST_RANKS:
            del self._of_ranks[next(iter(self._of_ranks))]

    def compute(self, request: BatchRequest, history: bytes = b"", stacks: bool = False) -> Any:
        """The collated batch, or a Reduced if the pipeline leaves failing samples out. `history`: of a sticky pipeline, as
        sluice.executor.history has it; what the virtual worker has made here may be left out. `stacks`: of one that is not sticky, a
        Stack may stand for a tensor. Raises whatever the user's code raises."""
        pipeline, self.laps = self._pipeline, Laps()
        if pipeline.sticky:
            return self._virtual_worker(request).make(request, history, self.laps)
        with pipeline.at_work():
            return _compute(pipeline, request, self.laps, self._draws, stacks, self.watch)

    def end(self) -> None:
        """No batch is asked for any more: virtual workers end, and what they have begun."""
        self._virtual_workers.clear()

    def _virtual_worker(self, request: BatchRequest) -> VirtualWorker:
        worker = self._virtual_workers.get(request.worker_id)
        if worker is None:
            # The first one may have what is loaded already: a process that was forked for it has no other.
            own = self._received.copy(self._state) if self._virtual_workers else self._pipeline
            worker = VirtualWorker(own, request.base_seed, request.worker_id, request.num_workers)
            self._virtual_workers[request.worker_id] = worker
        return worker


class ForkComputation:
    """Makes batches of the loader's own objects: for a process that is forked from the trainer's, as a worker of torch's is, and
    is one virtual worker at most. Nothing is pickled, and the memory is shared until it is written to. Not thread-safe."""

    def __init__(self, pipeline: PythonPipeline) -> None:
        self._pipeline = pipeline
        self._virtual_worker: VirtualWorker | None = None
        self._draws = Draws()
        self.laps = Laps()

    def compute(self, request: BatchRequest, history: bytes = b"", stacks: bool = False) -> Any:
        """As Computation.compute."""
        pipeline, self.laps = self._pipeline, Laps()
        if not pipeline.sticky:
            return _compute(pipeline, request, self.laps, self._draws, stacks)
        if self._virtual_worker is None:
            self._virtual_worker = VirtualWorker(pipeline, request.base_seed, request.worker_id, request.num_workers, has_process=True)
        return self._virtual_worker.make(request, history, self.laps)

    def end(self) -> None:
        """As Computation.end."""
        self._virtual_worker = None


@contextlib.contextmanager
def untouched_process(inherited: Inherited | None = None) -> Iterator[None]:
    """Computing inside must leave no trace in the trainer: random states and worker info are put back, and os._exit is an error. torch has
    one thread, as in an executor: the last bits of a sum depend on how many add it up. All that is the whole process's. So of several
    threads one computes at a time. `inherited`: what holds inside; None: what holds now."""
    with _computing:
        info = torch_worker._worker_info
        threads = torch.get_num_threads()
        if threads > 1:
            torch.set_num_threads(1)
        try:
            with (inherited or Inherited.capture()).in_place(), untouched_generators(), handlers_stay(), ends_are_told(), _no_event_loop():
                yield
        finally:
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            torch_worker._worker_info = info


@contextlib.contextmanager
def as_inherited(inherited: Inherited) -> Iterator[None]:
    """Forking inside makes a worker as torch would have made it when `inherited` was captured. No batch is made in this process meanwhile."""
    with _computing, inherited.in_place():
        yield


@contextlib.contextmanager
def _no_event_loop() -> Iterator[None]:
    """A notebook, or a script of coroutines, has one that runs in the main thread. A worker has none, and may run its own."""
    events = sys.modules.get("asyncio.events")
    running = events._get_running_loop() if events is not None else None
    if events is None or running is None:
        yield
        return
    events._set_running_loop(None)
    try:
        yield
    finally:
        events._set_running_loop(running)


def _renew_lock() -> None:
    """In a forked child, whose parent's other threads do not go on there."""
    global _computing
    _computing = threading.RLock()


_computing = threading.RLock()
os.register_at_fork(after_in_child=_renew_lock)


def _compute(pipeline: PythonPipeline, request: BatchRequest, laps: Laps, draws: Draws, stacks: bool = False,
             watch: Callable[[int], None] | None = None) -> Any:
    """A batch that depends on the request alone. `draws`: of its data set. `watch`: of samples that are taken one by one."""
    def seed_of(offset: int) -> int:
        return sample_seed(request.base_seed, request.epoch, request.position + offset)

    def seed(offset: int) -> None:
        seed_everything(seed_of(offset))

    def finish(data: Any) -> Any:
        laps.lap(DATASET)
        if not runs_no_code_of_the_user(pipeline.collate_fn, pipeline.auto_collation, data):
            seed_everything(collate_seed(request.base_seed, request.epoch, request.position))
        made = collate(pipeline.collate_fn, pipeline.auto_collation, data, stacks)
        laps.lap(COLLATE)
        return made

    def watched(offset: int) -> Any:
        assert watch is not None
        watch(offset)
        return dataset[keys[offset]]

    dataset, keys = pipeline.dataset, request.indices
    _enter_worker(request, dataset)
    if pipeline.auto_collation:
        read_ahead(dataset, keys)
    at_once = pipeline.auto_collation and _fetches_batches(dataset)
    if pipeline.on_error == SKIP:
        return leave_out_failures(dataset, request.seq, keys, pipeline.auto_collation, at_once, seed, finish)
    if pipeline.auto_collation and not at_once:
        if (rows := batch_of_rows(dataset, keys, pipeline.collate_fn)) is not None:
            laps.lap(DATASET)
            return rows
        return finish(draws.samples(len(keys), seed_of, watched if watch is not None else lambda offset: dataset[keys[offset]]))
    seed(0)
    return finish(dataset.__getitems__(keys) if at_once else dataset[keys[0]])


def _enter_worker(request: BatchRequest, dataset: Any) -> None:
    """Makes get_worker_info() answer as in the virtual worker."""
    torch_worker._worker_info = torch_worker.WorkerInfo(
        id=request.worker_id,
        num_workers=request.num_workers,
        seed=request.base_seed + request.worker_id,
        dataset=dataset,
    )


def _fetches_batches(dataset: Any) -> bool:
    """Whether torch would ask this dataset for whole batches and that makes a difference. torch's Subset offers it for the sake of the dataset it
    wraps. Where that one has no such method, its samples get their own seeds like all others."""
    return bool(getattr(innermost(dataset), "__getitems__", None))
