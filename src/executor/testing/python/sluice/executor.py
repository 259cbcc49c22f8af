"""The child's side of the protocol for tests (docs/designs/protocols.md section 4).

The pipeline, in the memory that comes with `load`, is JSON: {"behaviour": "echo" | ..., ...}. "echo" answers a batch with one int64 tensor: its indices, seq and
worker id. The other behaviours misbehave in one way each.
"""

import argparse
import ctypes
import json
import mmap
import os
import signal
import socket
import struct
import sys
import time


class Frames:
    def __init__(self, connected):
        self._socket, self._buffer, self.passed = connected, b"", []

    def _read(self, count):
        while len(self._buffer) < count:
            data, passed, _, _ = socket.recv_fds(self._socket, 1 << 16, 1)
            self.passed += passed
            if not data:
                sys.exit(0)
            self._buffer += data
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def receive(self):
        json_bytes, blob_bytes = struct.unpack("<II", self._read(8))
        return json.loads(self._read(json_bytes)), self._read(blob_bytes)

    def send(self, message, blob=b""):
        text = json.dumps(message).encode()
        self._socket.sendall(struct.pack("<II", len(text), len(blob)) + text + blob)


def fork(frames, pipeline):
    """Returns the copy's frames in the copy, and its parent's in the parent."""
    served = frames.passed.pop(0)
    if pipeline.get("threads"):
        frames.send({"type": "error", "message": "it has 2 threads"})
        os.close(served)
        return frames
    parent = os.getpid()
    pid = os.fork()
    if pid:
        frames.send({"type": "forked", "pid": pid})
        os.close(served)
        return frames
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before
        os._exit(127)
    frames._socket.close()
    pipeline["socket"] = served
    return Frames(socket.socket(fileno=served))


def misbehave(behaviour, message, pipeline):
    if behaviour == "raise":
        return {"type": "error", "id": message["id"], "exception_type": "KeyError", "message": "'x'", "traceback": "line 1"}
    if behaviour == "segfault" or (behaviour == "segfault once" and not os.path.exists(pipeline["marker"])):
        if "marker" in pipeline:
            open(pipeline["marker"], "w").close()
        os.kill(os.getpid(), signal.SIGSEGV)
    if behaviour == "exit":
        os._exit(3)
    if behaviour == "opens" and "opened" not in pipeline:  # and keeps it
        pipeline["opened"] = open(pipeline["file"])
    if behaviour == "hang":
        time.sleep(3600)
    if behaviour == "meet":  # so that as many children as wanted run at once
        open(os.path.join(pipeline["folder"], str(os.getpid())), "w").close()
        while len(os.listdir(pipeline["folder"])) < pipeline["children"]:
            time.sleep(0.005)
    if behaviour == "half a frame":
        os.write(pipeline["socket"], b"\x40\x00\x00\x00")
        os._exit(0)
    if behaviour == "endless frame":
        os.write(pipeline["socket"], b"\xff" * 8)
        time.sleep(3600)
    if behaviour == "nonsense":
        return {"type": "dance"}
    if behaviour == "foreign answer":
        return {"type": "alloc", "id": message["id"] + 1000, "bytes": 8}
    return None


def while_loading(behaviour, frames, release):
    while release is not None and not os.path.exists(release):
        time.sleep(0.005)
    if behaviour == "never load":
        time.sleep(3600)
    if behaviour == "die while loading":
        os._exit(5)
    if behaviour == "nonsense while loading":
        frames.send({"type": "dance"})
    if behaviour == "answers before it is asked":
        frames.send({"type": "alloc", "id": 1, "bytes": 8})


def answer(frames, arena, message, history, pipeline):
    behaviour = pipeline["behaviour"]
    wrong = misbehave(behaviour, message, pipeline)
    if wrong is not None:
        frames.send(wrong, b"pickled" if behaviour == "raise" else b"")
        return
    if behaviour in ("no tensors", "no alloc"):
        tensors = [{"dtype": "int64", "shape": [1], "offset": 0, "nbytes": 8}] if behaviour == "no alloc" else []
        frames.send({"type": "done", "id": message["id"], "tensors": tensors, "seconds": 0}, b"structure")
        return
    if behaviour == "environment":
        wanted = {name: os.environ.get(name) for name in pipeline["names"]}
        text = json.dumps({**wanted, "nice": os.nice(0), "message": message, "states": pipeline["states"]}).encode()
        frames.send({"type": "done", "id": message["id"], "tensors": [], "seconds": 0}, text)
        return
    if behaviour == "keeps results":  # says what it was told of its call, and makes the result where there is none
        frames.send({"type": "find", "id": 1, "function": "m.f", "version": "1"}, b"arguments")
        told, value = frames.receive()
        if told["keeps"]:
            frames.send({"type": "keep", "id": 1}, b"result")
        text = json.dumps({"load": pipeline["load"], "is_found": told["is_found"], "value": value.decode()}).encode()
        kept = [{"function": "m.f", "hits" if told["is_found"] else "calls": 1}]
        frames.send({"type": "done", "id": message["id"], "tensors": [], "seconds": 0, "kept": kept}, text)
        return
    if behaviour == "remembers":  # who it is, and what it was told to make again
        text = json.dumps({"pid": os.getpid(), "history": list(struct.unpack(f"<{len(history) // 8}q", history))}).encode()
        costs = {"from_memory": not pipeline.get("reads"), "seconds": 0}
        frames.send({"type": "done", "id": message["id"], "tensors": [], **costs}, text)
        return
    values = [*message["indices"], message["seq"], message["worker_id"]]
    size = 8 * len(values)
    for _ in range(pipeline.get("allocs", 1)):
        frames.send({"type": "alloc", "id": message["id"], "bytes": pipeline.get("alloc_bytes", size)})
        slot, _ = frames.receive()
    if "error" in slot:
        frames.send({"type": "error", "id": message["id"], "exception_type": "SlotRefused", "message": slot["error"]})
        return
    arena[slot["offset"] : slot["offset"] + size] = struct.pack(f"<{len(values)}q", *values)
    offset = 1 << 40 if behaviour == "tensor outside" else 0
    tensors = [{"dtype": "int64", "shape": [len(values)], "offset": offset, "nbytes": size}]
    structure = b"s" * pipeline.get("structure_bytes", 0) or b"structure"
    costs = {"from_memory": True, "seconds": pipeline.get("seconds", 0.25), "ops": [["dataset", 0.125, 0], ["collate", 0.0625, size]]}
    frames.send({"type": "done", "id": message["id"], "tensors": tensors, **costs}, structure)
    if behaviour == "die afterwards":
        os._exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket-fd", type=int)
    parser.add_argument("--arena-fd", type=int)
    arguments = parser.parse_args()
    arena = mmap.mmap(arguments.arena_fd, 0)
    frames = Frames(socket.socket(fileno=arguments.socket_fd))
    pipeline = {}
    while True:
        message, blob = frames.receive()
        if message["type"] == "quit":
            return
        if message["type"] == "load":
            memory = frames.passed.pop(0)
            pipeline = json.loads(os.pread(memory, os.fstat(memory).st_size, 0))
            os.close(memory)
            pipeline |= {"socket": arguments.socket_fd, "states": [], "load": message}
            while_loading(pipeline["behaviour"], frames, pipeline.get("release"))
            if pipeline["behaviour"] == "cannot load":
                frames.send({"type": "error", "pipeline": message["pipeline"], "exception_type": "ImportError", "message": "no module"})
            else:
                frames.send({"type": "loaded", "pipeline": message["pipeline"]})
            if "loads" in pipeline:  # a folder: who has loaded it
                open(os.path.join(pipeline["loads"], str(os.getpid())), "w").close()
        elif message["type"] == "fork":
            frames = fork(frames, pipeline)
        elif message["type"] == "reap":
            frames.send({"type": "reaped", "status": os.waitpid(message["pid"], 0)[1]})
        elif message["type"] == "state":
            pipeline["states"].append([message["pipeline"], blob.decode()])
        else:
            answer(frames, arena, message, blob, pipeline)


main()
