"""The state of numpy's global generator, put aside and put back for every batch that the trainer's own process makes.

numpy's `get_state` and `set_state` handle each of 624 words by itself, which takes 60 microseconds for both. The words lie at an address that numpy
publishes (`BitGenerator.ctypes`), so here they are copied. A normal deviate that numpy has kept back lies elsewhere: where there is one,
numpy's own way is taken.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

_WORDS_BYTES = 624 * 4
_MEMORY_BYTES = _WORDS_BYTES + ctypes.sizeof(ctypes.c_int)  # The position comes behind the words.


@dataclass(frozen=True)
class NumpyState:
    """`told`: as numpy.random.get_state says it. `memory`: the generator's, if it is all of the state; otherwise empty."""

    told: Any
    memory: bytes

    @staticmethod
    def capture() -> NumpyState | None:
        """The present one; None as long as numpy is not loaded."""
        global _last
        numpy = sys.modules.get("numpy")
        if numpy is None:
            return None
        memory = _memory(numpy)
        # No deviate was kept back then. numpy keeps one only when it draws, which changes the memory.
        if _last is not None and memory and memory == _last.memory:
            return _last
        told = numpy.random.get_state()
        is_all = bool(memory) and told[3] == 0 and memory == told[1].tobytes() + int(told[2]).to_bytes(_MEMORY_BYTES - _WORDS_BYTES, sys.byteorder)
        state = NumpyState(told, memory if is_all else b"")
        _last = state if is_all else None
        return state

    def enter(self) -> None:
        """Makes it the state of numpy's global generator."""
        numpy = sys.modules["numpy"]
        generator = _published(numpy) if self.memory else None
        if generator is None:
            numpy.random.set_state(self.told)
            return
        numpy.random.seed(0)  # Drops a deviate that was kept back.
        with generator.lock:
            ctypes.memmove(generator.ctypes.state_address, self.memory, _MEMORY_BYTES)


def state_of_numpy() -> bytes | tuple[Any, ...]:
    """Equal as long as numpy's global generator has not drawn and was not seeded anew. Empty as long as numpy is not loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None or (memory := _memory(numpy)):
        return b"" if numpy is None else memory
    name, words, *rest = numpy.random.get_state()
    return name, words.tobytes(), *rest


_last: NumpyState | None = None  # That was captured, if its memory is all of it.


def _memory(numpy: Any) -> bytes:
    generator = _published(numpy)
    if generator is None:
        return b""
    with generator.lock:
        return ctypes.string_at(generator.ctypes.state_address, _MEMORY_BYTES)


def _published(numpy: Any) -> Any | None:
    """numpy's global generator, if its memory is known. A program may have put another kind there, and numpy before 1.24 does not tell it."""
    get = getattr(numpy.random, "get_bit_generator", None)
    generator = get() if get is not None else None
    return generator if type(generator) is numpy.random.MT19937 else None
