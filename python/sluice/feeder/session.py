"""One established connection to a feeder, from its `welcome` to its loss."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Protocol

from sluice.feeder.answer import Answer
from sluice.feeder.arena import Arena
from sluice.shipping.framing import Outgoing, encode
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.shipment import Shipment


class Listener(Protocol):
    """A stream, as far as a session and its connection need to know it. `after`: the pass that it is expected to follow."""

    pipeline_number: int | None

    @property
    def is_ahead(self) -> bool: ...

    @property
    def shares_the_window(self) -> bool: ...

    @property
    def after(self) -> Listener | None: ...

    def on_connected(self, session: Session | None) -> None: ...

    def on_disconnected(self) -> None: ...

    def on_closed(self) -> None: ...

    def on_answer(self, answer: Answer) -> None: ...

    def on_pipeline_refused(self, error: str) -> None: ...

    def progress(self) -> dict: ...


class Session:
    """Guarded by the connection's condition, except `release`."""

    def __init__(self, post: Callable[[tuple], None], welcome: dict, descriptor: int) -> None:
        """`post(item)` hands an item to the connection's thread and takes no lock."""
        self._post = post
        self.arena = Arena(descriptor, welcome["arena_bytes"], self.release)
        self.window_batches: int | None = None
        self.takes_orders = bool(welcome.get("takes_orders"))  # Whether the order of an epoch is of use to the feeder: a node's cache asks it.
        self.streams: dict[int, Listener] = {}
        self.ending: set[int] = set()  # Closed streams, until the feeder says that their processes have ended.
        self.proven_pipelines: set[int] = set()  # Python pipelines of which an executor has made a batch.
        self._pipelines: dict[tuple, int] = {}
        self._watched: weakref.WeakSet[Shipment] = weakref.WeakSet()
        self._next_number = 1
        self.alive = True

    def send(self, message: dict, blob: bytes = b"", memory: SealedMemory | None = None) -> None:
        """Queues a frame of this session; `memory` travels with it."""
        self._post(("frame", self, Outgoing(encode(message, blob), memory)))

    def request(self, message: dict) -> None:
        """Queues a request without a blob. The connection's thread encodes it: the training loop has no time for that.
        REQUIRES: not more than MOST_KEYS keys, so that encoding cannot fail."""
        self._post(("request", self, message))

    def release(self, slot: int) -> None:
        """Queues the return of a slot. Any thread, also finalisers; without effect once the session is lost."""
        if self.alive:
            self._post(("release", self, slot))

    def answer(self, message: dict, blob: bytes) -> Answer:
        """What a `batch` or `error` frame of this session says."""
        return Answer(message, blob, self.arena)

    def number(self) -> int:
        """A number for a stream or a pipeline that this session has not used."""
        self._next_number += 1
        return self._next_number - 1

    def register_pipeline(self, frame: dict, shipment: Shipment) -> int:
        """The number of this pipeline, which is sent unless this session already has the very same one. The feeder is told
        when no loader needs it any more."""
        if shipment not in self._watched:
            self._watched.add(shipment)
            weakref.finalize(shipment, self._post, ("unneeded", self, shipment.digest)).atexit = False
        key = (frame["executor"], frame["num_workers"], shipment.digest)
        number = self._pipelines.get(key)
        if number is None:
            number = self._pipelines[key] = self.number()
            self.send({**frame, "id": number}, memory=shipment.memory)
        return number

    def drop_unneeded(self, digest: bytes) -> list[Outgoing]:
        """The frames by which the feeder forgets the pipelines of this shipment, unless a loader needs it again."""
        if Shipment.is_needed(digest):
            return []
        numbers = [number for key, number in self._pipelines.items() if key[-1] == digest]
        for number in numbers:
            self.forget_pipeline(number)
        return [Outgoing(encode({"type": "forget", "pipeline": number})) for number in numbers]

    def forget_pipeline(self, number: int) -> None:
        """The feeder refused it: the next stream that wants it sends it again."""
        self._pipelines = {key: known for key, known in self._pipelines.items() if known != number}
