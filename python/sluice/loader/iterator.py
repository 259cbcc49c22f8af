"""The iterator of a loader whose batches a feeder makes.

It subclasses torch's own base iterator. So the sampler and the base seed are drawn from the same generators, in the same order and equally often as
by torch's multi-process iterator.
"""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter

from sluice.base.inherited import Inherited
from sluice.base.notices import log
from sluice.base.profiling import recorded
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.executor import keys
from sluice.executor.computation import BatchRequest, untouched_process
from sluice.executor.generators import capture_generators
from sluice.executor.history import History
from sluice.executor.iterable import Streams
from sluice.executor.skipping import NOTHING_LEFT
from sluice.feeder.answer import Answer
from sluice.feeder.connection import Connection
from sluice.loader import costs, remaining
from sluice.loader.checkpoint import Progress, drawing
from sluice.loader.drawn_batches import DrawnBatches
from sluice.loader.epoch_order import order_to_tell
from sluice.loader.own_batches import OwnBatches
from sluice.loader.pace import batches_decided
from sluice.loader.pipeline import Pipeline
from sluice.loader.prediction import Moment
from sluice.loader.stream import Outcome, Stream
from sluice.makers.forks import Forked, Forks, can_fork, serve_this_thread
from sluice.makers.payback import Payback, Scales, TakesLong
from sluice.shipping.failures import describe, reraise
from sluice.shipping.self_change import FirstBatches


class FeederIterator(DrawnBatches, OwnBatches, _BaseDataLoaderIter):
    """One pass over the samples, or with persistent_workers one after the other. Not thread-safe, as torch's is not."""

    _base_seed: int
    _stream: Stream

    def __init__(self, loader: Any, connection: Connection, pipeline: Pipeline, payback: Payback | None = None) -> None:
        """`payback` decides when executors are started; None: at once. Raises NotSendable before anything is drawn."""
        # Those that stay forks have the loader's own objects. That virtual workers could leave this process, the first pass has shown.
        stays = pipeline.stays or (pipeline.is_sticky and pipeline.description is not None)
        self._only_forks = payback is not None and payback.forks_suffice and stays
        if not self._only_forks:
            pipeline.registration(1, 1)
        self._connection = connection
        self._pipeline = pipeline
        self._in_order = getattr(loader, "in_order", True)  # torch has it since 2.6.
        self._batch_size = loader.batch_size or 1
        self._prefetch_batches = loader.prefetch_factor * loader.num_workers
        self._decided_batches = batches_decided(loader)
        self._loader = weakref.ref(loader)
        self._payback = payback
        self._forks: Forks | None = None
        self._as_described = True  # The loader's data set: it has not changed since this iterator was made.
        self._first_batches = FirstBatches()
        self._prefetch_factor = loader.prefetch_factor
        self._pass_number = 0
        self._workers: list = []  # torch's iterator has processes here; some programs look.
        self._inherited = Inherited.capture()
        self._begin(loader, loader._take_resume(), first=True)
        self._as_described = False

    def _begin(self, loader: Any, resume: Progress | None, first: bool) -> None:
        """Starts a pass; `first`: the first of this iterator. A new epoch draws what torch would draw; a resumed one draws
        again what it has drawn, and leaves the process's own generators as they are."""
        virtual_workers = self._pipeline.num_workers if self._pipeline.is_sticky else None
        if resume is not None and resume.begun:
            resume.require_virtual_workers(virtual_workers)
        with drawing(loader, resume) as resumed:
            generators = capture_generators(loader)
            before = Moment.of(loader)
            self._draw_base_seed(loader, resume, first)
            super()._reset(loader, first)
            if resume is not None and resume.base_seed is not None:
                self._base_seed, self._pass_number = resume.base_seed, resume.pass_number
            epoch = resume.epoch if resume is not None else loader._next_epoch
            self._progress = Progress(self._base_seed, True, self._pass_number, epoch, generators=generators, virtual_workers=virtual_workers)
            self._skipped, self._measured = loader._follow(self._progress), loader._sluice_measured
            self._next_seq, self._position, self._exhausted = 0, 0, False
            self._scales = Scales()
            self._history = self._new_history(resumed)
            self._outstanding: dict[int, BatchRequest] = {}
            self._stays_here: bool | None = None  # Whether virtual workers are here to the end of the pass; None: not decided, or none.
            self._first_drawn: list[BatchRequest] = []  # The batches that try executors, if forks make those that the loop gets.
            self._unasked: deque[int] = deque()  # The last of them: drawn, but beyond the feeder's window.
            if resumed is not None:
                self._skip(resumed)
        self._announcement = loader._sluice_announcement
        if self._announcement is not None:
            self._announcement.begin_epoch(loader, self._progress.handed_over)
        self._stream = self._begin_stream(loader, epoch, before if resume is None else None)
        self._stays_here = self._serves_here() if self._history is not None else None
        self._fill()

    def _new_history(self, resume: Progress | None) -> History | Streams | None:
        """Of the pass that begins; None if each batch depends on its request alone. `resume`: of a pass that goes on."""
        return History(self._pipeline.num_workers) if self._pipeline.is_sticky else None

    def _begin_stream(self, loader: Any, epoch: int, before: Moment | None) -> Stream:
        """The stream of this pass: what was made ahead, if this is the pass that was expected then. `before`: the moment before it
        drew anything; None if it was resumed."""
        self._follow_keys(loader)
        stream = Stream(self._connection, self._pipeline, self._base_seed, self._pass_number, epoch, self._prefetch_batches, self._batch_size,
                        history=self._history, order=order_to_tell(self._connection.session, self._pipeline, loader, before, self._pass_number == 0))
        foresight = loader._sluice_foresight
        expected = foresight.fulfil(before, stream, self._draw_at_once) if foresight is not None else None
        (stream if expected is None else expected.stream).pins = self._pins_of_pass()
        if expected is None:
            if not self._only_forks:
                stream.begin()
            return stream
        for _ in expected.asked:
            self._unasked.popleft()
        return expected.stream

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """torch calls this for every epoch after the first with persistent_workers. `loader` may be of torch's class."""
        known = self._loader()
        loader = loader if known is None else known  # Not `or`: one without a batch is false.
        self._close()
        self._pass_number += 1
        self._begin(loader, loader._take_resume(), first=False)

    def __next__(self) -> Any:
        self._connection.require_owner()
        with self._stream.account.asked(), recorded(self._profile_name):
            while (batch := self._next_data()) is NOTHING_LEFT:
                pass
            self._num_yielded += 1
        return batch

    def _next_data(self) -> Any:
        self._weigh()
        self._require_next()
        request, made = self._obtain()
        del self._outstanding[request.seq]
        self._progress.hand_over(self._place(request))
        if made is not None:
            self._note_taken(request)
        if not isinstance(made, Forked):
            self._fill()
        try:
            batch = self._open(request, made)
        except TakesLong:
            made = self._hand_to_forks(request)
            batch = self._open(request, made)
        else:
            if made is None:
                self._note_taken(request)
        if isinstance(made, Forked):  # Not before it is open: this may end forks, which hold a part of what is no plain tensor until then.
            self._fill()
        costs.note(self._measured, self._stream, self._pipeline, request, made)
        return self._pinned(self._skipped.open(batch, request.worker_id, self._stream.account.skip))

    def _require_next(self) -> None:
        """Raises StopIteration at the end of the pass."""
        if self._unasked or not self._outstanding:  # Otherwise the last call has left nothing to do.
            self._fill()
        if not self._outstanding:
            self._progress.finished = True
            self._close()
            raise StopIteration

    def _note_taken(self, request: BatchRequest) -> None:
        """The loop gets the batch."""
        self._stream.deliver(len(request.indices))
        if self._announcement is not None:
            self._announcement.take()

    def _open(self, request: BatchRequest, made: Answer | Forked | None) -> Any:
        """The batch that was answered; without an answer it is made here. Raises what the user's code has raised, once it has failed here, too: an
        executor may lack what the script has set in a library. Virtual workers' samples are made only once."""
        if not isinstance(made, Answer):
            return made.open(request.worker_id) if made is not None else self._compute(request)
        made.tell_trouble()
        if made.is_failure_of_code and self._history is not None:
            reraise(made.message, made.blob, request.worker_id)
        batch = None if made.failed else made.open()
        if batch is not None and made.is_native and (native := self._pipeline.native) is not None and native.arrangement is not None:
            batch = native.arrangement.batch(batch, request.indices)
        return self._compute(request, made) if made.failed or made.is_in_doubt(batch) else batch

    def _pinned(self, batch: Any) -> Any:
        return pin_memory(batch, self._pin_memory_device) if self._pin_memory else batch

    def _obtain(self) -> tuple[BatchRequest, Answer | Forked | None]:
        """The next request to hand over, and its answer; None if it has to be computed here. Raises RuntimeError after the
        loader's timeout, and if a forked worker has died."""
        first = next(iter(self._outstanding))  # They are drawn in order.
        if self._forks is not None and first in self._forks:
            started_seconds = self._connection.clock()
            forked = self._forks.take()
            self._scales.here_seconds, self._scales.by_fork = self._connection.clock() - started_seconds, True
            return self._outstanding[forked.seq], forked
        if first in self._unasked:
            self._unasked.remove(first)
            return self._outstanding[first], None
        if not self._can_travel(self._outstanding[first]):
            return self._outstanding[first], None
        here = self._serves_here()  # Then there is no timeout: what has come is taken, and nothing waited for.
        deadline_seconds = self._connection.clock() + self._timeout if here or self._timeout > 0 else None
        taken = self._stream.take(first if self._in_order else None, deadline_seconds)
        if taken is Outcome.TIMED_OUT and not here:
            raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
        if isinstance(taken, Outcome):
            self._stream.forget(first)
            if self._stream.is_given_up and can_fork() and self._may_leave_to_forks(self._outstanding[first]):
                return self._leave_to_forks()
            if taken is Outcome.COMPUTE_HERE and self._payback is not None and self._payback.executors_at_once:
                self._wait_beside_forks(self._payback)
                return self._obtain()
            return self._outstanding[first], None
        seq, answer = taken
        return self._outstanding[seq], answer

    def _compute(self, request: BatchRequest, answer: Answer | None = None) -> Any:
        """Makes the batch in this process: from the same seeds, so with the same result. An executor's failure comes
        here too: it must not add errors of its own, so the original decides what is wrong with the sample. `answer`: that failure."""
        started_seconds = self._connection.clock()
        with untouched_process(self._inherited):
            try:
                history = self._history.before(request) if self._history is not None else b""
                batch = self._pipeline.make_here(request, history, self._watch(request))
                if self._payback is not None and not (self._payback.executors_at_once or self._pipeline.is_sticky):
                    self._first_batches.follow(self._pipeline.computation().dataset)
                self._stream.note_made_here(answer)
                return batch
            except (Exception, SystemExit) as error:  # The last would end a worker of torch's, not the trainer.
                pass_on_of_a_handler(error)
                failure = answer.failure(describe(error)) if answer is not None else describe(error)
            finally:
                self._scales.here_seconds, self._scales.by_fork = self._connection.clock() - started_seconds, False
        reraise(*failure, request.worker_id)

    def _fill(self) -> None:
        """Draws what torch would have drawn by now, and what is decided up to the feeder's window; asks for batches up to that."""
        window = self._stream.limit_batches
        self._draw_at_once(window)
        if self._payback is not None and self._serves_here():
            self._try_executor(self._payback)
            self._give_to_forks(self._payback)
            return
        if self._forks is not None and self._forks.is_idle:
            self._end_forks()
        while self._unasked and len(self._outstanding) - len(self._unasked) < window:
            request = self._outstanding[self._unasked.popleft()]
            if self._can_travel(request):
                self._stream.request(request)
        if self._exhausted and not self._unasked:
            self._look_ahead(window - len(self._outstanding))

    def _look_ahead(self, room_batches: int) -> None:
        """Asks for so many batches of the next epoch, unless it is known that the loop will not take them."""
        loader, left_samples = self._loader(), remaining.samples()
        foresight = loader._sluice_foresight if loader is not None else None
        if left_samples is not None:
            room_batches = min(room_batches, -(-left_samples // self._batch_size) - len(self._outstanding))
        is_of_use = self._stream.can_be_early and self._stream.pipeline is self._pipeline and self._stream.is_served
        if foresight is not None and room_batches > 0 and is_of_use:
            foresight.ask(loader, self._stream, room_batches, self._decided_batches)

    def _serves_here(self) -> bool:
        """Whether this process or forks of it make the batches that no feeder has been asked for. Virtual workers move between two
        passes only: within one, their state would have to be made again."""
        if self._only_forks or self._payback is None or not serve_this_thread(self._payback, self._forks):
            return self._only_forks
        if self._stays_here is not None:
            return self._stays_here
        return not (self._payback.pays and self._has_executors(self._payback))

    def _can_travel(self, request: BatchRequest) -> bool:
        """Whether a feeder can be asked."""
        if self._stream.pipeline.takes(request.indices):
            return self._history is None or self._history.is_complete
        keys.say_what_cannot_travel(request.indices, self._stream.pipeline.key_type)
        if self._history is not None:
            self._history.is_complete = False  # This process makes the rest of the pass: a virtual worker elsewhere would lack this batch.
        return False

    def _close(self) -> None:
        self._end_executors()
        self._stream.close()
        if self._forks is not None and self._persistent_workers and self._forks.is_idle:
            self._forks.rest()
        else:
            self._end_forks()
        if not self._persistent_workers:
            self._let_go()
        self._outstanding.clear()
        self._unasked.clear()
        self._exhausted = True

    def _end_executors(self) -> None:
        """With the stream, if they keep files open. Those of the next epoch would, too."""
        if self._stream.holds_files:
            loader = self._loader()
            if loader is not None and loader._sluice_foresight is not None:
                loader._sluice_foresight.give_up()
            self._stream.close(ends_executors=True)

    def _let_go(self) -> None:
        self._pipeline.let_go()
        self._pins = None
        self._first_batches = FirstBatches()

    def _shutdown_workers(self) -> None:
        """What torch's iterator calls its end."""
        self._close()
        self._end_forks()
        self._let_go()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the process's end all that it has ends, too, and what is called here may have been taken apart.
        if getattr(self, "_stream", None) is not None and not is_finalizing():
            self._end_executors()
            self._stream.close()
            self._end_forks()
            self._pipeline.let_go()
