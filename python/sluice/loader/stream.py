"""One pass of one iterator over its samples, as seen by the feeder: where it is open, and what becomes of it where no feeder serves it."""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sluice.base.notices import log, say_once
from sluice.executor.computation import BatchRequest
from sluice.executor.history import History
from sluice.executor.iterable import Streams
from sluice.executor.keys import plain
from sluice.feeder.answer import Answer
from sluice.feeder.pinning import Pins
from sluice.feeder.session import Listener, Session
from sluice.loader import remaining
from sluice.loader.asked import Asked
from sluice.loader.native_record import NativeRecord
from sluice.loader.pipeline import Pipeline
from sluice.makers.accounting import Account, Totals
from sluice.shipping.failures import NOT_LOADED, NotSendable

_LONGEST_END_SECONDS = 6.0  # Of an executor's processes.
_LOOK_SECONDS = 0.0005


class Link(Protocol):
    """The connection, as far as a stream needs to know it. `condition` guards all but `clock`, `where` and `has_delivered`."""

    condition: threading.Condition
    clock: Callable[[], float]
    session: Session | None
    streams: set[Listener]
    trouble: str
    has_delivered: bool

    @property
    def where(self) -> str: ...

    def patience_ends_seconds(self) -> float | None: ...

    def close_stream(self, stream: Stream) -> None: ...

    @property
    def may_be_waited_for(self) -> bool: ...


class Outcome(enum.Enum):
    """What `Stream.take` has to say when it has no answer."""

    COMPUTE_HERE = "no feeder will make this batch within the loop's patience"
    TIMED_OUT = "the deadline has passed"


class Stream:
    """Thread-safe through the connection's condition: the iterating thread requests and takes, the connection's thread
    delivers. Methods beginning with `on_` are for the connection, which holds the condition while it calls them."""

    def __init__(self, connection: Link, pipeline: Pipeline, base_seed: int, seed_epoch: int, epoch: int,
                 prefetch_batches: int, batch_size: int, after: Stream | None = None, history: History | Streams | None = None,
                 order: dict | None = None) -> None:
        """`seed_epoch`: the epoch of the seeds; `epoch`: the loop's, for people. `batch_size`: samples, 1 if unbatched.
        `after`: the pass after which this one is expected to begin. Until it has begun, its batches are made ahead.
        `history`: of this pass, if virtual workers make its batches; a request is added before it is made. `order`: of its samples, as
        sluice.loader.prediction gives it; None if it is not known, or of no use."""
        self.account = Account(starting=not connection.has_delivered)
        self._connection = connection
        self.pipeline = pipeline
        self.after = after
        self.base_seed, self.seed_epoch, self._epoch = base_seed, seed_epoch, epoch
        self.prefetch_batches, self._batch_size = prefetch_batches, batch_size
        self._asked = Asked()
        self._session: Session | None = None  # In which this stream is open; None while there is none.
        self._number: int | None = None       # By which the session knows this stream,
        self.pipeline_number: int | None = None  # and its pipeline.
        self._tried_in: Session | None = None    # The session in which a batch was asked for that has not failed.
        self._history = history
        self._order = order
        self._native_record = NativeRecord()
        self.pins: Pins | None = after.pins if after is not None else None  # What copies its batches to pinned memory, if the loop wants that.
        self._from_memory: bool | None = None  # Whether all of its batches were; None: none has come.
        self._informed: set[int] = set()      # Virtual workers of which the session knows what they have made.
        self._reported = Totals()             # When this session opened it; less what earlier passes of this stream had.
        self.holds_files = False              # A process that has made a batch of it keeps files open.
        self._rests = False                   # Its pass is over, and another may follow.
        self._given_up = ""                   # Why no feeder can serve this pipeline, if that is so.
        self._noticed_fallback = False

    # The iterating thread.

    def begin(self) -> None:
        """Opens the stream. Raises NotSendable if the pipeline cannot leave this process."""
        self.pipeline.registration(self.prefetch_batches, self._batch_size)
        with self._connection.condition:
            self._connection.streams.add(self)
            self.on_connected(self._connection.session)

    def begin_next(self, base_seed: int, seed_epoch: int, order: dict | None = None) -> Stream:
        """Opens the stream of the pass that is expected after this one, of the same pipeline. Raises as `begin`."""
        following = Stream(self._connection, self.pipeline, base_seed, seed_epoch, self._epoch + 1, self.prefetch_batches, self._batch_size, self, order=order)
        following.begin()
        return following

    def rest(self) -> None:
        """Its pass is over. It stays open for another one of the same virtual workers."""
        self._rests = True

    def begin_pass(self, epoch: int) -> None:
        """Another pass of the same virtual workers. `epoch`: the loop's, for people."""
        with self._connection.condition:
            self._rests, self._epoch = False, epoch
            self._reported = self._reported.since(self.account.totals())
            self.account = Account(starting=not self._connection.has_delivered)

    def take_over(self, wanted: Stream) -> bool:
        """Whether this stream, of batches made ahead, may be used instead of `wanted`, which has not begun. From then on it is
        that one. Raises NotSendable if the pipeline cannot leave this process."""
        if self._identity != wanted._identity or not self.pipeline.is_like(wanted.pipeline):
            return False
        with self._connection.condition:
            if self not in self._connection.streams:
                return False
            self.after = None
            self.pipeline, self.account, self._epoch = wanted.pipeline, wanted.account, wanted._epoch
            self._ask_again_for_outdated()
            return True

    @property
    def _identity(self) -> tuple:
        return self._connection, self.base_seed, self.seed_epoch, self.prefetch_batches, self._batch_size

    @property
    def is_ahead(self) -> bool:
        """Whether its batches are made ahead."""
        return self.after is not None

    @property
    def shares_the_window(self) -> bool:
        """Whether a part of the feeder's window is kept for its requests."""
        return not (self.is_ahead or self._rests)

    @property
    def can_be_early(self) -> bool:
        """Whether batches of its pipeline are the same when they are made before their epoch. Native ones depend on files that are known."""
        return self.pipeline.native is not None or bool(self._from_memory)

    @property
    def is_served(self) -> bool:
        """Whether a feeder takes its requests at present."""
        return self._session is not None and not self._given_up

    @property
    def is_given_up(self) -> bool:
        """Whether no feeder can serve this pipeline."""
        return bool(self._given_up)

    @property
    def limit_batches(self) -> int:
        """How many requests may be outstanding: made, and not yet handed to the loop. Batches made ahead use what another limit
        leaves."""
        with self._connection.condition:
            if self._session is None or self._session.window_batches is None:
                return self.prefetch_batches
            sharing = sum(stream.shares_the_window for stream in self._connection.streams)
            return max(1, self._session.window_batches // max(1, sharing))

    @property
    def is_proven(self) -> bool:
        """Whether an executor of the present feeder has made a batch of this pipeline."""
        with self._connection.condition:
            return self._session is not None and self.pipeline_number in self._session.proven_pipelines

    @property
    def is_tried(self) -> bool:
        """Whether the present feeder has been asked for anything, and may still answer."""
        with self._connection.condition:
            return self._session is not None and self._tried_in is self._session

    @property
    def has_warm_feeder(self) -> bool:
        """Whether an executor of the present feeder has made a batch of any Python pipeline."""
        with self._connection.condition:
            return self._session is not None and bool(self._session.proven_pipelines)

    def request(self, request: BatchRequest) -> None:
        """Asks for a batch, in the order in which the loop needs them; only the one by which an executor is tried may be
        asked for before earlier ones."""
        with self._connection.condition:
            self._asked.ask(request, self.is_ahead)
            self._tried_in = self._session
            if self._session is not None and not self._given_up:
                self._send(self._session, request)

    def try_executor(self, request: BatchRequest) -> None:
        """Asks for a batch that is made elsewhere, so that an executor loads the pipeline. The answer is dropped."""
        with self._connection.condition:
            self._tried_in = self._session
            if self._session is not None and not self._given_up:
                self._asked.ask_for_trial(request)
                self._send(self._session, request)

    def take(self, seq: int | None, deadline_seconds: float | None) -> tuple[int, Answer] | Outcome:
        """The answer for `seq`, or for any seq if None, as soon as it is there. After COMPUTE_HERE the caller computes the
        batch itself and says so with `forget`. `deadline_seconds` is on the connection's clock."""
        connection = self._connection
        with connection.condition:
            self._asked.note_queue()
            while True:
                if (found := self._asked.take(seq)) is not None:
                    return found
                if self._given_up:
                    return Outcome.COMPUTE_HERE
                now = connection.clock()
                patience_ends = connection.patience_ends_seconds()
                if patience_ends is not None and now >= patience_ends:
                    self._notice_fallback()
                    return Outcome.COMPUTE_HERE
                if deadline_seconds is not None and now >= deadline_seconds:
                    return Outcome.TIMED_OUT
                ends = [moment for moment in (patience_ends, deadline_seconds) if moment is not None]
                connection.condition.wait(min(ends) - now if ends else None)

    def deliver(self, samples: int) -> None:
        """A batch of so many samples is being handed to the loop."""
        self.account.deliver(samples)
        self._connection.has_delivered = True

    def forget(self, seq: int) -> None:
        """This batch was made elsewhere: an answer that still comes is discarded."""
        with self._connection.condition:
            answer = self._asked.forget(seq)
        if answer is not None:
            answer.discard()

    def close(self, ends_executors: bool = False) -> None:
        """No more requests, no more answers. Safe in finalisers: it takes no lock, the connection's thread does the rest. `ends_executors`: what holds
        files open has closed them when this returns, as torch's workers have; unless that takes long, or is elsewhere."""
        session, number = self._session, self._number
        if not (ends_executors and self.holds_files) or session is None or number is None:
            self._connection.close_stream(self)
            return
        session.ending.add(number)
        self._connection.close_stream(self)
        ends_seconds = self._connection.clock() + _LONGEST_END_SECONDS
        while number in session.ending and session.alive and self._connection.may_be_waited_for and self._connection.clock() < ends_seconds:
            time.sleep(_LOOK_SECONDS)

    # The connection's thread.

    def on_connected(self, session: Session | None) -> None:
        """Registers the pipeline, opens the stream and asks for everything that has not come."""
        self._session, self._number = None, None
        if session is None or self._given_up:
            return
        try:
            frame, shipment = self.pipeline.registration(self.prefetch_batches, self._batch_size)
            state = self.pipeline.state()
        except NotSendable as obstacle:
            self._give_up(str(obstacle))
            return
        self._session = session
        self._number = session.number()
        session.streams[self._number] = self
        self._reported = self.account.totals()
        self.pipeline_number = session.register_pipeline(frame, shipment)
        opening = {"type": "open", "stream": self._number, "pipeline": self.pipeline_number}
        if self._history is not None:
            opening |= {"virtual_workers": self.pipeline.num_workers, "portable": self.pipeline.is_iterable}
        if self._order is not None and session.takes_orders:
            opening["order"] = {**self._order, "is_next": self.is_ahead}
        self._informed.clear()
        self._asked.forget_what_was_sent(self.is_ahead)
        session.send({**opening, "base_seed": self.base_seed, "epoch": self.seed_epoch}, state)
        for request in self._asked.pending:
            self._tried_in = session
            self._send(session, request)
        self._noticed_fallback = False

    def on_disconnected(self) -> None:
        self._session, self._number = None, None

    def on_answer(self, answer: Answer) -> None:
        """Keeps the answer if it is still asked for. One that says that the executor could not load the pipeline is none."""
        seq = answer.message["seq"]
        self.holds_files = self.holds_files or bool(answer.message.get("holds_files"))
        answer.is_native = self.pipeline.native is not None
        self._from_memory = answer.is_from_memory and self._from_memory is not False
        if answer.failed:
            self._tried_in = None
        elif self._session is not None and self.pipeline_number is not None and self.pipeline.native is None:
            self._session.proven_pipelines.add(self.pipeline_number)
        is_wanted = self._asked.meets_a_wish(seq)
        if answer.message.get("exception_type") == NOT_LOADED and is_wanted:
            self.on_pipeline_refused(answer.message["message"])
        elif answer.does_not_fit and is_wanted:
            self._give_up(f"{answer.message['message']}; the arena is SLUICE_ARENA_BYTES or, in a TrainingJob, spec.feeder.arena")
        elif self._asked.is_outdated(seq, answer):
            answer.discard()
            if not self.is_ahead:
                self._ask_again_for_outdated()
        elif not self._asked.accepts(seq):
            answer.discard()
        else:
            answer.copy_out(self.pins)
            self._asked.keep(seq, answer)
            if answer.is_native and self._native_record.note(answer.failed_at_a_file):
                self._leave_native(f"{self._native_record.in_words()}, at last as {answer.message['message']}")

    def _ask_again_for_outdated(self) -> None:
        """Holding the condition, when the pass has begun."""
        for request in self._asked.take_outdated():
            if self._session is not None and not self._given_up:
                self._send(self._session, request)

    def on_pipeline_refused(self, error: str) -> None:
        """The feeder cannot run this pipeline: try its Python form, and after that nothing."""
        if self.pipeline.native is not None:
            self._leave_native(f"the feeder does not accept it: {error}")
        else:
            self._give_up(error)

    def on_closed(self) -> None:
        for answer in self._asked.clear():
            answer.discard()
        if self._session is not None and self._number is not None:
            if not self.is_ahead:
                self._session.send(self.progress())
            ends = {"ends_executors": True} if self._number in self._session.ending else {}
            self._session.send({"type": "close", "stream": self._number, **ends})
            del self._session.streams[self._number]
        self._session, self._number = None, None
        self.pins = None

    def progress(self) -> dict:
        """The `progress` frame: totals since this stream was opened in this session, so that a feeder that restarted does
        not count twice."""
        totals = self.account.totals().since(self._reported)
        left = remaining.samples()
        return {
            "type": "progress",
            "stream": self._number,
            "batches": totals.batches,
            "samples": totals.samples,
            "compute_seconds": round(totals.compute_seconds, 6),
            "wait_seconds": round(totals.wait_seconds, 6),
            **self._asked.queue(),
            "epoch": self._epoch,
            "skipped_samples": totals.skipped_samples,
            **({} if left is None else {"remaining_samples": left}),
        }

    def _send(self, session: Session, request: BatchRequest) -> None:
        """With the first request for a virtual worker goes what it has made before: in another session, or before a resume."""
        message = {"type": "request", "stream": self._number, "seq": request.seq, "position": request.position, "indices": plain(request.indices)}
        history = b""
        if self._history is not None and request.worker_id not in self._informed:
            self._informed.add(request.worker_id)
            history = self._history.before(request)
        if history:
            session.send(message, history)
        else:
            session.request(message)

    def _leave_native(self, reason: str) -> None:
        """From here on the pipeline's Python form makes the batches of this pass."""
        log.warning("the pipeline does not run natively (%s); using the Python executor", reason)
        session = self._session
        self.pipeline = self.pipeline.without_native(reason)
        if session is not None and self._number is not None:
            session.send({"type": "close", "stream": self._number})
            del session.streams[self._number]
        self.on_connected(session)

    def note_made_here(self, answer: Answer | None) -> None:
        """This process has made a batch, of which an executor has answered this: executors that fail alone are left."""
        if answer is not None and answer.is_failure_of_code:
            with self._connection.condition:
                self._give_up(f"a sample fails there and not here: {answer.message['message']}")

    def _give_up(self, reason: str) -> None:
        if self._given_up:
            return
        self._given_up = reason
        say_once(logging.WARNING, f"no feeder can run this pipeline ({reason}); this process or forks of it make its batches")
        self._connection.condition.notify_all()

    def _notice_fallback(self) -> None:
        if not self._noticed_fallback:
            self._noticed_fallback = True
            where, trouble = self._connection.where, self._connection.trouble or "no connection"
            log.warning("no feeder answers at %s (%s); computing batches in this process or in forks of it, and still trying", where, trouble)
