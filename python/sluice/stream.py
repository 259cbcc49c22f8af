"""One pass of one iterator over its samples, as seen by the feeder: which batches are asked for, which have come.

Exactly-once: a request is in `_pending` from the moment it is made until its answer is accepted; an answer whose request is
not there (a duplicate, a straggler of a lost feeder, one for a closed stream) is discarded and its slot given back. After a
lost connection everything pending is asked for again. So each seq is handed over once, whatever the other end does.
"""

from __future__ import annotations

import enum
import logging
from typing import TYPE_CHECKING, Any

import torch

from sluice.accounting import Account, Totals
from sluice.computation import BatchRequest
from sluice.failures import NOT_LOADED
from sluice.notices import log
from sluice.pipeline import NotSendable, Pipeline
from sluice.structure import unpack

if TYPE_CHECKING:
    from sluice.connection import Connection
    from sluice.session import Session


class Answer:
    """A `batch` or `error` frame, together with the session in whose arena its slot lies."""

    def __init__(self, message: dict, blob: bytes, session: Session) -> None:
        self.message = message
        self.blob = blob
        self._session = session
        self._copies: list[torch.Tensor] | None = None

    @property
    def failed(self) -> bool:
        return self.message["type"] == "error"

    def copy_out(self) -> None:
        """Gives the slot back at once if the feeder asked for that. Not only when the loop gets here: the batch that the
        loop waits for may be waiting for this slot."""
        if self.message.get("copy") and not self.failed:
            self._copies = self._session.arena.adopt(self.message["slot"], self.message["tensors"], copy=True)

    def open(self) -> Any:
        """The batch; from now on its tensors own the slot. Call once, and not after `discard`."""
        tensors = self._copies
        if tensors is None:
            tensors = self._session.arena.adopt(self.message["slot"], self.message["tensors"])
        return unpack(self.blob, tensors) if self.blob else tensors

    def discard(self) -> None:
        """Gives the slot back unread."""
        if not self.failed and self._copies is None:
            self._session.release(self.message["slot"])


class Outcome(enum.Enum):
    """What `Stream.take` has to say when it has no answer."""

    COMPUTE_HERE = "no feeder will make this batch within the loop's patience"
    TIMED_OUT = "the deadline has passed"


class Stream:
    """Thread-safe through the connection's condition: the iterating thread requests and takes, the connection's thread
    delivers. Methods beginning with `on_` are for the connection, which holds the condition while it calls them."""

    def __init__(self, connection: Connection, pipeline: Pipeline, base_seed: int, seed_epoch: int, epoch: int,
                 prefetch_batches: int, batch_size: int) -> None:
        """`seed_epoch`: the epoch of the seeds; `epoch`: the loop's, for people. `batch_size`: samples, 1 if unbatched."""
        self.account = Account(starting=not connection.has_delivered)
        self.pipeline = pipeline
        self._connection = connection
        self._base_seed = base_seed
        self._seed_epoch = seed_epoch
        self._epoch = epoch
        self._prefetch_batches = prefetch_batches
        self._batch_size = batch_size
        self._pending: dict[int, BatchRequest] = {}
        self._ready: dict[int, Answer] = {}
        self._session: Session | None = None  # In which this stream is open; None while there is none.
        self._number: int | None = None       # By which the session knows this stream,
        self.pipeline_number: int | None = None  # and its pipeline.
        self._reported = Totals()
        self._given_up = ""                   # Why no feeder can serve this pipeline, if that is so.
        self._noticed_fallback = False

    # The iterating thread.

    def begin(self) -> None:
        """Opens the stream. Raises NotSendable if the pipeline cannot leave this process."""
        self.pipeline.registration(self._prefetch_batches, self._batch_size)
        with self._connection.condition:
            self._connection.streams.add(self)
            self.on_connected(self._connection.session)

    @property
    def limit_batches(self) -> int:
        """How many requests may be outstanding: made, and not yet handed to the loop."""
        with self._connection.condition:
            if self._session is None or self._session.window_batches is None:
                return self._prefetch_batches
            return max(1, self._session.window_batches // max(1, len(self._connection.streams)))

    def request(self, request: BatchRequest) -> None:
        """Asks for a batch. The seqs of a stream ascend."""
        with self._connection.condition:
            self._pending[request.seq] = request
            if self._session is not None:
                self._session.send(self._frame(request))

    def take(self, seq: int | None, deadline_seconds: float | None) -> tuple[int, Answer] | Outcome:
        """The answer for `seq`, or for any seq if None, as soon as it is there. After COMPUTE_HERE the caller computes the
        batch itself and says so with `forget`. `deadline_seconds` is on the connection's clock."""
        connection = self._connection
        with connection.condition:
            while True:
                found = next(iter(self._ready), None) if seq is None else (seq if seq in self._ready else None)
                if found is not None:
                    return found, self._ready.pop(found)
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
            self._pending.pop(seq, None)
            answer = self._ready.pop(seq, None)
        if answer is not None:
            answer.discard()

    def close(self) -> None:
        """No more requests, no more answers. Safe in finalisers: it takes no lock, the connection's thread does the rest."""
        self._connection.close_stream(self)

    # The connection's thread.

    def on_connected(self, session: Session | None) -> None:
        """Registers the pipeline, opens the stream and asks for everything that has not come."""
        self._session, self._number = None, None
        if session is None or self._given_up:
            return
        try:
            frame, blob = self.pipeline.registration(self._prefetch_batches, self._batch_size)
        except NotSendable as obstacle:
            self._give_up(str(obstacle))
            return
        self._session = session
        self._number = session.number()
        session.streams[self._number] = self
        self._reported = self.account.totals()
        self.pipeline_number = session.register_pipeline(frame, blob)
        opening = {"type": "open", "stream": self._number, "pipeline": self.pipeline_number}
        session.send({**opening, "base_seed": self._base_seed, "epoch": self._seed_epoch})
        for request in self._pending.values():
            session.send(self._frame(request))
        self._noticed_fallback = False

    def on_disconnected(self) -> None:
        self._session, self._number = None, None

    def on_answer(self, answer: Answer) -> None:
        """Keeps the answer if it is still asked for. One that says that the executor could not load the pipeline is none."""
        seq = answer.message["seq"]
        if answer.message.get("exception_type") == NOT_LOADED and seq in self._pending:
            self.on_pipeline_refused(answer.message["message"])
        elif self._pending.pop(seq, None) is None:
            answer.discard()
        else:
            answer.copy_out()
            self._ready[seq] = answer

    def on_pipeline_refused(self, error: str) -> None:
        """The feeder cannot run this pipeline: try its Python form, and after that nothing."""
        if self.pipeline.native is not None:
            log.warning("the feeder does not accept the native pipeline (%s); using the Python executor", error)
            session = self._session
            self.pipeline = self.pipeline.without_native(f"the feeder does not accept it: {error}")
            if session is not None and self._number is not None:
                session.send({"type": "close", "stream": self._number})
                del session.streams[self._number]
            self.on_connected(session)
        else:
            self._give_up(error)

    def on_closed(self) -> None:
        for answer in self._ready.values():
            answer.discard()
        self._ready.clear()
        self._pending.clear()
        if self._session is not None and self._number is not None:
            self._session.send(self.progress())
            self._session.send({"type": "close", "stream": self._number})
            del self._session.streams[self._number]
        self._session, self._number = None, None

    def progress(self) -> dict:
        """The `progress` frame: totals since this stream was opened in this session, so that a feeder that restarted does
        not count twice."""
        totals = self.account.totals().since(self._reported)
        return {
            "type": "progress",
            "stream": self._number,
            "batches": totals.batches,
            "samples": totals.samples,
            "compute_seconds": round(totals.compute_seconds, 6),
            "wait_seconds": round(totals.wait_seconds, 6),
            "queue_depth": len(self._ready),
            "queue_capacity": len(self._ready) + len(self._pending),
            "epoch": self._epoch,
        }

    def _frame(self, request: BatchRequest) -> dict:
        fields = {"seq": request.seq, "position": request.position, "indices": request.indices}
        return {"type": "request", "stream": self._number, **fields}

    def _give_up(self, reason: str) -> None:
        if self._given_up:
            return
        self._given_up = reason
        log.warning("no feeder can run this pipeline (%s); computing batches in this process", reason)
        self._connection.condition.notify_all()

    def _notice_fallback(self) -> None:
        if not self._noticed_fallback:
            self._noticed_fallback = True
            log.log(logging.WARNING, "no feeder answers at %s (%s); computing batches in this process, and still trying",
                    self._connection.where, self._connection.trouble or "no connection")
