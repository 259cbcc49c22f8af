"""Frames of the local protocol: `u32le json_bytes, u32le blob_bytes, json, blob` (protocols.md, section 4)."""

from __future__ import annotations

import json
import select
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from sluice.shipping.sealed_memory import SealedMemory

_HEADER = struct.Struct("<II")
# Not json.loads, in whose place a program may put its own.
_JSON, _READ_JSON = json.JSONEncoder(separators=(",", ":")), json.JSONDecoder()
MOST_JSON_BYTES = 16 << 20
MOST_BLOB_BYTES = 1 << 30
MOST_KEYS = 1 << 19  # Of a request: of 20 digits each they fit.
_READ_BYTES = 1 << 18


class ProtocolError(Exception):
    """The other end broke the protocol; the connection cannot be used any more."""


def encode(message: dict, blob: bytes = b"") -> bytes:
    """One frame. Raises ProtocolError if it is over the bounds."""
    text = _JSON.encode(message).encode()
    if len(text) > MOST_JSON_BYTES or len(blob) > MOST_BLOB_BYTES:
        raise ProtocolError(f"a {message.get('type')} frame of {len(text)} + {len(blob)} bytes is over the protocol's bounds")
    return b"".join((_HEADER.pack(len(text), len(blob)), text, blob))


@dataclass
class Outgoing:
    """Bytes to be sent, and the memory whose descriptor travels with the first of them."""

    left: bytes | memoryview
    memory: SealedMemory | None = None

    def send_some(self, connected: socket.socket) -> bool:
        """Sends what the socket takes. Returns whether that was all; raises as socket.send."""
        if self.memory is None:
            sent_bytes = connected.send(self.left)
        else:
            sent_bytes = socket.send_fds(connected, [self.left], [self.memory.descriptor])
        self.left, self.memory = memoryview(self.left)[sent_bytes:], None
        return not self.left


class FrameParser:
    """Cuts a byte stream into frames. Not thread-safe."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[dict, bytes]]:
        """Yields the (message, blob) pairs that `data` completes. Raises ProtocolError on anything malformed."""
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            json_bytes, blob_bytes = _HEADER.unpack_from(self._buffer)
            if json_bytes > MOST_JSON_BYTES or blob_bytes > MOST_BLOB_BYTES:
                raise ProtocolError(f"a frame announces {json_bytes} + {blob_bytes} bytes, over the protocol's bounds")
            end = _HEADER.size + json_bytes + blob_bytes
            if len(self._buffer) < end:
                return
            text = bytes(self._buffer[_HEADER.size : _HEADER.size + json_bytes])
            blob = bytes(self._buffer[_HEADER.size + json_bytes : end])
            del self._buffer[:end]
            yield _object(text), blob


class FrameSocket:
    """Blocking frames over a connected stream socket, and descriptors that come with them: the executor and tests. Not
    thread-safe."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._parser = FrameParser()
        self._complete: list[tuple[dict, bytes]] = []
        self._descriptors: list[int] = []

    def send(self, message: dict, blob: bytes = b"", memory: SealedMemory | None = None) -> None:
        outgoing = Outgoing(encode(message, blob), memory)
        while not outgoing.send_some(self.socket):
            pass

    def receive(self, most_seconds: float | None = None) -> tuple[dict, bytes] | None:
        """The next frame; None at the end of the stream. Raises TimeoutError if nothing of it comes for so long."""
        while not self._complete:
            if most_seconds is not None and not _has_come(self.socket, most_seconds):
                raise TimeoutError
            data, descriptors, _, _ = socket.recv_fds(self.socket, _READ_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
            self._descriptors += descriptors
            if not data:
                return None
            self._complete.extend(self._parser.feed(data))
        return self._complete.pop(0)

    def take_descriptor(self) -> int:
        """The one that came first; the caller closes it. Raises ProtocolError if none came."""
        if not self._descriptors:
            raise ProtocolError("a frame came without its file descriptor")
        return self._descriptors.pop(0)


def _has_come(connected: socket.socket, most_seconds: float) -> bool:
    arrivals = select.poll()
    arrivals.register(connected, select.POLLIN)
    return bool(arrivals.poll(1000 * most_seconds))


def _object(text: bytes) -> dict:
    try:
        message = _READ_JSON.decode(text.decode())
    except ValueError as error:
        raise ProtocolError(f"a frame's JSON cannot be read: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a frame's JSON is not an object with a type")
    return message
