"""One answer of a feeder: a batch in its arena, or the description of an error."""

from __future__ import annotations

from typing import Any

import torch

from sluice.arena import Arena
from sluice.failures import EXECUTOR_LOST, BatchDoesNotFit
from sluice.skipping import NothingLeft, Reduced
from sluice.structure import unpack

_DOES_NOT_FIT = (BatchDoesNotFit.__name__, MemoryError.__name__)


class Answer:
    """A `batch` or `error` frame. Not thread-safe: the connection's thread makes it, then the iterating thread owns it."""

    def __init__(self, message: dict, blob: bytes, arena: Arena) -> None:
        """`arena` has the batch's slot. Raises ProtocolError for a slot that is not in it."""
        self.message = message
        self.blob = blob
        self._arena = arena
        self._copies: list[torch.Tensor] | None = None
        if not self.failed:
            arena.hold(message["slot"], message["tensors"])

    @property
    def failed(self) -> bool:
        return self.message["type"] == "error"

    @property
    def lost(self) -> bool:
        """Whether it is the executor's fault that there is no batch."""
        return self.failed and self.message.get("exception_type") == EXECUTOR_LOST

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

    def copy_out(self) -> None:
        """Gives the slot back at once if the feeder asked for that. Not only when the loop gets here: the batch that the
        loop waits for may be waiting for this slot."""
        if self.message.get("copy") and not self.failed:
            self._copies = self._arena.adopt(self.message["slot"], self.message["tensors"], copy=True)

    def open(self) -> Any:
        """The batch; from now on its tensors own the slot. Call once, and not after `discard`."""
        tensors = self._copies
        if tensors is None:
            tensors = self._arena.adopt(self.message["slot"], self.message["tensors"])
        return unpack(self.blob, tensors)

    def discard(self) -> None:
        """Gives the slot back unread."""
        if not self.failed and self._copies is None:
            self._arena.give_back(self.message["slot"])
