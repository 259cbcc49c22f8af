"""The first batches of a loader's next epoch, made while the loop still works on this one (protocols.md, section 6).

They are asked for on a stream of their own, with the room that the present epoch leaves in the window. When the next epoch begins, it draws as torch
does. It takes that stream over only if nothing differs: pipeline, state, base seed, each batch that was asked for, and the files of native batches. Otherwise
the stream is closed. So a wrong prediction costs work, but never changes a batch. Of Python data sets only batches that were made without reading anything
are used: which files they read, no one can know.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sluice.base.notices import log
from sluice.executor.computation import BatchRequest
from sluice.loader.file_states import FileStates
from sluice.loader.prediction import Habit, Moment, forecast
from sluice.loader.stream import Stream

_MOST_FAILURES = 3  # In a row. Two may pass until a habit is learnt.
_LONGEST_LOOK_SECONDS = 0.005  # At the files of a batch: some 1,000 of a local disk.


class NextEpoch:
    """The epoch that is expected, and what has been asked for of it. Its stream is closed with it, unless it was taken over."""

    def __init__(self, moment: Moment, stream: Stream, requests: Iterator[BatchRequest]) -> None:
        """`moment`: from which it was predicted."""
        self.moment = moment
        self.stream = stream
        self.asked: dict[int, BatchRequest] = {}
        self._requests = requests
        self._files = FileStates()
        self._is_slow = False  # To look at its files takes the loop's time.

    def ask(self, most: int) -> None:
        """Asks for further batches, up to `most` in all."""
        while len(self.asked) < most and not self._is_slow:
            try:
                request = next(self._requests, None)
            except Exception:  # The user's data set has no length, say. Where that matters the next epoch raises it.
                request = None
            if request is None:
                return
            began_seconds = time.monotonic()
            self._files.note(self.stream.pipeline.files_of(request.indices))
            self._is_slow = time.monotonic() - began_seconds > _LONGEST_LOOK_SECONDS
            self.asked[request.seq] = request
            self.stream.request(request)

    def reads_what_is_there(self) -> bool:
        """Whether its native batches would be the same if they were made now."""
        return self._files.are_the_same()

    def __del__(self) -> None:
        if self.stream.is_ahead:
            self.stream.close()


class Foresight:
    """Of one loader: the epoch that is expected next, and how often the expectation was wrong. Not thread-safe: it belongs to
    the loop. A copy of a loader expects nothing."""

    def __init__(self) -> None:
        self._habit = Habit()
        self._failures = 0
        self._next: NextEpoch | None = None

    def __reduce__(self) -> tuple:
        return Foresight, ()

    def ask(self, loader: Any, stream: Stream, most: int, decided: float) -> None:
        """Has up to `most` batches made of the epoch that is expected after the one of `stream`. Does nothing if it cannot be
        predicted, or if the last predictions were wrong. `decided`: as sluice.loader.pace says."""
        if self._next is None and self._failures < _MOST_FAILURES:
            self._next = _expect(loader, stream, self._habit, decided)
            self._failures = self._failures if self._next is not None else _MOST_FAILURES
        if self._next is not None and self._next.stream.after is stream:
            self._next.ask(most)

    def give_up(self) -> None:
        """Nothing is made ahead any more."""
        self._next, self._failures = None, _MOST_FAILURES

    def fulfil(self, before: Moment | None, wanted: Stream, draw: Callable[[int], Mapping[int, BatchRequest]]) -> NextEpoch | None:
        """The expected epoch, if it is the one that begins; `wanted` is then not needed. `before`: the moment before it drew
        anything; None if it is none that could be expected. `draw(n)` draws up to n batches and tells which are drawn."""
        expected, self._next = self._next, None
        if expected is None or before is None:
            return None
        drawn = draw(len(expected.asked))
        is_as_asked = all(drawn.get(seq) == request for seq, request in expected.asked.items())
        if is_as_asked and expected.reads_what_is_there() and expected.stream.take_over(wanted):
            self._failures = 0
            return expected
        self._failures += 1
        self._habit = expected.moment.habit_until(before)
        log.debug("an epoch began in another way than predicted: %d batches were made in vain", len(expected.asked))
        return None


def _expect(loader: Any, stream: Stream, habit: Habit, decided: float) -> NextEpoch | None:
    moment, persistent = Moment.of(loader), loader.persistent_workers
    expected = forecast(loader, moment, habit, stream.base_seed if persistent else None)
    if expected is None:
        return None
    following = stream.begin_next(expected.base_seed, stream.seed_epoch + 1 if persistent else 0, expected.order)
    # No further than the epoch may draw when it begins: only that can be compared.
    batches = itertools.islice(expected.batches, int(min(max(stream.prefetch_batches, decided), sys.maxsize)))
    return NextEpoch(moment, following, _requests(batches, following, loader._auto_collation))


def _requests(batches: Iterator[Any], stream: Stream, batched: bool) -> Iterator[BatchRequest]:
    position, pipeline = 0, stream.pipeline
    for seq, drawn in enumerate(batches):
        request = BatchRequest.of(drawn, seq, stream.base_seed, stream.seed_epoch, position, pipeline.num_workers, batched)
        if not pipeline.takes(request.indices):
            return
        yield request
        position += len(request.indices)
