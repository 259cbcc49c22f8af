"""What an iterator's own process and forks of it do: they make batches until executors pay, or for good (docs/designs/stepping-aside.md)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from sluice.base.cpu_quota import usable_cores
from sluice.base.inherited import Inherited
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.executor.computation import BatchRequest, Computation, ForkComputation, as_inherited
from sluice.executor.history import History
from sluice.executor.iterable import Streams
from sluice.feeder.connection import Connection
from sluice.feeder.pinning import Pins
from sluice.loader.checkpoint import Progress
from sluice.loader.pace import batches_left
from sluice.loader.pipeline import Pipeline
from sluice.loader.stream import Stream
from sluice.makers.forks import Forked, Forks, can_fork, is_main_thread
from sluice.makers.measured import Measured
from sluice.makers.payback import FirstBatch, Payback, Scales

# One for the feeder's own executor, and one for a data worker that is ready before it.
TRIAL_BATCHES = 2
# The CPU that a native pipeline takes in Python: images of files are decoded natively there, too. Those in memory are cheap but for Python.
_TIMES_NATIVE, _TIMES_NATIVE_IN_MEMORY = 2.0, 20.0


class OwnBatches:
    """A part of FeederIterator, which has the attributes."""

    _connection: Connection
    _pipeline: Pipeline
    _stream: Stream
    _payback: Payback | None
    _scales: Scales
    _inherited: Inherited
    _forks: Forks | None
    _history: History | Streams | None
    _progress: Progress
    _outstanding: dict[int, BatchRequest]
    _unasked: deque[int]
    _first_drawn: list[BatchRequest]
    _exhausted: bool
    _as_described: bool
    _only_forks: bool
    _in_order: bool
    _prefetch_factor: int
    _num_workers: int
    _timeout: float
    _index_sampler: Any
    _loader: Callable[[], Any]
    _measured: Measured
    _pins: Pins | None = None
    _pin_memory: bool
    _pin_memory_device: str | None

    def _can_travel(self, request: BatchRequest) -> bool:
        raise NotImplementedError

    def _note_taken(self, request: BatchRequest) -> None:
        raise NotImplementedError

    def _pins_of_pass(self) -> Pins | None:
        """What copies the feeder's batches to pinned memory, where the loader has them there."""
        if self._pins is None and self._pin_memory:
            self._pins = Pins(self._pin_memory_device)
        return self._pins

    def _try_executor(self, payback: Payback) -> None:
        """Once an executor pays, asks for the last batches that were drawn; where this process makes none, for the first ones once
        more. Until one has come the loop goes on here."""
        if not payback.pays or self._stream.is_tried or self._stream.is_proven:
            return
        if payback.forks_at_once:
            for request in self._first_drawn:
                if self._can_travel(request):
                    self._stream.try_executor(request)
            return
        last = [self._unasked.pop() for _ in range(min(TRIAL_BATCHES, len(self._unasked)))]
        for request in (self._outstanding[seq] for seq in reversed(last)):
            if self._can_travel(request):
                self._stream.request(request)

    def _give_to_forks(self, payback: Payback) -> None:
        """Gives them what is drawn, once waiting costs more than they do. A trial of executors comes first."""
        if not payback.forks_pay:
            if self._forks is not None and self._forks.is_idle and not payback.forks_rest:
                self._end_forks()
            return
        kept = TRIAL_BATCHES if payback.pays and not self._stream.is_tried and not self._exhausted and not payback.forks_at_once else 0
        while len(self._unasked) > kept and (self._forks is None or self._forks.has_room):
            if self._forks is None:
                self._forks = self._make_forks(payback)
            self._forks.give(self._outstanding[self._unasked.popleft()])

    def _make_forks(self, payback: Payback) -> Forks:
        inherits = payback.executors_at_once or (payback.forks_at_once and (self._as_described or self._pipeline.stays))
        computation = self._pipeline.fork_computation() if inherits else self._new_computation()
        with as_inherited(self._inherited):
            return Forks(computation, self._num_workers, self._prefetch_factor, self._in_order, self._timeout, self._history)

    def _new_computation(self) -> Computation | ForkComputation:
        """Of the pipeline as it was described. What no process can read again, forks alone have."""
        try:
            return self._pipeline.new_computation()
        except (Exception, SystemExit) as error:
            pass_on_of_a_handler(error)
            if not self._only_forks:
                raise
            return self._pipeline.fork_computation()

    def _may_leave_to_forks(self, first: BatchRequest) -> bool:
        """Whether forks can go on with `first`, which the loop needs next."""
        return self._history is None or self._history.is_complete

    def _leave_to_forks(self) -> tuple[BatchRequest, Forked]:
        """The next batch. Forks make all that is left of this iterator, as torch's workers would: no feeder can run the pipeline, and this process alone
        would be slower than `num_workers` of them. Objects that can be pickled and not unpickled are in them as in torch's."""
        self._only_forks = True
        self._payback = Payback(forks_at_once=True, forks_suffice=True)
        self._forget_executors()
        self._give_to_forks(self._payback)
        assert self._forks is not None
        forked = self._forks.take()
        return self._outstanding[forked.seq], forked

    def _end_forks(self) -> None:
        forks, self._forks = self._forks, None
        if forks is not None:
            forks.close()

    def _weigh(self) -> None:
        """Notes what the last batch has cost the loop, and goes back from executors that are slower than forks."""
        payback = self._payback
        if payback is None:
            return
        totals = self._stream.account.totals()
        if payback.pays:
            if self._has_executors(payback) and self._scales.weigh_executors(payback, totals, self._forks_seconds):
                self._go_back(payback)
            return
        left = batches_left(self._index_sampler, self._progress.handed_over)
        window_batches = self._stream.limit_batches if payback.way_back.rests else 0
        self._scales.weigh(payback, totals, left, self._stream.has_warm_feeder, can_fork(), window_batches, is_main_thread())

    def _has_executors(self, payback: Payback) -> bool:
        """Whether there are some that can make this pipeline's batches."""
        return payback.executors_at_once or self._stream.is_proven

    def _forks_seconds(self) -> float | None:
        """About what forks would take for each batch of a native pipeline, from what it has cost executors."""
        native, work = self._pipeline.native, self._measured.so_far()[1].get("native")
        if native is None or work is None or work.batches == 0:
            return None
        times = _TIMES_NATIVE if native.reads_files else _TIMES_NATIVE_IN_MEMORY
        return times * work.seconds / work.batches / min(self._num_workers, usable_cores())

    def _go_back(self, payback: Payback) -> None:
        """This process and forks of it make the next batches, and those that executors have not made yet. Virtual workers begin their next pass
        here."""
        payback.go_back()
        loader = self._loader()
        if loader is not None and loader._sluice_foresight is not None:
            loader._sluice_foresight.give_up()
        if self._history is None:
            self._forget_executors()

    def _wait_beside_forks(self, payback: Payback) -> None:
        """No feeder has answered for too long, and this process alone would be slower than torch's workers."""
        payback.way_back.rest()
        self._go_back(payback)
        self._give_to_forks(payback)

    def _forget_executors(self) -> None:
        """Asks for nothing that the loop has not got. Forks that hold some of it are not those that make it: they would hand over what they hold before
        what they get now, and that may come before it."""
        for seq in self._outstanding:
            self._stream.forget(seq)
        self._end_forks()
        self._unasked = deque(self._outstanding)

    def _watch(self, request: BatchRequest) -> FirstBatch | None:
        """Of a batch that forks may take over while this process makes it: the first one of a loader."""
        payback = self._payback
        if payback is None or not payback.knows_nothing or self._history is not None or not can_fork() or not is_main_thread():
            return None
        return FirstBatch(len(request.indices), batches_left(self._index_sampler, self._progress.handed_over), self._connection.clock)

    def _hand_to_forks(self, request: BatchRequest) -> Forked:
        """The batch that this process has begun, made by a fork beside those of the next ones."""
        assert self._payback is not None
        started_seconds, begun_seconds = self._connection.clock(), self._scales.here_seconds or 0.0
        self._payback.forks_pay = True
        self._forks = self._make_forks(self._payback)
        self._forks.give(request)
        self._give_to_forks(self._payback)
        forked = self._forks.take()
        self._scales.here_seconds, self._scales.by_fork = begun_seconds + self._connection.clock() - started_seconds, True
        self._note_taken(request)
        return forked
