"""Which batches of a pass a feeder is asked for, and which have come.

Exactly-once: a request is pending from the moment it is made until its answer is accepted. An answer whose request is not there (a duplicate, a straggler
of a lost feeder, one for a closed stream) is discarded. Its slot is given back. After a lost connection everything pending is asked for again. So each
batch is handed over once, whatever the other end does.
"""

from __future__ import annotations

from collections.abc import Collection

from sluice.executor.computation import BatchRequest
from sluice.feeder.answer import Answer
from sluice.loader.early import EarlyBatches
from sluice.makers.accounting import QueueSeen


class Asked:
    """By the batches' numbers in the pass. Not thread-safe: a stream's, and the holder of its connection's condition calls it."""

    def __init__(self) -> None:
        self._pending: dict[int, BatchRequest] = {}
        self._ready: dict[int, Answer] = {}
        self._trials: set[int] = set()  # Asked for only to try executors: their answers are not wanted.
        self._early = EarlyBatches()
        self._queue = QueueSeen()

    @property
    def pending(self) -> Collection[BatchRequest]:
        """In the order in which they were asked for."""
        return self._pending.values()

    @property
    def ready_batches(self) -> int:
        """How many have come that the loop has not taken."""
        return len(self._ready)

    def ask(self, request: BatchRequest, is_ahead: bool) -> None:
        """`is_ahead`: the pass has not begun."""
        self._pending[request.seq] = request
        if is_ahead:
            self._early.ask(request.seq)

    def ask_for_trial(self, request: BatchRequest) -> None:
        self._trials.add(request.seq)

    def forget_what_was_sent(self, is_ahead: bool) -> None:
        """Everything pending is asked for in another session."""
        self._trials.clear()
        if not is_ahead:
            self._early.forget()

    def take_outdated(self) -> list[BatchRequest]:
        """What was made ahead and may be another batch now: to be asked for anew, once the pass has begun."""
        return [self._pending[seq] for seq in self._early.take_outdated()]

    def note_queue(self) -> None:
        """The loop asks for a batch."""
        self._queue.note(len(self._ready), len(self._pending))

    def queue(self) -> dict[str, float]:
        """How full it was when the loop asked, as QueueSeen reports it."""
        return self._queue.report()

    def take(self, seq: int | None) -> tuple[int, Answer] | None:
        """The answer for `seq`, or the first one that has come if None; None if it has not."""
        found = next(iter(self._ready), None) if seq is None else seq
        return (found, self._ready.pop(found)) if found is not None and found in self._ready else None

    def forget(self, seq: int) -> Answer | None:
        """This batch was made elsewhere. Returns the answer that has come, to be discarded."""
        self._pending.pop(seq, None)
        return self._ready.pop(seq, None)

    def meets_a_wish(self, seq: int) -> bool:
        """Whether an answer was waited for, if only by a trial, which ends with it."""
        is_wanted = seq in self._pending or seq in self._trials
        self._trials.discard(seq)
        return is_wanted

    def is_outdated(self, seq: int, answer: Answer) -> bool:
        """Whether an answer may be another one than would be made when the pass has begun. It is not accepted then."""
        return seq in self._pending and self._early.turns_down(seq, answer)

    def accepts(self, seq: int) -> bool:
        """Whether an answer is still pending. From now on it is not: `keep` follows."""
        return self._pending.pop(seq, None) is not None

    def keep(self, seq: int, answer: Answer) -> None:
        self._ready[seq] = answer

    def clear(self) -> list[Answer]:
        """The pass is closed. Returns what has come and was not taken, to be discarded."""
        left = list(self._ready.values())
        self._ready.clear()
        self._pending.clear()
        return left
