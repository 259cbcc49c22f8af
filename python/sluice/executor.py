"""The Python executor's child: `python -m sluice.executor --socket-fd N --arena-fd M` (first-slice.md, section 4).

Its parent, a feeder or a worker, sends pipelines and batch requests over a socket pair; the child computes one batch at a
time, asks for a slot of the parent's arena, writes the tensors there and sends the rest as a pickle. It ends when the parent
says `quit` or is gone.
"""

from __future__ import annotations

import argparse
import mmap
import os
import signal
import socket
import time
from collections import deque

import torch

from sluice.computation import BatchRequest, Computation, enter_environment
from sluice.failures import describe, describe_not_loaded
from sluice.framing import FrameSocket
from sluice.structure import layout, pack


class SlotRefused(RuntimeError):
    """The parent has no room for a batch of this size."""


class Executor:
    """Answers the parent's frames one after the other."""

    def __init__(self, frames: FrameSocket, arena: mmap.mmap) -> None:
        self._frames = frames
        self._arena = arena
        self._computations: dict[int, Computation] = {}
        self._last_pipeline: int | None = None
        # Frames that arrived while an answer to `alloc` was awaited.
        self._deferred: deque[tuple[dict, bytes]] = deque()

    def run(self) -> None:
        """Until `quit` or the end of the stream."""
        while True:
            frame = self._deferred.popleft() if self._deferred else self._frames.receive()
            if frame is None or frame[0]["type"] == "quit":
                return
            message, blob = frame
            if message["type"] == "load":
                self._load(message["pipeline"], blob)
            elif message["type"] == "execute":
                self._execute(message)
            else:
                raise ValueError(f"the parent sent a frame of type {message['type']!r}")

    def _load(self, pipeline: int, blob: bytes) -> None:
        try:
            enter_environment(blob)
            self._computations[pipeline] = Computation(blob)
        except Exception as error:
            self._frames.send({"type": "error", "pipeline": pipeline, **describe_not_loaded(error)})
            return
        self._last_pipeline = pipeline
        self._frames.send({"type": "loaded", "pipeline": pipeline})

    def _execute(self, message: dict) -> None:
        started_seconds = time.process_time()
        answer = {"id": message["id"], "stream": message.get("stream"), "seq": message["seq"]}
        try:
            computation = self._computations[message.get("pipeline", self._last_pipeline)]
            tensors, structure = pack(computation.compute(_request(message)))
            descriptors, slot_bytes = layout(tensors)
            offset = self._slot(message["id"], slot_bytes)
            for tensor, descriptor in zip(tensors, descriptors, strict=True):
                self._write(tensor, offset + descriptor["offset"])
        except Exception as error:
            self._fail({**answer, "seconds": time.process_time() - started_seconds}, error)
            return
        seconds = time.process_time() - started_seconds
        self._frames.send({"type": "done", **answer, "tensors": descriptors, "seconds": seconds}, structure)

    def _slot(self, request_id: int, slot_bytes: int) -> int:
        """Where in the arena `slot_bytes` may be written."""
        self._frames.send({"type": "alloc", "id": request_id, "bytes": slot_bytes})
        while True:
            frame = self._frames.receive()
            if frame is None:
                raise SystemExit(0)
            message = frame[0]
            if message["type"] != "slot":
                self._deferred.append(frame)
            elif "error" in message:
                raise SlotRefused(message["error"])
            else:
                return message["offset"]

    def _write(self, tensor: torch.Tensor, offset: int) -> None:
        if tensor.numel() == 0:
            return
        target = torch.frombuffer(self._arena, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
        target.view(tensor.shape).copy_(tensor)

    def _fail(self, about: dict, error: Exception) -> None:
        fields, blob = describe(error)
        self._frames.send({"type": "error", **about, **fields}, blob)


def _request(message: dict) -> BatchRequest:
    return BatchRequest(**{field: message[field] for field in BatchRequest.__dataclass_fields__})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sluice.executor")
    parser.add_argument("--socket-fd", type=int, required=True)
    parser.add_argument("--arena-fd", type=int, required=True)
    arguments = parser.parse_args()
    # Ctrl-C at a terminal reaches the whole process group; the parent decides when this child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    arena = mmap.mmap(arguments.arena_fd, os.fstat(arguments.arena_fd).st_size)
    with socket.socket(fileno=arguments.socket_fd) as connected:
        connected.setblocking(True)
        try:
            Executor(FrameSocket(connected), arena).run()
        except (BrokenPipeError, ConnectionResetError):
            pass  # The parent is gone.


if __name__ == "__main__":
    main()
