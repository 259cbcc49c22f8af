"""How a client and a feeder begin: the client's `hello`, the feeder's `welcome` and its arena (protocols.md, section 2)."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from sluice.feeder.session import Session
from sluice.shipping.framing import FrameParser, ProtocolError, encode

PROTOCOL_VERSION = 2
_READ_BYTES = 1 << 18


def greet(connected: socket.socket, identity: dict, parser: FrameParser, post: Callable[[tuple], None]) -> tuple[Session, list[tuple[dict, bytes]]]:
    """The session, and the frames that came with its beginning. `identity`: fields of `hello`; `parser` goes on with the connection.
    Raises ProtocolError or OSError."""
    connected.sendall(encode({"type": "hello", "protocol": PROTOCOL_VERSION, **identity}))
    descriptors: list[int] = []
    try:
        frames: list[tuple[dict, bytes]] = []
        while not frames:
            data, received, _, _ = socket.recv_fds(connected, _READ_BYTES, 4, socket.MSG_CMSG_CLOEXEC)
            descriptors += received
            if not data:
                raise ProtocolError("the feeder closed the connection instead of answering hello")
            frames += parser.feed(data)
        return Session(post, _welcome(frames[0][0], len(descriptors)), descriptors[0]), frames[1:]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _welcome(message: dict, descriptors: int) -> dict:
    """The message, if it is one that came with the arena."""
    if message["type"] != "welcome":
        raise ProtocolError(f"the feeder answered hello with {message.get('message', message['type'])}")
    if message.get("protocol") != PROTOCOL_VERSION:
        raise ProtocolError(f"the feeder speaks protocol {message.get('protocol')}, this client {PROTOCOL_VERSION}")
    if descriptors != 1:
        raise ProtocolError(f"welcome came with {descriptors} file descriptors instead of the arena's one")
    return message
