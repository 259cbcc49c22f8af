"""The Python executor's child: `python -m sluice.executor --socket-fd N --arena-fd M` (protocols.md, section 4).

Its parent, a feeder or a worker, sends pipelines and batch requests over a socket pair. The child computes one batch at a time and asks for a slot of
the parent's arena. It writes the tensors there and sends the rest as a pickle. It ends with the socket.

Asked to fork, it goes on twice: the copy shares what is imported and loaded. A process that forks others computes nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import importlib
import io
import mmap
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator

import torch

from sluice.base.queued import queued_seconds
from sluice.cache.kept import enter
from sluice.executor.computation import BatchRequest, Computation
from sluice.executor.heap import keep_freed_memory
from sluice.executor.kept_calls import KeptCalls
from sluice.executor.laps import COLLATE
from sluice.executor.memory_only import MemoryOnly, listen
from sluice.executor.skipping import Reduced
from sluice.shipping.failures import BatchDoesNotFit, describe, describe_not_loaded, lacks_the_script
from sluice.shipping.framing import FrameSocket
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.shipment import enter_origin
from sluice.shipping.structure import layout, pack, write


_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1


class _EndOfStream(BaseException):
    """The parent has closed the socket in the middle of a batch."""


class Executor:
    """Answers the parent's frames one after the other."""

    def __init__(self, frames: FrameSocket, arena: mmap.mmap) -> None:
        self._frames = frames
        self._arena = arena
        self._computations: dict[int, Computation] = {}
        self._last_pipeline = 0  # The number of none.
        self._memory_only: MemoryOnly | None = None  # Of a process that computes.
        # Why a pipeline could not go over to its last state: the fields of the error that its batches get.
        self._not_entered: dict[int, dict] = {}
        self._calls: KeptCalls | None = None  # Where the parent has a cache.
        # Frames that arrived while another answer was awaited.
        self._deferred: deque[tuple[dict, bytes]] = deque()

    def run(self) -> None:
        """Until the end of the stream."""
        try:
            while (frame := self._deferred.popleft() if self._deferred else self._frames.receive()) is not None:
                self._act(*frame)
                del frame  # A state may be large.
        except _EndOfStream:
            pass

    def _act(self, message: dict, blob: bytes) -> None:
        if message["type"] == "load":
            self._load(message["pipeline"], SealedMemory(self._frames.take_descriptor()))
            self._calls = KeptCalls(self._ask, self._tell) if message.get("keeps_results") else None
        elif message["type"] == "state":
            self._enter_state(message["pipeline"], blob)
        elif message["type"] == "execute":
            self._execute(message, blob)
        elif message["type"] == "found":
            pass  # It has come too late.
        elif message["type"] == "fork":
            self._fork()
        elif message["type"] == "reap":
            self._frames.send({"type": "reaped", "status": os.waitpid(message["pid"], 0)[1]})
        else:
            raise ValueError(f"the parent sent a frame of type {message['type']!r}")

    def _fork(self) -> None:
        """The copy serves the socket that came with the frame, and ends with this process."""
        served = self._frames.take_descriptor()
        try:
            threads = len(os.listdir("/proc/self/task"))
            if threads > 1:
                raise RuntimeError(f"it has {threads} threads, which a fork would stop in the middle of what they do")
            gc.freeze()  # A collection would write to every object, and so copy the memory that forks share.
            sys.stdout.flush()
            sys.stderr.flush()
            parent, copy = os.getpid(), os.fork()
        except Exception as error:
            os.close(served)
            self._frames.send({"type": "error", "message": str(error)})
            return
        if copy > 0:
            os.close(served)
            self._frames.send({"type": "forked", "pid": copy})
            return
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        self._frames.socket.close()
        self._frames = FrameSocket(socket.socket(fileno=served))

    def _load(self, pipeline: int, memory: SealedMemory) -> None:
        try:
            enter_origin(memory)
            self._computations[pipeline] = Computation(memory)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            self._frames.send({"type": "error", "pipeline": pipeline, **describe_not_loaded(error)})
            return
        if "numpy" in sys.modules:
            importlib.import_module("numpy.random")  # Each batch seeds it, and it is imported when first asked for: here for all forks.
        self._last_pipeline = pipeline
        self._frames.send({"type": "loaded", "pipeline": pipeline})

    def _enter_state(self, pipeline: int, state: bytes) -> None:
        self._not_entered.pop(pipeline, None)
        try:
            self._computations[pipeline].enter(state)
        except Exception as error:  # It is the next batches' affair: `state` has no answer.
            self._not_entered[pipeline] = describe_not_loaded(error)

    def _execute(self, message: dict, history: bytes) -> None:
        started_seconds = time.process_time()
        answer = {"id": message["id"], "stream": message.get("stream"), "seq": message["seq"]}
        pipeline = message.get("pipeline", self._last_pipeline)
        if pipeline in self._not_entered:
            self._frames.send({"type": "error", **answer, **self._not_entered[pipeline]})
            return
        try:
            computation = self._computations[pipeline]
            self._memory_only = self._memory_only or MemoryOnly()
            watch = BlockedTime()
            self._memory_only.begin()
            with self._kept_results():
                made = computation.compute(computation.arrived(_request(message)), history, stacks=True)
            from_memory = self._memory_only.holds() and not (self._calls is not None and self._calls.named_files)
            if isinstance(made, Reduced) and not computation.is_sticky:  # Otherwise no data worker makes it, and only this process can.
                made.require_something()
            blocked_seconds = watch.seconds()
            tensors, structure = pack(made)
            descriptors, slot_bytes = layout(tensors)
            write(tensors, descriptors, self._arena, self._slot(message["id"], slot_bytes))
            computation.laps.lap(COLLATE, sum(descriptor["nbytes"] for descriptor in descriptors))
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # The last two end a worker of torch's without a word.
            self._fail({**answer, "seconds": time.process_time() - started_seconds}, error)
            return
        seconds = time.process_time() - started_seconds
        done = {"type": "done", **answer, "tensors": descriptors, "seconds": seconds, "ops": computation.laps.costs(), "from_memory": from_memory}
        if blocked_seconds is not None:
            done["blocked_seconds"] = blocked_seconds
        if self._calls is not None and (kept := self._calls.report()):
            done["kept"] = kept
        self._frames.send(done, structure)

    @contextlib.contextmanager
    def _kept_results(self) -> Iterator[None]:
        """Inside, results of marked functions may come from the parent's cache, and go there."""
        if self._calls is not None:
            self._calls.begin()
        enter(self._calls)
        try:
            yield
        finally:
            enter(None)

    def _ask(self, message: dict, blob: bytes, most_seconds: float) -> tuple[dict, bytes] | None:
        """The parent's `found` for a `find`; None if it does not come in time."""
        self._frames.send(message, blob)
        end = time.monotonic() + most_seconds
        while True:
            try:
                frame = self._frames.receive(max(0.0, end - time.monotonic()))
            except TimeoutError:
                return None
            if frame is None:
                raise _EndOfStream
            if frame[0]["type"] != "found":
                self._deferred.append(frame)
            elif frame[0]["id"] == message["id"]:
                return frame

    def _tell(self, message: dict, blob: bytes) -> None:
        self._frames.send(message, blob)

    def _slot(self, request_id: int, slot_bytes: int) -> int:
        """Where in the arena `slot_bytes` may be written."""
        self._frames.send({"type": "alloc", "id": request_id, "bytes": slot_bytes})
        while True:
            frame = self._frames.receive()
            if frame is None:
                raise _EndOfStream
            message = frame[0]
            if message["type"] != "slot":
                self._deferred.append(frame)
            elif "error" in message:
                raise BatchDoesNotFit(message["error"])
            else:
                return message["offset"]

    def _fail(self, about: dict, error: BaseException) -> None:
        fields, blob = (describe_not_loaded(error), b"") if lacks_the_script(error) else describe(error)
        self._frames.send({"type": "error", **about, **fields}, blob)


class BlockedTime:
    """For how long, since it was made, the main thread neither ran nor waited for a CPU: it waited for what it reads, of a
    disk or a network. Threads that work for it count as if it ran."""

    def __init__(self) -> None:
        self._start = self._clocks()

    def seconds(self) -> float | None:
        """None where the kernel does not tell how long a thread waits for a CPU."""
        now = self._clocks()
        if self._start is None or now is None:
            return None
        wall, cpu, queued = (after - before for after, before in zip(now, self._start, strict=True))
        return max(0.0, wall - cpu - queued)

    @staticmethod
    def _clocks() -> tuple[float, float, float] | None:
        queued = queued_seconds()
        return None if queued is None else (time.monotonic(), time.process_time(), queued)


def _request(message: dict) -> BatchRequest:
    return BatchRequest(**{field: message[field] for field in BatchRequest.__dataclass_fields__})


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sluice.executor")
    parser.add_argument("--socket-fd", type=int, required=True)
    parser.add_argument("--arena-fd", type=int, required=True)
    arguments = parser.parse_args()
    # Ctrl-C at a terminal reaches the whole process group; the parent decides when this child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It may be killed while it idles: what the user's code has printed must be out by then.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    torch.set_num_threads(1)
    torch.arange(1)  # torch reads of what kind the processor is when it first fills a tensor: here, so that no fork has to.
    keep_freed_memory()
    listen()
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # pyarrow's thread: with it this process could not be forked.
    os.environ["SLUICE"] = "off"  # A loader within the user's data set is no loader of a training loop.
    arena = mmap.mmap(arguments.arena_fd, os.fstat(arguments.arena_fd).st_size)
    with socket.socket(fileno=arguments.socket_fd) as connected:
        connected.setblocking(True)
        try:
            Executor(FrameSocket(connected), arena).run()
        except (BrokenPipeError, ConnectionResetError):
            pass  # The parent is gone.


if __name__ == "__main__":
    main()
