"""The executor's child, driven as a feeder drives it: over a socket pair, with an arena of this process."""

from __future__ import annotations

import io
import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from sample_datasets import Failing, Leaving, Mixed, Numbers, OwnError, Processes, Threaded, WorkerFacts
from sluice import cached
from sluice.cache.kept_values import decode, encode as encode_value
from sluice.executor.child import BlockedTime, Executor
from sluice.executor.computation import BatchRequest, Computation, PythonPipeline, untouched_process
from sluice.feeder.arena import Arena
from sluice.shipping.failures import exception_class
from sluice.shipping.framing import FrameSocket, encode
from sluice.shipping.sealed_memory import SealedMemory
from sluice.shipping.shipment import describe_pipeline
from sluice.shipping.structure import unpack
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
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno(), self._memory], env=environment, cwd="/")
        theirs.close()
        self.frames = FrameSocket(ours)
        self.arena = Arena(self._memory, ARENA_BYTES, lambda slot: None)

    def fork(self) -> tuple[dict, Child]:
        """The answer, and this child with the socket of the copy."""
        ours, theirs = socket.socketpair()
        ours.settimeout(120)
        socket.send_fds(self.frames.socket, [encode({"type": "fork"})], [theirs.fileno()])
        theirs.close()
        copy = object.__new__(Child)
        copy.__dict__.update(self.__dict__, frames=FrameSocket(ours))
        return self.frames.receive()[0], copy

    def load(self, number: int, *pipeline, **fields) -> dict:
        self.frames.send({"type": "load", "pipeline": number, **fields}, memory=describe_pipeline(PythonPipeline(*pipeline))[0].shipment.memory)
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
        self.arena.hold(0, descriptors)
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
        return Computation(describe_pipeline(pipeline)[0].shipment.memory).compute(wanted)


@pytest.mark.parametrize("dataset", [Numbers(), Mixed()])
def test_batches_are_those_computed_in_process(child, dataset):
    assert child.load(1, dataset, None, True) == {"type": "loaded", "pipeline": 1}
    child.execute(7, 1, request())
    done, batch = child.finish()
    assert (done["seq"], done["stream"]) == (0, 1) and done["seconds"] >= 0
    assert all(tensor["offset"] % 64 == 0 for tensor in done["tensors"])
    assert equal(batch, computed_here(PythonPipeline(dataset, None, True), request()))


def test_requests_may_queue_while_a_slot_is_awaited(child):
    child.load(1, Numbers(), None, True)
    for number in range(3):
        child.execute(number, None, request(number, [number]))
    assert [child.finish()[1][0].tolist() for _ in range(3)] == [[0], [1], [2]]


def test_several_pipelines_are_kept_apart(child):
    child.load(1, Numbers(), None, True)
    child.load(2, WorkerFacts(), None, True)
    child.execute(1, 1, request(1, [5]))
    child.execute(2, 2, request(1, [5]))
    assert child.finish()[1][0].tolist() == [5]
    assert child.finish()[1][0].tolist() == [1, 2, (2**63 - 5 + 1) % 2**31, -1]


@cached(version="1")
def square(number):
    return number * number


class Squares(Numbers):
    def __getitem__(self, index):
        return square(index)


def test_results_are_asked_for_where_the_parent_has_a_cache(child):
    child.load(1, Squares(), None, True)
    child.execute(1, 1, request(0, [5]))
    done, batch = child.finish()
    assert batch.tolist() == [25] and "kept" not in done
    child.load(1, Squares(), None, True, keeps_results=True)
    child.execute(2, 1, request(0, [5, 6, 7]))
    found, _ = child.frames.receive()
    child.frames.send({"type": "found", "id": found["id"], "is_found": False, "keeps": True, "rest": 0, "seconds": 0.0})
    keep, value = child.frames.receive()
    assert (keep["type"], keep["id"], decode(value)) == ("keep", found["id"], 25)
    next_one, _ = child.frames.receive()
    child.frames.send({"type": "found", "id": next_one["id"], "is_found": True, "keeps": False, "rest": 5, "seconds": 0.0}, encode_value(-1))
    child.frames.send({"type": "found", "id": found["id"], "is_found": True}, encode_value(-2))  # A late one is no answer to anything.
    done, batch = child.finish()
    assert batch.tolist() == [25, -1, 49]
    (told,) = done["kept"]
    assert (told["function"], told["calls"], told["hits"], told["stores"]) == ("test_executor.square", 2, 1, 1)
    assert found["function"] == "test_executor.square" and found["version"].startswith("1 ") and "files" not in found


def test_an_answer_that_does_not_come_is_not_waited_for():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        executor = Executor(FrameSocket(theirs), mmap.mmap(-1, 4096))
        parent = FrameSocket(ours)
        assert executor._ask({"type": "find", "id": 1}, b"", 0.01) is None
        parent.send({"type": "found", "id": 1, "is_found": True}, b"late")
        parent.send({"type": "found", "id": 2, "is_found": False})
        assert executor._ask({"type": "find", "id": 2}, b"", 60)[0]["id"] == 2


def test_errors_of_the_dataset_are_reported_and_survived(child):
    child.load(1, Failing(OwnError("bad sample")), None, True)
    child.execute(3, 1, request(0, [5]))
    message, blob = child.finish()
    assert (message["type"], message["id"], message["exception_type"]) == ("error", 3, "OwnError")
    assert "raise self.error" in message["traceback"]
    assert exception_class("", blob) is OwnError
    child.execute(4, 1, request(0, [6]))
    assert child.finish()[1][0].tolist() == [6]


def test_a_pipeline_that_cannot_be_loaded_is_reported(child):
    child.frames.send({"type": "load", "pipeline": 9}, memory=SealedMemory.of([b"no description"]))
    message, _ = child.frames.receive()
    assert (message["type"], message["pipeline"], message["exception_type"]) == ("error", 9, "PipelineNotLoaded")


def test_a_refused_slot_fails_the_batch(child):
    child.load(1, Numbers(), None, True)
    child.execute(5, 1, request())
    child.frames.receive()
    child.frames.send({"type": "slot", "id": 5, "error": "the arena is too small"})
    message, _ = child.frames.receive()
    assert (message["type"], message["message"]) == ("error", "the arena is too small")


@pytest.mark.parametrize("reason", [SystemExit(4), KeyboardInterrupt()])
def test_a_dataset_that_ends_its_process_is_reported_and_survived(child, reason):
    child.load(1, Leaving(reason), None, True)
    child.execute(3, 1, request(0, [5]))
    message, _ = child.finish()
    assert (message["type"], message["exception_type"]) == ("error", type(reason).__name__)
    assert "raise self.reason" in message["traceback"]
    child.execute(4, 1, request(0, [6]))
    assert child.finish()[1][0].tolist() == [6]


def test_forks_share_what_is_loaded_and_are_reaped_by_their_parent():
    child = Child()
    child.load(1, Processes(), None, True)
    pids = []
    for number in range(2):
        answer, copy = child.fork()
        copy.execute(number, 1, request(0, [0]))
        assert copy.finish()[1].tolist() == [[answer["pid"], child.process.pid]]
        copy.frames.socket.close()
        child.frames.send({"type": "reap", "pid": answer["pid"]})
        assert child.frames.receive()[0] == {"type": "reaped", "status": 0}
        pids.append(answer["pid"])
    assert len(set(pids)) == 2
    child.close()


class Importing(Numbers):
    """Sample i is whether torch's compiler is imported: two CPU-seconds of each process that loads a pipeline."""

    def __getitem__(self, index: int):
        return torch.tensor("torch._dynamo" in sys.modules)


def test_loading_a_pipeline_imports_nothing_that_its_data_set_does_not_need(child):
    assert child.load(903, Importing(), None, True)["type"] == "loaded"
    child.execute(903, 903, request())
    assert not child.finish()[1].any()


def test_forks_make_the_same_batches():
    child = Child()
    child.load(1, Numbers(), None, True)
    batches = []
    for number in range(2):
        copy = child.fork()[1]
        copy.execute(number, 1, request())
        batches.append([tensor.clone() for tensor in copy.finish()[1]])
        copy.frames.socket.close()
    assert equal(batches[0], batches[1]) and equal(batches[0], computed_here(PythonPipeline(Numbers(), None, True), request()))
    child.close()


def test_what_has_started_threads_is_not_forked_and_still_computes():
    child = Child()
    child.load(1, Threaded(), None, True)
    answer, _ = child.fork()
    assert answer["type"] == "error" and "2 threads" in answer["message"]
    child.execute(4, 1, request(0, [6]))
    assert child.finish()[1][0].tolist() == [6]
    child.close()


def test_forks_end_with_their_parent():
    child = Child()
    _, copy = child.fork()
    child.process.kill()
    child.process.wait(60)
    assert copy.frames.receive() is None
    copy.frames.socket.close()
    os.close(child._memory)


def test_one_thread_and_no_interrupts(child):
    status = Path(f"/proc/{child.process.pid}/status").read_text()
    ignored = int(next(line for line in status.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert ignored & (1 << 1)  # SIGINT is signal 2.


def test_the_end_of_its_socket_ends_it():
    child = Child()
    child.frames.socket.shutdown(socket.SHUT_WR)
    assert child.process.wait(120) == 0
    child.close()


class Takes(Numbers):
    """Each sample sleeps, or computes, for a while."""

    def __init__(self, sleep_seconds: float = 0.0, compute_seconds: float = 0.0) -> None:
        super().__init__()
        self.sleep_seconds, self.compute_seconds = sleep_seconds, compute_seconds

    def __getitem__(self, index: int):
        time.sleep(self.sleep_seconds)
        ends_seconds = time.process_time() + self.compute_seconds
        while time.process_time() < ends_seconds:
            pass
        return super().__getitem__(index)


def blocked_seconds(child, number: int, dataset) -> float:
    assert child.load(number, dataset, None, True)["type"] == "loaded"
    child.execute(number, number, request())
    return child.finish()[0]["blocked_seconds"]


def test_a_child_tells_how_long_it_waited_for_what_it_reads(child):
    assert blocked_seconds(child, 901, Takes(sleep_seconds=0.2)) >= 0.59  # Three samples.
    # Neither computing nor waiting for a CPU, of which a busy machine has few, is time blocked.
    assert blocked_seconds(child, 902, Takes(compute_seconds=0.5)) < 0.5


@pytest.mark.parametrize("text", ["", "0 0 0\n", "one two three\n"])
def test_where_the_kernel_does_not_count_the_wait_for_a_cpu_nothing_is_told(monkeypatch, text):
    monkeypatch.setattr("builtins.open", lambda path: io.StringIO(text))
    assert BlockedTime().seconds() is None
