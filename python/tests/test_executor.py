"""The executor's child, driven as a feeder drives it: over a socket pair, with an arena of this process."""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from sample_datasets import Failing, Mixed, Numbers, OwnError, WorkerFacts, tag_dataset
from sluice.arena import Arena
from sluice.computation import BatchRequest, Computation, PythonPipeline, untouched_process
from sluice.failures import exception_class
from sluice.framing import FrameSocket
from sluice.structure import unpack
from test_loader import equal

ARENA_BYTES = 1 << 20


class Child:
    """A running child and this end of its socket."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(120)
        self._memory = os.memfd_create("arena")
        os.ftruncate(self._memory, ARENA_BYTES)
        command = [sys.executable, "-m", "sluice.executor", "--socket-fd", str(theirs.fileno()), "--arena-fd", str(self._memory)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno(), self._memory], env=environment, cwd="/")
        theirs.close()
        self.frames = FrameSocket(ours)
        self.arena = Arena(self._memory, ARENA_BYTES, lambda slot: None)

    def load(self, number: int, *pipeline) -> dict:
        self.frames.send({"type": "load", "pipeline": number}, PythonPipeline(*pipeline).dumps())
        return self.frames.receive()[0]

    def execute(self, request_id: int, pipeline: int | None, request: BatchRequest) -> None:
        fields = {name: getattr(request, name) for name in BatchRequest.__dataclass_fields__}
        which = {} if pipeline is None else {"pipeline": pipeline}
        self.frames.send({"type": "execute", "id": request_id, "stream": 1, **which, **fields})

    def finish(self, offset: int = 4096):
        """Answers `alloc` and reads `done`; returns (message, batch)."""
        alloc, _ = self.frames.receive()
        if alloc["type"] == "error":
            return alloc, _
        assert alloc["type"] == "alloc"
        self.frames.send({"type": "slot", "id": alloc["id"], "offset": offset})
        done, structure = self.frames.receive()
        if done["type"] == "error":
            return done, structure
        assert done["type"] == "done" and done["id"] == alloc["id"]
        descriptors = [{**tensor, "offset": tensor["offset"] + offset} for tensor in done["tensors"]]
        return done, unpack(structure, self.arena.adopt(0, descriptors))

    def close(self) -> None:
        self.frames.socket.close()
        self.process.wait(60)
        os.close(self._memory)


@pytest.fixture(scope="module")
def child():
    child = Child()
    yield child
    child.close()
    assert child.process.returncode == 0


def request(seq: int = 0, indices=(0, 1, 2), **fields) -> BatchRequest:
    defaults = {"base_seed": 2**63 - 5, "epoch": 1, "position": 12, "worker_id": seq % 2, "num_workers": 2}
    return BatchRequest(seq, indices=list(indices), **{**defaults, **fields})


def computed_here(pipeline: PythonPipeline, wanted: BatchRequest):
    with untouched_process():
        return Computation(pipeline.dumps()).compute(wanted)


@pytest.mark.parametrize("dataset", [Numbers(), Mixed()])
def test_batches_are_those_computed_in_process(child, dataset):
    assert child.load(1, dataset, None, True, None) == {"type": "loaded", "pipeline": 1}
    child.execute(7, 1, request())
    done, batch = child.finish()
    assert (done["seq"], done["stream"]) == (0, 1) and done["seconds"] >= 0
    assert all(tensor["offset"] % 64 == 0 for tensor in done["tensors"])
    assert equal(batch, computed_here(PythonPipeline(dataset, None, True, None), request()))


def test_requests_may_queue_while_a_slot_is_awaited(child):
    child.load(1, Numbers(), None, True, None)
    for number in range(3):
        child.execute(number, None, request(number, [number]))
    assert [child.finish()[1][0].tolist() for _ in range(3)] == [[0], [1], [2]]


def test_several_pipelines_are_kept_apart(child):
    child.load(1, Numbers(), None, True, None)
    child.load(2, WorkerFacts(), None, True, tag_dataset)
    child.execute(1, 1, request(1, [5]))
    child.execute(2, 2, request(1, [5]))
    assert child.finish()[1][0].tolist() == [5]
    assert child.finish()[1][0].tolist() == [1, 2, (2**63 - 5 + 1) % 2**31, 101]


def test_errors_of_the_dataset_are_reported_and_survived(child):
    child.load(1, Failing(OwnError("bad sample")), None, True, None)
    child.execute(3, 1, request(0, [5]))
    message, blob = child.finish()
    assert (message["type"], message["id"], message["exception_type"]) == ("error", 3, "OwnError")
    assert "raise self.error" in message["traceback"]
    assert exception_class("", blob) is OwnError
    child.execute(4, 1, request(0, [6]))
    assert child.finish()[1][0].tolist() == [6]


def test_a_pipeline_that_cannot_be_loaded_is_reported(child):
    child.frames.send({"type": "load", "pipeline": 9}, b"not a pickle")
    message, _ = child.frames.receive()
    assert (message["type"], message["pipeline"], message["exception_type"]) == ("error", 9, "PipelineNotLoaded")


def test_a_refused_slot_fails_the_batch(child):
    child.load(1, Numbers(), None, True, None)
    child.execute(5, 1, request())
    child.frames.receive()
    child.frames.send({"type": "slot", "id": 5, "error": "the arena is too small"})
    message, _ = child.frames.receive()
    assert (message["type"], message["message"]) == ("error", "the arena is too small")


def test_one_thread_and_no_interrupts(child):
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert ignored & (1 << 1)  # SIGINT is signal 2.


def test_quit_ends_it():
    child = Child()
    child.frames.send({"type": "quit"})
    assert child.process.wait(120) == 0
    child.close()
