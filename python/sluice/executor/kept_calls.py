"""Results of marked functions (sluice.cache.kept), which an executor's child asks its parent for (docs/designs/protocols.md, section 4).

The parent decides for all of its children what is asked for and kept; the child measures. A result that does not come, in time and whole, is made.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from sluice.base.notices import say_once
from sluice.cache.kept_keys import CallKey, FunctionKey, NoKey
from sluice.cache.kept_values import Damaged, NotKept, decode, encode
from sluice.executor.numpy_state import NumpyState

ANSWER_SECONDS = 10.0
_MOST_FUNCTIONS = 64
_REST_OF_RANDOM = 1 << 20
_RETURNS = "dictionaries, lists and tuples of tensors, arrays, texts, bytes, numbers and None"

# Sends a question and gives its answer, of at most so many seconds; None: it did not come.
Ask = Callable[[dict, bytes, float], "tuple[dict, bytes] | None"]
Tell = Callable[[dict, bytes], None]


class _Parent:
    """`seconds`: that it has worked for a question, by its own word."""

    seconds = 0.0


class _Tally:
    """Of one function: what its calls have taken since the parent was told, and how many are not asked about."""

    def __init__(self) -> None:
        self.rest = 0
        self.counts: dict[str, float] = {}

    def add(self, what: str, seconds: float) -> None:
        kinds = {"calls": "call_seconds", "cold_calls": "cold_seconds", "hits": "hit_seconds", "stores": "store_seconds"}
        self.counts[what] = self.counts.get(what, 0) + 1
        self.counts[kinds[what]] = self.counts.get(kinds[what], 0.0) + seconds

    def count(self, what: str, number: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + number


class KeptCalls:
    """Of one child. Not thread-safe: for the thread that makes batches."""

    def __init__(self, ask: Ask, tell: Tell, clock: Callable[[], float] = time.perf_counter, cpu_clock: Callable[[], float] = time.thread_time) -> None:
        """`clock`: seconds. `cpu_clock`: of this thread."""
        self._ask, self._tell, self._clock, self._cpu_clock = ask, tell, clock, cpu_clock
        self._beside = 0.0  # How much less the parent's part has taken so far than this clock says.
        self._tallies: dict[str, _Tally] = {}
        self._next_id = 1
        self._unusual = 0  # Calls so far that were made though they are asked about: the next time they may be found.
        self._is_late = False
        self.named_files = False  # Whether a call of this batch has named a file: what it is made of may change.

    def begin(self) -> None:
        """A batch begins."""
        self._is_late = self.named_files = False

    def report(self) -> list[dict]:
        """What the calls since the last report were, by function: the field `kept` of a batch's answer."""
        told = [{"function": name, **tally.counts} for name, tally in self._tallies.items() if tally.counts]
        for tally in self._tallies.values():
            tally.counts = {}
        return told

    def result(self, function: FunctionKey, arguments: tuple, named: dict[str, Any]) -> Any:
        """Of the call: found, or made. Raises whatever it raises, and TypeError as FunctionKey.of."""
        tally = self._tallies.get(function.name)
        if tally is None:
            if len(self._tallies) >= _MOST_FUNCTIONS:
                return function.function(*arguments, **named)
            tally = self._tallies[function.name] = _Tally()
        if tally.rest > 0 or self._is_late:
            tally.rest = max(0, tally.rest - 1)
            return self._made(tally, function, arguments, named)
        started = self._own_clock()
        try:
            key = function.of(arguments, named)
        except NoKey as reason:
            say_once(logging.WARNING, f"some results of {function.name} are not kept: {reason}")
            return self._made(tally, function, arguments, named)
        self.named_files = self.named_files or bool(key.files)
        number, answer = self._question(function, key)
        if answer is None:
            tally.count("late")
            return self._made(tally, function, arguments, named)
        message, blob = answer
        tally.rest = message.get("rest", 0)
        keeps = message.get("keeps", False)
        if message["is_found"]:
            try:
                value = decode(blob)
            except Damaged:
                tally.count("damaged")
            else:
                tally.add("hits", self._own_clock() - started)
                tally.count("hit_bytes", len(blob))
                return value
        self._unusual += 1
        return self._missed(tally, function, arguments, named, number if keeps else 0, started)

    def _question(self, function: FunctionKey, key: CallKey) -> tuple[int, tuple[dict, bytes] | None]:
        number, self._next_id = self._next_id, self._next_id + 1
        fields = {"type": "find", "id": number, "function": function.name, "version": function.version}
        with self._parent_at_work() as parent:
            answer = self._ask({**fields, "files": key.files} if key.files else fields, key.arguments, ANSWER_SECONDS)
            parent.seconds = answer[0].get("seconds", 0.0) if answer is not None else 0.0
        self._is_late = answer is None
        return number, answer

    def _own_clock(self) -> float:
        """Without the waits for another process to wake up, which a busy machine makes long: they cost no CPU."""
        return self._clock() - self._beside

    @contextlib.contextmanager
    def _parent_at_work(self) -> Iterator[_Parent]:
        """What happens inside counts for the CPU of this thread, and what the parent says."""
        parent, began, cpu = _Parent(), self._clock(), self._cpu_clock()
        yield parent
        self._beside += max(0.0, self._clock() - began - (self._cpu_clock() - cpu) - parent.seconds)

    def _made(self, tally: _Tally, function: FunctionKey, arguments: tuple, named: dict[str, Any]) -> Any:
        unusual, started = self._unusual, self._own_clock()
        value = function.function(*arguments, **named)
        tally.add("calls" if unusual == self._unusual else "cold_calls", self._own_clock() - started)
        return value

    def _missed(self, tally: _Tally, function: FunctionKey, arguments: tuple, named: dict[str, Any], number: int, started: float) -> Any:
        """`number`: of the question whose result is to be kept; 0: of none."""
        states = _Generators() if number else None
        asked_seconds = self._own_clock() - started
        value = self._made(tally, function, arguments, named)
        if states is None:
            return value
        made = self._own_clock()
        if states.have_moved():
            tally.rest = _REST_OF_RANDOM
            say_once(logging.WARNING, f"results of {function.name} are not kept, as it draws random numbers: mark a part of it that draws none, and let its caller "
                                      f"draw and pass on what was drawn")  # fmt: skip
            return value
        try:
            blob = encode(value)
        except NotKept as reason:
            say_once(logging.WARNING, f"results of {function.name} are not kept: it returns {reason}; what can be kept are {_RETURNS}")
            return value
        with self._parent_at_work():
            self._tell({"type": "keep", "id": number}, blob)
        tally.add("stores", asked_seconds + self._own_clock() - made)
        return value


class _Generators:
    """As they are now. One of numpy that is imported meanwhile does not count: no sample of this process can have seen it before."""

    def __init__(self) -> None:
        self._torch, self._random, self._numpy = torch.get_rng_state(), random.getstate(), _numpy_state()

    def have_moved(self) -> bool:
        """Whether one has drawn, or was seeded anew."""
        numpy_moved = self._numpy is not None and self._numpy != _numpy_state()
        return numpy_moved or self._random != random.getstate() or not torch.equal(self._torch, torch.get_rng_state())


def _numpy_state() -> Any:
    state = NumpyState.capture()
    return None if state is None else state.memory or (state.told[1].tobytes(), *state.told[2:])
