"""A feeder in Python for deterministic tests: section 4 of the contract over a real Unix socket and a real memfd. It runs in a process of its own,
makes one batch at a time, and has faults on demand. It imports torch for its first pipeline: many tests want a feeder that is there, and no batch.
"""

from __future__ import annotations

import functools
import mmap
import multiprocessing
import os
import select
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sluice.shipping.framing import FrameParser, encode
from sluice.shipping.sealed_memory import SealedMemory

if TYPE_CHECKING:
    import torch

    from sluice.executor.computation import Computation

_CONTROL_SECONDS = 60


@dataclass
class Faults:
    """What goes wrong. Counts are of batches sent since the faults were set."""

    slots: int = 16                    # Of slot_bytes each; when only one is left, batches have to be copied out of it.
    slot_bytes: int = 1 << 20
    window_batches: int | None = None  # Sent after `welcome`.
    newest_first: bool = False         # Answers the latest request it has, not the earliest.
    send_twice: bool = False           # Every batch arrives a second time, in another slot.
    drop_after: int | None = None      # Closes the connection after so many batches ...
    drops: int = 1                     # ... so many times.
    silent: bool = False               # Accepts requests and never answers.
    refuse_native: bool = False        # `ready` with an error for native pipelines.
    refuse_all: bool = False
    lose_executors: int = 0            # Answers so many requests with the loss of their executor.
    no_room: int = 0                   # Answers so many requests by saying that the loop keeps too many batches.
    hang_up: bool = False              # Closes the connection at each request, without an answer.
    fail_native: bool = False          # Answers every request of a native pipeline with an error.
    reads: bool = False                # Of what a Python batch is made it has read some.
    tells_costs: bool = True           # In its answers; older feeders do not.
    keep_answering_closed: bool = False  # Computes and sends batches for streams that have been closed.


class FakeFeeder:
    """Runs the server; `set` changes its faults, `ask` reads its records."""

    def __init__(self, directory: Path, **faults: Any) -> None:
        import fake_computation  # noqa: F401  # Once for all that are forked from here.

        self.path = str(directory / "fake.sock")
        self._control, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=(self.path, theirs, Faults(**faults)), daemon=True)
        self._process.start()
        theirs.close()
        self.ask()

    @property
    def pid(self) -> int:
        return self._process.pid

    def set(self, **faults: Any) -> None:
        self._call({"faults": faults})

    def ask(self) -> dict:
        """Records: requests (list of [seq, position, indices]), progress (last frame by stream), closed (streams), held
        (slots not given back), pipelines (executors registered), hello, opens, forgotten."""
        return self._call({})

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        Path(self.path).unlink(missing_ok=True)

    def _call(self, command: dict) -> dict:
        self._control.send(command)
        if not self._control.poll(_CONTROL_SECONDS):
            raise TimeoutError("the fake feeder does not answer its control pipe")
        return self._control.recv()


class _Server:
    def __init__(self, connected: socket.socket, faults: Faults, records: dict) -> None:
        self._socket = connected
        self._faults = faults
        self._records = records
        self._parser = FrameParser()
        self._descriptors: deque[int] = deque()
        self._memory = os.memfd_create("fake-arena")
        self._arena_bytes = faults.slots * faults.slot_bytes
        os.ftruncate(self._memory, self._arena_bytes)
        self._arena = mmap.mmap(self._memory, self._arena_bytes)
        self._free = deque(range(faults.slots))
        self._pipelines: dict[int, tuple[str, Computation, int]] = {}
        self._memories: dict[int, SealedMemory] = {}
        self._streams: dict[int, dict] = {}
        self._requests: deque[dict] = deque()
        self.held: list[int] = []

    @functools.cached_property
    def _makes(self) -> ModuleType:
        """Which imports torch."""
        import fake_computation

        return fake_computation

    def readable(self) -> bool:
        """Reads what there is; False at the end of the connection."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            self._descriptors.extend(descriptors)
            for message, blob in self._parser.feed(data):
                getattr(self, "_on_" + message["type"])(message, blob)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return bool(data)

    @property
    def busy(self) -> bool:
        return bool(self._requests) and bool(self._free) and not self._faults.silent

    def work(self) -> bool:
        """Answers one request; False if the connection is to be dropped."""
        request = self._requests.pop() if self._faults.newest_first else self._requests.popleft()
        stream = self._streams[request["stream"]]
        if stream.get("closed") and not self._faults.keep_answering_closed:
            return True
        executor, computation, num_workers = self._pipelines[stream["pipeline"]]
        made = b""
        if "virtual_workers" in stream:
            computation, history = stream["computation"], stream["history"]
            if request["history"]:
                history[request["seq"] % num_workers] = request["history"]
            made = history[request["seq"] % num_workers]
            history[request["seq"] % num_workers] += struct.pack(f"<{len(request['indices']) + 1}q", len(request["indices"]), *request["indices"])
        about = {"stream": request["stream"], "seq": request["seq"]}
        if self._faults.hang_up:
            return False
        if self._faults.lose_executors > 0:
            self._faults.lose_executors -= 1
            self._send({"type": "error", **about, "exception_type": "ExecutorLost", "message": "it was killed"})
            return True
        if self._faults.no_room > 0:
            self._faults.no_room -= 1
            self._send({"type": "error", **about, "exception_type": "BatchDoesNotFit", "message": "one of 9 bytes finds no room"})
            return True
        if executor == "native" and self._faults.fail_native:
            self._send({"type": "error", **about, "exception_type": "OSError", "message": "broken", "traceback": "native"})
            return True
        worker = {"worker_id": request["seq"] % num_workers, "num_workers": num_workers}
        seeds = {"base_seed": stream["base_seed"], "epoch": stream["epoch"]}
        try:
            if "virtual_workers" not in stream:
                computation.renew(stream["state"])
            wanted = {"seq": request["seq"], "position": request["position"], "indices": request["indices"], **seeds, **worker}
            tensors, structure = self._makes.compute(computation, wanted, made)
        except Exception as error:
            fields, blob = self._makes.describe(error)
            self._send({"type": "error", **about, **fields}, blob)
            return True
        for _ in range(2 if self._faults.send_twice and len(self._free) > 1 else 1):
            self._send_batch(about, tensors, b"" if executor == "native" else structure, self._costs(executor, computation, len(request["indices"])))
        return self._still_connected()

    def _costs(self, executor: str, computation: Computation, samples: int) -> dict:
        """What the answer says of them: of native batches, numbers that tests can expect."""
        if not self._faults.tells_costs:
            return {"seconds": 0.0}
        if executor == "python":
            return {"seconds": 0.0, "ops": computation.laps.costs(), "blocked_seconds": 0.0, "from_memory": not self._faults.reads}
        parts = [["read", 1e-3 * samples, 1000 * samples], ["decode", 4e-3 * samples, 5000 * samples],
                 ["resample", 2e-3 * samples, 2000 * samples], ["finish", 1e-3 * samples, 8000 * samples]]
        return {"seconds": 1e-2 * samples, "ops": parts, "blocked_seconds": 0.0}

    def _still_connected(self) -> bool:
        faults = self._faults
        if faults.drop_after is None or faults.drops <= 0:
            return True
        faults.drop_after -= 1
        if faults.drop_after > 0:
            return True
        faults.drops -= 1
        faults.drop_after = 2
        return False

    def _send_batch(self, about: dict, tensors: list[torch.Tensor], structure: bytes, costs: dict) -> None:
        copy = len(self._free) == 1
        slot = self._free.popleft()
        descriptors = self._makes.write(tensors, self._arena, slot * self._faults.slot_bytes, self._faults.slot_bytes)
        self.held.append(slot)
        message = {"type": "batch", **about, "slot": slot, "copy": copy, "tensors": descriptors}
        self._send({**message, "placement": "local", **costs}, structure)

    def _send(self, message: dict, blob: bytes = b"") -> None:
        self._socket.sendall(encode(message, blob))

    def _on_hello(self, message: dict, blob: bytes) -> None:
        self._records["hello"] = message
        welcome = encode({"type": "welcome", "protocol": 2, "arena_bytes": self._arena_bytes, "session": "fake"})
        socket.send_fds(self._socket, [welcome[:1]], [self._memory])
        self._socket.sendall(welcome[1:])
        if self._faults.window_batches is not None:
            self._send({"type": "window", "batches": self._faults.window_batches})

    def _on_pipeline(self, message: dict, blob: bytes) -> None:
        memory = SealedMemory(self._descriptors.popleft())
        self._records["pipelines"].append(message["executor"])
        native = message["executor"] == "native"
        if self._faults.refuse_all or (native and self._faults.refuse_native):
            self._send({"type": "ready", "pipeline": message["id"], "error": "refused for the test"})
            return
        if native:
            memory = self._makes.native_pipeline(memory)
        try:
            computation = self._makes.Computation(memory)
        except Exception as error:
            self._send({"type": "ready", "pipeline": message["id"], "error": str(error)})
            return
        self._memories[message["id"]] = memory
        self._pipelines[message["id"]] = (message["executor"], computation, message["num_workers"])
        self._send({"type": "ready", "pipeline": message["id"], "fingerprint": "0"})

    def _on_open(self, message: dict, blob: bytes) -> None:
        self._records["opens"] += 1
        self._streams[message["stream"]] = {**message, "state": blob}
        if "virtual_workers" in message and message["pipeline"] in self._memories:
            computation = self._makes.Computation(self._memories[message["pipeline"]], blob)
            self._streams[message["stream"]] |= {"computation": computation, "history": [b""] * message["virtual_workers"]}

    def _on_forget(self, message: dict, blob: bytes) -> None:
        self._records["forgotten"] += 1

    def _on_request(self, message: dict, blob: bytes) -> None:
        self._records["requests"].append([message["seq"], message["position"], message["indices"]])
        if self._streams[message["stream"]]["pipeline"] in self._pipelines:
            self._requests.append({**message, "history": blob})
            self._records["histories"] += bool(blob)

    def _on_release(self, message: dict, blob: bytes) -> None:
        for slot in message["slots"]:
            self.held.remove(slot)
            self._free.append(slot)

    def _on_progress(self, message: dict, blob: bytes) -> None:
        self._records["progress"][message["stream"]] = message

    def _on_close(self, message: dict, blob: bytes) -> None:
        self._streams[message["stream"]]["closed"] = True
        self._records["closed"].append(message["stream"])


def _serve(path: str, control: Any, faults: Faults, may_end: Callable[[], bool] = lambda: False) -> None:
    """Until the other end of `control` is closed, or `may_end` says so when the last client has gone."""
    records: dict = {"requests": [], "progress": {}, "closed": [], "pipelines": [], "opens": 0, "connections": 0, "forgotten": 0, "histories": 0}
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()
    servers: dict[socket.socket, _Server] = {}

    def drop(connected: socket.socket) -> None:
        del servers[connected]
        connected.close()

    while servers or "hello" not in records or not may_end():
        busy = any(server.busy for server in servers.values())
        ready, _, _ = select.select([listener, control, *servers], [], [], 0 if busy else None)
        for source in ready:
            if source is listener:
                connected, _ = listener.accept()
                records["connections"] += 1
                servers[connected] = _Server(connected, faults, records)
            elif source is control:
                try:
                    command = control.recv()
                except EOFError:
                    return
                for name, value in command.get("faults", {}).items():
                    setattr(faults, name, value)
                held = [slot for server in servers.values() for slot in server.held]
                control.send({**records, "held": held})
            elif not servers[source].readable():
                drop(source)
        if not ready:
            for connected, server in list(servers.items()):
                try:
                    if server.busy and not server.work():
                        drop(connected)
                except (BrokenPipeError, ConnectionResetError):
                    drop(connected)
