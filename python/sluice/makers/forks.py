"""Workers forked from the training process, as torch's own loader has them. They start in milliseconds and share its memory.

They serve a loader that waits until an executor of the feeder has started, or for good where none pays: with them it waits no longer than with torch. A
batch is a function of its request, so nothing shows where it was made. Where virtual workers make the batches, each worker is one of them.
"""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.util import Finalize
from typing import Any

import torch
from torch.utils.data import Dataset, get_worker_info
from torch.utils.data._utils.signal_handling import _remove_worker_pids
from torch.utils.data.dataloader import DataLoader as TorchLoader  # Bound now: programs replace the name by our class.

from sluice.base.notices import log
from sluice.executor.computation import BatchRequest, Computation, ForkComputation
from sluice.executor.heap import keep_freed_memory
from sluice.executor.history import History
from sluice.executor.iterable import Streams
from sluice.feeder.answer import Answer
from sluice.makers.fork_slots import ForkSlots, Packed
from sluice.makers.payback import Payback
from sluice.shipping.failures import describe, reraise
from sluice.shipping.surroundings import find_lazy_images, make_images_lazy, wants_lazy_images


# Once a process has used these, its forks wait for threads that they do not have.
_HAVE_THREADS = {"decord", "duckdb", "jax", "lance", "numba", "polars", "tensorflow"}
# These open a data base once in a process and in the forks that inherit it: a second copy of the data set could not.
_OPEN_ONCE = {"lmdb", "plyvel", "rocksdb", "rocksdict"}
_BEFORE_ALL_OTHERS = 1000  # multiprocessing's own have 10 at most.
_FOR_FORKS_ALONE = frozenset(_HAVE_THREADS | _OPEN_ONCE)


def must_fork_first() -> bool:
    """Whether this process may make no batch itself, as its forks, or other loaders, could make none afterwards: it has imported such a library."""
    return _has_imported_any(_FOR_FORKS_ALONE)


def closes_what_it_reads() -> bool:
    """Whether this process must not keep what a batch has opened, and has forks make the next ones: a sample has imported a library whose data
    bases it would open once."""
    return _has_imported_any(_OPEN_ONCE) and can_fork()


def _has_imported_any(libraries: Iterable[str]) -> bool:
    return any(library in sys.modules for library in libraries)  # Not isdisjoint: that looks at thousands of modules.


def can_fork() -> bool:
    """Whether torch's workers would be forked here. A user who asks for another way has a reason: CUDA, or threads."""
    method = multiprocessing.get_start_method(allow_none=True)
    forks_by_default = sys.platform == "linux" and sys.version_info < (3, 14)
    return (method == "fork" or (method is None and forks_by_default)) and not multiprocessing.current_process().daemon


def is_main_thread() -> bool:
    """Only that one makes batches itself: the random states that it puts aside are the whole process's, and it may draw from them meanwhile."""
    return threading.current_thread() is threading.main_thread()


def serve_this_thread(payback: Payback, forks: Forks | None) -> bool:
    """Whether this process or forks of it may make what this thread asks for. Another thread than the main one has forks make all of it."""
    payback.forks_pay = payback.forks_pay or closes_what_it_reads()
    if is_main_thread() or payback.forks_at_once:
        return True
    payback.forks_pay = forks is not None or can_fork()
    return payback.forks_pay


@dataclass
class Forked:
    """What a worker has answered."""

    seq: int
    batch: Packed | Any = None
    failure: tuple[dict, bytes] | None = None
    ops: list[list] = field(default_factory=list)  # As in the answer of a feeder.
    answer: Answer | None = None  # Of a packed batch, in the process that takes it.

    def open(self, worker_id: int) -> Any:
        """The batch. Raises what the user's code has raised in the worker. Call once."""
        if self.failure is not None:
            reraise(*self.failure, worker_id)
        return self.batch if self.answer is None else self.answer.open()


# A request, what its virtual worker has made before, and the slot of the batch; None for torch's own way.
_GivenRequest = tuple[BatchRequest, bytes, int | None]


class Batches(Dataset):
    """A data set whose keys are requests with what comes before them and their slots, and whose samples are batches."""

    def __init__(self, computation: Computation | ForkComputation, slots: ForkSlots | None) -> None:
        self._computation = computation
        self._slots = slots

    def __getitem__(self, given: _GivenRequest) -> Forked:
        request, history, slot = given
        try:
            batch = self._computation.compute(request, history, stacks=slot is not None)
            if self._slots is not None and slot is not None:
                batch = self._slots.pack(batch, slot)
            return Forked(request.seq, batch, ops=self._computation.laps.costs())
        except (Exception, SystemExit) as error:
            return Forked(request.seq, failure=describe(error))

    def end(self) -> None:
        """The process ends. Generators that a stream has begun come to their `finally`, as those of torch's fetcher do, which dies with the worker's loop."""
        self._computation.end()


class _Loader(TorchLoader):
    def check_worker_number_rationality(self) -> None:
        """The user's loader has said already what torch thinks of so many workers. (With a filter of warnings every warning of the script that is
        to show once would show once more.)"""


class _Given:
    """A sampler of what has been given. It ends where nothing is left, and goes on when there is more."""

    def __init__(self) -> None:
        self.requests: deque[_GivenRequest] = deque()

    def __iter__(self) -> Iterator[_GivenRequest]:
        return self

    def __next__(self) -> _GivenRequest:
        if not self.requests:
            raise StopIteration
        return self.requests.popleft()


class Forks:
    """Of one iterator. Not thread-safe. Processes, queues and the notice of a worker that dies are torch's own loader's."""

    def __init__(self, computation: Computation | ForkComputation, num_workers: int, prefetch_factor: int, in_order: bool,
                 timeout_seconds: float = 0, history: History | Streams | None = None) -> None:
        """`computation` is inherited by the workers: what changes in it afterwards they do not see. `timeout_seconds`: of `take`, 0
        for none. `history`: of the pass, if virtual workers make its batches. All its batches are given then, in their order."""
        self._given = _Given()
        self._slot_of: dict[int, int | None] = {}  # By the number of a request.
        self._most_batches = num_workers * prefetch_factor
        self._slots = _slots(self._most_batches)
        self._history = history
        self._informed: set[int] = set()  # The virtual workers that know what they have made before.
        order: dict[str, Any] = {} if in_order or history is not None else {"in_order": False}  # torch has it since 2.6.
        own = torch.Generator()  # The process's generators may be another thread's at this moment.
        has_lazy_images = wants_lazy_images()
        if has_lazy_images:
            find_lazy_images()
        loader = _Loader(Batches(computation, self._slots), batch_size=None, sampler=self._given, collate_fn=_as_it_is, num_workers=num_workers,
                         prefetch_factor=prefetch_factor, multiprocessing_context="fork", timeout=timeout_seconds,
                         worker_init_fn=functools.partial(_begin, has_lazy_images), generator=own, **order)  # fmt: skip
        self._batches: Any = iter(loader)  # Of a class of torch's that is its own affair.
        _living.add(self)

    def __contains__(self, seq: int) -> bool:
        return seq in self._slot_of

    @property
    def is_idle(self) -> bool:
        return not self._slot_of

    @property
    def has_room(self) -> bool:
        """Whether they may hold one more batch: as many as torch would prefetch."""
        return len(self._slot_of) < self._most_batches

    def give(self, request: BatchRequest) -> None:
        """REQUIRES: has_room."""
        history = b""
        if self._history is not None and request.worker_id not in self._informed:
            self._informed.add(request.worker_id)
            history = self._history.before(request)
        if self._history is not None:
            self._batches._worker_queue_idx_cycle = itertools.repeat(request.worker_id)  # torch's own would also ask streams that have ended.
        slot = self._slots.lend() if self._slots is not None else None
        self._slot_of[request.seq] = slot
        self._given.requests.append((request, history, slot))
        self._batches._try_put_index()

    def take(self) -> Forked:
        """The next answer, in the order of the requests unless the loader wants them as they come. Blocks. REQUIRES: not is_idle.

        Raises RuntimeError, torch's own, if a worker has died, and after the timeout."""
        forked = next(self._batches)
        slot = self._slot_of.pop(forked.seq)
        if self._slots is not None and slot is not None:
            forked.answer = self._slots.take_back(slot, forked.batch if isinstance(forked.batch, Packed) else None)
        return forked

    def rest(self) -> None:
        """No request comes for some time."""
        if self._slots is not None:
            self._slots.trim()

    def close(self) -> None:
        """Ends the workers. Where the garbage collector has found this object it has closed its queues before, and no word reaches a worker any
        more: torch would wait 5 s for each."""
        if not all(queue._close.still_active() for queue in self._batches._index_queues if queue._close is not None):
            self._kill()
        self._batches._shutdown_workers()

    def _kill(self) -> None:
        """They are taken from torch's list before: it raises an error for a worker that ends otherwise than it was told."""
        if self._batches._worker_pids_set:
            _remove_worker_pids(id(self._batches))
            self._batches._worker_pids_set = False
        for worker in self._batches._workers:
            worker.kill()


_living: weakref.WeakSet[Forks] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """In a forked child, whose garbage collector may find an iterator of the parent's: torch's would look for its workers there, and complain."""
    for forks in _living:
        forks._batches._shutdown = True


os.register_at_fork(after_in_child=_leave_to_the_parent)


def _slots(most_batches: int) -> ForkSlots | None:
    try:
        return ForkSlots(most_batches)
    except OSError as error:
        log.info("forks hand their batches over as torch's workers do, as there is no memory to share with them: %s", error)
        return None


def _as_it_is(batch: Any) -> Any:
    return batch


def _begin(has_lazy_images: bool, worker_id: int) -> None:
    info = get_worker_info()
    assert info is not None and isinstance(info.dataset, Batches)
    Finalize(None, info.dataset.end, exitpriority=_BEFORE_ALL_OTHERS)  # Objects that the process has from its parent do not die with it.
    keep_freed_memory()
    if has_lazy_images:
        make_images_lazy()
