"""One established connection to a feeder, from its `welcome` to its loss."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sluice.arena import Arena
from sluice.framing import encode

if TYPE_CHECKING:
    from sluice.connection import Connection
    from sluice.stream import Stream


class Session:
    """Guarded by the connection's condition, except `release`."""

    def __init__(self, connection: Connection, welcome: dict, descriptor: int) -> None:
        self._connection = connection
        self.arena = Arena(descriptor, welcome["arena_bytes"], self.release)
        self.window_batches: int | None = None
        self.streams: dict[int, Stream] = {}
        self._pipelines: dict[tuple, int] = {}
        self._next_number = 1
        self.alive = True

    def send(self, message: dict, blob: bytes = b"") -> None:
        """Queues a frame of this session."""
        self._connection.post(("frame", self, encode(message, blob)))

    def release(self, slot: int) -> None:
        """Queues the return of a slot. Any thread, also finalisers; without effect once the session is lost."""
        if self.alive:
            self._connection.post(("release", self, slot))

    def number(self) -> int:
        """A number for a stream or a pipeline that this session has not used."""
        self._next_number += 1
        return self._next_number - 1

    def register_pipeline(self, frame: dict, blob: bytes) -> int:
        """The number of this pipeline, which is sent unless this session already has the very same one."""
        key = (frame["executor"], frame["num_workers"], hashlib.sha256(blob).digest())
        number = self._pipelines.get(key)
        if number is None:
            number = self._pipelines[key] = self.number()
            self.send({**frame, "id": number}, blob)
        return number

    def forget_pipeline(self, number: int) -> None:
        """The feeder refused it: the next stream that wants it sends it again."""
        self._pipelines = {key: known for key, known in self._pipelines.items() if known != number}
