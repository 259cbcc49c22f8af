"""A pipeline on its way to executors (protocols.md, section 6): described once, and after that only what has changed.

    description  module path, surroundings, pickle and large arrays: all that a fresh interpreter needs. It is memory that all processes share.
    state        surroundings and pickle of a later epoch, over the same arrays; empty if nothing has changed.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import pickle
import struct
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sluice.shipping.framing import MOST_BLOB_BYTES
from sluice.shipping.own_code import HomePickleReader, PickleReader
from sluice.shipping.plain_data import PlainParts
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.surroundings import Surroundings, enter_module_path, module_path

_ALIGNMENT_BYTES = 64
_MOST_PICKLED_BYTES = MOST_BLOB_BYTES - (1 << 20)
LIGHT_BYTES = 16 << 20  # Of a pipeline of which a process may hold a further copy.
_COMPARED_BYTES = 1 << 16  # stays in the processor's cache
_HEAD = struct.Struct("<Q")


class Shipment:
    """What describes a pipeline, as bytes that executors map. Equal bytes are one object, so its end tells that no loader
    needs them any more. Thread-safe: immutable."""

    _alive: weakref.WeakValueDictionary[bytes, Shipment] = weakref.WeakValueDictionary()
    _lock = threading.Lock()

    def __init__(self, memory: SealedMemory, digest: bytes) -> None:
        """Use `of`."""
        self.memory = memory
        self.digest = digest

    @classmethod
    def of(cls, parts: list[bytes | memoryview]) -> Shipment:
        """Of the parts, one behind the other. Raises OSError if there is no memory."""
        digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
        with cls._lock:
            known = cls._alive.get(digest)
            if known is None:
                known = cls._alive[digest] = cls(SealedMemory.of(parts), digest)
            return known

    @classmethod
    def is_needed(cls, digest: bytes) -> bool:
        """Whether there is a shipment of these bytes."""
        with cls._lock:
            return digest in cls._alive


@dataclass(frozen=True)
class Description:
    """A Python pipeline as it was when it was first sent. `origin` and the arrays decide whether it still will do. With `parts` it stays in this
    process: they are not in the shipment."""

    shipment: Shipment
    origin: dict[str, Any]
    surroundings: Surroundings
    pipeline_digest: bytes
    parts: PlainParts | None = None

    def has(self, origin: dict[str, Any], arrays: list[memoryview]) -> bool:
        """Whether a pipeline from there with these arrays can be described as a change of this one."""
        described = _parts(self.shipment.memory.view())[3:]
        return self.origin == origin and len(described) == len(arrays) and all(map(_equal, described, arrays))


def describe_pipeline(pipeline: Any, previous: Description | None = None, light: bool = False,
                      parts: PlainParts | None = None) -> tuple[Description, bytes]:
    """The description of a pipeline and its present state. It is the previous description if only the state has changed. `light`: only if
    that costs little. `parts`: gets what a copy in this process shares with it. Raises NotLight or TooLarge, NotSendable, or whatever the user's
    objects raise when pickled."""
    from sluice.shipping.pickling import dump  # Needs cloudpickle, which a trainer of native pipelines need not have.

    pickled, arrays = dump(pipeline, LIGHT_BYTES if light else _MOST_PICKLED_BYTES, getattr(pipeline, "sticky", False), light, parts)
    pipeline_digest = hashlib.sha256(pickled).digest()
    origin, surroundings = {"sys_path": module_path(), "cwd": os.getcwd()}, Surroundings.capture()
    if previous is None or not previous.has(origin, arrays):
        common = surroundings.of_all_ranks()
        shipment = Shipment.of(list(_join(origin, [pickle.dumps(common), pickled, *arrays])))
        previous = Description(shipment, origin, common, pipeline_digest, parts)
    same = previous.pipeline_digest == pipeline_digest
    if same and previous.surroundings == surroundings:
        return previous, b""
    return previous, b"".join(_join({}, [pickle.dumps(surroundings), b"" if same else pickled]))


def enter_origin(memory: SealedMemory) -> None:
    """Takes over the module path and the directory of the process that described a pipeline, and its surroundings."""
    contents, surroundings, *_ = _parts(memory.view())
    enter_module_path(contents["sys_path"], contents["cwd"])
    pickle.loads(surroundings).enter()


class Received:
    """A described pipeline at its destination. Not thread-safe."""

    def __init__(self, memory: SealedMemory, at_home: bool, parts: PlainParts | None = None) -> None:
        """`at_home`: this process has described it, with these parts."""
        self._memory = memory
        self._at_home = at_home
        self._plain_parts = parts
        _, self._surroundings, self._pickled, *arrays = _parts(memory.view())
        self._has_arrays = bool(arrays)
        self._loaded_digest = b""

    def surroundings(self, state: bytes) -> Surroundings:
        return pickle.loads(_parts(memoryview(state))[1] if state else self._surroundings)

    def load(self, state: bytes) -> Any:
        """The pipeline as it is in `state`; None if the last call has already returned that. Raises whatever unpickling
        raises."""
        pickled = self._pickle_of(state)
        digest = hashlib.sha256(pickled).digest()
        if digest == self._loaded_digest:
            return None
        pipeline = self._read(pickled)
        self._loaded_digest = digest
        return pipeline

    def copy(self, state: bytes) -> Any:
        """The pipeline as it is in `state`, whatever was loaded before. Raises whatever unpickling raises."""
        return self._read(self._pickle_of(state))

    def _read(self, pickled: Any) -> Any:
        if not self._at_home:
            return PickleReader(io.BytesIO(pickled), buffers=self._fresh_arrays()).load()
        parts = self._plain_parts.copy() if self._plain_parts is not None else []
        reader = HomePickleReader(io.BytesIO(pickled), parts, buffers=self._fresh_arrays())
        pipeline = reader.load()
        pipeline.snapshot = reader.snapshot
        return pipeline

    def _fresh_arrays(self) -> list:
        """The data set may write to its arrays: that must not change what the next call returns."""
        return _parts(self._memory.private())[3:] if self._has_arrays else []

    def _pickle_of(self, state: bytes) -> Any:
        changed = _parts(memoryview(state))[2] if state else b""
        return changed if len(changed) else self._pickled


def _equal(a: memoryview, b: memoryview) -> bool:
    """Piece by piece as bytes: comparing the views themselves takes ten times as long."""
    pieces = range(0, a.nbytes, _COMPARED_BYTES)
    return a.nbytes == b.nbytes and all(a[at : at + _COMPARED_BYTES].tobytes() == b[at : at + _COMPARED_BYTES].tobytes() for at in pieces)


def _join(contents: dict, parts: list) -> Iterator[bytes | memoryview]:
    """A pickle of `contents` and of the lengths of the parts, behind its own length, and then the parts. Each begins at a
    multiple of the alignment."""
    head = pickle.dumps({**contents, "lengths": [memoryview(part).nbytes for part in parts]})
    for part in (_HEAD.pack(len(head)) + head, *parts):
        yield part
        yield bytes(-memoryview(part).nbytes % _ALIGNMENT_BYTES)


def _parts(joined: memoryview) -> list:
    """What `_join` has joined: the contents, and a view of each part."""
    head_bytes = _HEAD.size + _HEAD.unpack_from(joined)[0]
    contents = pickle.loads(joined[_HEAD.size : head_bytes])
    starts = itertools.accumulate((_aligned(length) for length in contents["lengths"]), initial=_aligned(head_bytes))
    return [contents, *(joined[start : start + length] for start, length in zip(starts, contents["lengths"], strict=False))]


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
