"""One answer of a feeder: a batch in its arena, or the description of an error."""

from __future__ import annotations

import logging
from typing import Any

import torch

from sluice.base.notices import log, say_once
from sluice.executor.skipping import NothingLeft, Reduced
from sluice.feeder.arena import Arena
from sluice.feeder.pinning import Pinned, Pins
from sluice.shipping.failures import EXECUTOR_LOST, BatchDoesNotFit
from sluice.shipping.structure import unpack

_OF_A_FILE = ("OSError", "ValueError")  # As native executors tell what they cannot decode.
_DOES_NOT_FIT = (BatchDoesNotFit.__name__, MemoryError.__name__)
_TROUBLES = {
    EXECUTOR_LOST: "the feeder lost the Python process of a batch",
    BatchDoesNotFit.__name__: "the loop keeps so many batches that the feeder has no room for another one "
                              "(the arena is SLUICE_ARENA_BYTES or, in a TrainingJob, spec.feeder.arena)",
}  # fmt: skip


class Answer:
    """A `batch` or `error` frame. Not thread-safe: the connection's thread makes it, then the iterating thread owns it. It has its
    batch's slot until it is opened or discarded; with one that is dropped instead, by an exception say, the slot is given back."""

    def __init__(self, message: dict, blob: bytes, arena: Arena) -> None:
        """`arena` has the batch's slot. Raises ProtocolError for a slot that is not in it."""
        self.message = message
        self.blob = blob
        self._arena = arena
        self.is_native = False  # Of a native pipeline.
        self._copies: list[torch.Tensor] | None = None
        self._pinned: Pinned | None = None
        self._has_slot = False
        if not self.failed:
            arena.hold(message["slot"], message["tensors"])
            self._has_slot = True

    def __del__(self) -> None:
        if self._has_slot:
            self.discard()

    @property
    def failed(self) -> bool:
        return self.message["type"] == "error"

    @property
    def is_from_memory(self) -> bool:
        """Whether nothing was read for it, so that it is the same at any time."""
        return bool(self.message.get("from_memory"))

    def tell_trouble(self) -> None:
        """Logs why there is no batch, if that is no fault of the user's code."""
        if self.failed and (trouble := _TROUBLES.get(self.message.get("exception_type", ""))) is not None:
            log.info("the feeder made no batch: %s", self.message["message"])
            say_once(logging.WARNING, f"{trouble}; computing such batches in this process")

    @property
    def is_failure_of_code(self) -> bool:
        """Whether the user's code has failed in a Python executor."""
        return self.failed and not self.is_native and not self.has_nothing_left and self.message.get("exception_type", "") not in _TROUBLES

    def failure(self, here: tuple[dict, bytes]) -> tuple[dict, bytes]:
        """What the loop raises if the batch fails in this process, too, with `here`. A native executor names the file and the index, which the
        original's exception may not: they go to the log."""
        if self.is_failure_of_code:
            return self.message, self.blob
        if self.failed:
            log.warning("a sample fails: %s", self.message["message"])
        return here

    @property
    def failed_at_a_file(self) -> bool:
        """Whether native executors cannot decode a file of the batch."""
        return self.is_native and self.failed and self.message.get("exception_type") in _OF_A_FILE

    @property
    def has_nothing_left(self) -> bool:
        """Whether every sample of the batch has failed, in a pipeline that leaves such samples out."""
        return self.failed and self.message.get("exception_type") == NothingLeft.__name__

    def is_in_doubt(self, batch: Any) -> bool:
        """Whether this process has to see for itself which samples of `batch` fail: a data worker may lack a file that is here."""
        return isinstance(batch, Reduced) and self.message.get("placement") != "local"

    @property
    def does_not_fit(self) -> bool:
        """Whether the batch is larger than the feeder's arena. (Native executors tell that as a lack of memory.)"""
        return self.failed and self.message.get("exception_type") in _DOES_NOT_FIT and "does not fit" in self.message["message"]

    def copy_out(self, pins: Pins | None = None) -> None:
        """Gives the slot back at once if the feeder asked for that. Not only when the loop gets here: the batch that the
        loop waits for may be waiting for this slot. `pins`: the batch has to be in pinned memory, and its slot is given back once it is."""
        if self.failed:
            return
        if pins is not None:
            self._pinned = pins.pin(self._adopt())
        elif self.message.get("copy"):
            self._copies = self._adopt(copy=True)

    def open(self) -> Any:
        """The batch; from now on its tensors own the slot. Call once, and not after `discard`."""
        if self._pinned is not None:
            return unpack(self.blob, self._pinned.tensors())
        return unpack(self.blob, self._copies if self._copies is not None else self._adopt())

    def discard(self) -> None:
        """Gives the slot back unread."""
        if self._has_slot:
            self._has_slot = False
            self._arena.give_back(self.message["slot"])

    def _adopt(self, copy: bool = False) -> list[torch.Tensor]:
        tensors = self._arena.adopt(self.message["slot"], self.message["tensors"], copy)
        self._has_slot = False
        return tensors
