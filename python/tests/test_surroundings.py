"""What a forked worker would have shared with the trainer is the same in an executor; what cannot be goes torch's way."""

from __future__ import annotations

import decimal
import io
import multiprocessing
import multiprocessing.shared_memory
import os
import random
import signal
import socket
import subprocess
import sys
import warnings
from multiprocessing.managers import BaseManager
from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image, ImageFile

from sample_datasets import Numbers
from sluice.executor.computation import Computation
from sluice.loader.iterator import FeederIterator
from sluice.shipping.sealed_memory import SealedMemory
from sluice.torch import DataLoader

TESTS = Path(__file__).resolve().parent


class Asking(Numbers):
    """Sample i is what `question` says where the sample is made."""

    def __init__(self, question) -> None:
        super().__init__(3)
        self.question = question

    def __getitem__(self, index: int):
        return self.question()


def unchanged(sample):
    return sample


def in_executor(question):
    """The answer of an executor of the feeder."""
    batches = iter(DataLoader(Asking(question), batch_size=None, num_workers=1, collate_fn=unchanged))
    assert isinstance(batches, FeederIterator)
    return next(batches)


@pytest.fixture(autouse=True)
def as_before():
    switches = (torch.get_default_dtype(), ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS, os.getcwd())
    with warnings.catch_warnings():
        yield
    torch.set_default_dtype(switches[0])
    ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = switches[1:3]
    os.chdir(switches[3])


def ask_environment():
    return os.environ.get("DATA_ROOT", "none"), os.environ.get("GONE", "none")


def test_environment_variables_are_those_of_the_iterators_birth(real_feeder, monkeypatch):
    monkeypatch.setenv("GONE", "still here")
    assert in_executor(ask_environment) == ("none", "still here")
    monkeypatch.setenv("DATA_ROOT", "/elsewhere")
    monkeypatch.delenv("GONE")
    assert in_executor(ask_environment) == ("/elsewhere", "none")


def ask_dtype():
    return torch.zeros(()).dtype is torch.float64


def mark_process():
    os.environ["OF_A_SAMPLE"] = "1"
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    return marks()


def marks():
    return os.environ.get("OF_A_SAMPLE"), signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN


def test_what_a_sample_changes_in_an_executor_no_other_loader_sees(real_feeder):
    assert in_executor(mark_process) == ("1", True)
    assert in_executor(marks) == (None, False) == marks()


def test_default_dtype(real_feeder):
    torch.set_default_dtype(torch.float64)
    assert in_executor(ask_dtype)


def ask_pillow():
    return ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS


def test_switches_of_pillow(real_feeder):
    ImageFile.LOAD_TRUNCATED_IMAGES, Image.MAX_IMAGE_PIXELS = True, 1234
    assert in_executor(ask_pillow) == (True, 1234)


def ask_torch():
    return torch.is_grad_enabled(), torch.get_num_threads()


def test_grad_mode_and_one_thread_as_in_torchs_workers(real_feeder):
    assert in_executor(ask_torch) == (True, 1)
    with torch.no_grad():
        assert in_executor(ask_torch) == (False, 1)


def ask_autocast():
    return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype


def test_autocast_as_in_torchs_workers(real_feeder):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert in_executor(ask_autocast) is torch.bfloat16
    assert in_executor(ask_autocast) is torch.float32


def ask_deterministic():
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def how_it_computes():
    flushed = float(torch.tensor(1e-40) * 1) == 0
    return flushed, torch.get_float32_matmul_precision(), decimal.getcontext().prec, sys.getrecursionlimit(), socket.getdefaulttimeout()


def compute(*how) -> None:
    torch.set_flush_denormal(how[0]), torch.set_float32_matmul_precision(how[1])
    decimal.getcontext().prec = how[2]
    sys.setrecursionlimit(how[3]), socket.setdefaulttimeout(how[4])


def test_how_numbers_are_computed_and_what_is_bounded(real_feeder):
    usual, changed = how_it_computes(), (True, "high", 11, 4321, 7.0)
    try:
        compute(*changed)
        assert in_executor(how_it_computes) == changed
    finally:
        compute(*usual)
    assert in_executor(how_it_computes) == usual


def threads_of_opencv():
    import cv2

    return cv2.getNumThreads()


@pytest.mark.parametrize("is_set", [False, True])
def test_threads_of_opencv(real_feeder, tmp_path, monkeypatch, is_set):
    (tmp_path / "cv2.py").write_text("threads = 7\ndef getNumThreads(): return threads\ndef setNumThreads(count):\n    global threads\n    threads = count\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    import cv2

    if is_set:
        cv2.setNumThreads(1)
    batches = iter(DataLoader(UsingOpenCV(threads_of_opencv, cv2.getNumThreads), batch_size=None, num_workers=1, collate_fn=unchanged))
    assert isinstance(batches, FeederIterator) and next(batches) == (1 if is_set else 7)


class UsingOpenCV(Asking):
    """Unpickling imports it."""

    def __init__(self, question, function) -> None:
        super().__init__(question)
        self.function = function


def test_deterministic_mode(real_feeder):
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert in_executor(ask_deterministic) == (True, True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert in_executor(ask_deterministic) == (False, False)


def ask_warnings():
    warnings.warn("beware", UserWarning, stacklevel=1)
    return "warned"


def test_warning_filters(real_feeder):
    warnings.simplefilter("error", UserWarning)
    with pytest.raises(UserWarning, match="beware"):
        in_executor(ask_warnings)


def test_current_directory(real_feeder, tmp_path):
    os.chdir(tmp_path)
    assert in_executor(os.getcwd) == str(tmp_path)


def ask_numpy():
    return numpy.geterr()["divide"]


def test_numpys_error_handling(real_feeder):
    with numpy.errstate(divide="raise"):
        assert in_executor(ask_numpy) == "raise"


class Holding(Numbers):
    def __init__(self, value) -> None:
        super().__init__()
        self.value = value

    def __getitem__(self, index: int):
        return float(self.value[0]) if hasattr(self.value, "__getitem__") else index


def shared_array():
    return numpy.ctypeslib.as_array(multiprocessing.Array("f", 4).get_obj())


CANNOT_TRAVEL = {
    "a tensor in shared memory": (lambda folder: torch.zeros(4).share_memory_(), "shared memory"),
    "a numpy view of such a tensor": (lambda folder: torch.zeros(4).share_memory_().numpy(), "shared memory"),
    "an array over a multiprocessing array": (lambda folder: shared_array(), "shared memory"),
    "a tensor over such an array": (lambda folder: torch.from_numpy(shared_array()), "shared memory"),
    "a writable mapping of a file": (
        lambda folder: numpy.memmap(folder / "data", dtype=numpy.float32, mode="w+", shape=(4,)), "shared memory"),
    "a multiprocessing value": (lambda folder: multiprocessing.Value("i", 0), "inheritance"),
    "a multiprocessing lock": (lambda folder: multiprocessing.Lock(), "inheritance"),
    "a block of shared memory": (lambda folder: multiprocessing.shared_memory.SharedMemory(create=True, size=8), "SharedMemory"),
    "an open file": (lambda folder: open(__file__), "open file"),
}


@pytest.mark.parametrize("case", CANNOT_TRAVEL)
def test_what_cannot_travel_stays_with_torchs_workers(make_fake, tmp_path, caplog, case):
    make, reason = CANNOT_TRAVEL[case]
    make_fake()
    value = make(tmp_path)
    for _ in range(2):
        assert not isinstance(iter(DataLoader(Holding(value), batch_size=4, num_workers=2)), FeederIterator)
    said = [record.message for record in caplog.records if "using torch's own workers" in record.message]
    assert len(said) == 1 and reason in said[0]
    if isinstance(value, multiprocessing.shared_memory.SharedMemory):
        value.close(), value.unlink()


class ByNumber(Numbers):
    def __init__(self, **attributes) -> None:
        super().__init__()
        vars(self).update(attributes)

    def __getitem__(self, index: int):
        return os.pread(self.number, 1, index)[0]


class Named(Numbers):
    def __init__(self, **attributes) -> None:
        super().__init__()
        vars(self).update(attributes)


HAVE_DESCRIPTORS = {
    "a number by its name": (lambda number: Named(data_fd=number), True),
    "numbers by their name": (lambda number: Named(handles={"train": number}), True),
    "a number by what is done with it": (lambda number: ByNumber(number=number), True),
    "within a subset": (lambda number: torch.utils.data.Subset(ByNumber(number=number), range(8)), True),
    "a count that happens to be the number of an open file": (lambda number: Named(classes=number), False),
    "a number of no open file": (lambda number: Named(data_fd=number + 1000), False),
}


@pytest.mark.parametrize("case", HAVE_DESCRIPTORS)
def test_the_number_of_an_open_file_stays_with_torchs_workers(make_fake, tmp_path, caplog, case):
    make, stays = HAVE_DESCRIPTORS[case]
    make_fake()
    with open(__file__, "rb") as file:
        batches = iter(DataLoader(make(file.fileno()), batch_size=4, num_workers=2))
    assert isinstance(batches, FeederIterator) is not stays
    assert ("the descriptor of an open file" in caplog.text) is stays


@pytest.mark.parametrize("make", [lambda: numpy.random.default_rng(0), lambda: numpy.random.RandomState(0), lambda: random.Random(0), torch.Generator])
def test_a_generator_within_the_data_set_is_left_to_virtual_workers(make_fake, caplog, make):
    make_fake()
    dataset = Holding(make())
    for _ in range(2):
        assert isinstance(iter(DataLoader(dataset, batch_size=4, num_workers=2)), FeederIterator)
    said = [record.message for record in caplog.records if "virtual workers" in record.message]
    assert len(said) == 1 and f"random generator of its own ({type(dataset.value).__name__})" in said[0]


def test_a_shared_tensor_that_changes_is_seen_as_by_torchs_workers(any_feeder):
    flag = torch.zeros(1).share_memory_()
    batches = iter(DataLoader(Holding(flag), batch_size=1, num_workers=1, prefetch_factor=1))
    next(batches)
    flag.fill_(1.0)
    assert [float(batch) for batch in batches][-1] == 1.0


CAN_TRAVEL = [numpy.arange(100_000), numpy.frombuffer(b"abcd", dtype=numpy.uint8), io.BytesIO(b"data"), torch.arange(100_000),
              random.random, numpy.random.rand]


@pytest.mark.parametrize("value", CAN_TRAVEL, ids=lambda value: type(value).__name__)
def test_what_is_data_travels(real_feeder, value):
    assert isinstance(iter(DataLoader(Holding(value), num_workers=1)), FeederIterator)


def test_functions_of_the_process_generators_draw_from_the_executors(real_feeder):
    runs = []
    for _ in range(2):
        torch.manual_seed(2)
        runs.append(list(DataLoader(Asking(random.random), batch_size=None, num_workers=2)))
    assert runs[0] == runs[1] and len(set(runs[0])) == 3


CACHING_SCRIPT = """
import functools, sys
sys.path[:0] = [{path!r}]
import torch
from sluice.executor.computation import PythonPipeline
from sluice.shipping.shipment import describe_pipeline
@functools.lru_cache(maxsize=3)
def twice(number): return [2 * number]
class Cached(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, i): return twice(i)[0], twice(i) is twice(i), twice.cache_parameters()["maxsize"]
memory = describe_pipeline(PythonPipeline(Cached(), None, True))[0].shipment.memory
sys.stdout.buffer.write(memory.view())
"""


def test_a_cached_function_of_the_script_is_a_cached_function_elsewhere(tmp_path):
    (tmp_path / "train.py").write_text(CACHING_SCRIPT.format(path=str(TESTS.parent)))
    described = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, check=True, stdout=subprocess.PIPE, timeout=120).stdout
    dataset = Computation(SealedMemory.of([described])).dataset
    assert [dataset[number] for number in (1, 2)] == [(2, True, 3), (4, True, 3)]


RANK_SCRIPT = """
import collections, sys
sys.path[:0] = [{path!r}]
import torch
from sluice.executor.computation import PythonPipeline
from sluice.shipping.shipment import describe_pipeline
Pair = collections.namedtuple("Pair", "first second")
class Scaled(torch.utils.data.Dataset):
    def __init__(self, factor): self.factor = factor
    def __len__(self): return 6
    def __getitem__(self, i): return Pair(i, torch.tensor(i * self.factor))
    @property
    def twice(self): return 2 * self.factor if self.factor not in {{"a", "b", "c"}} else 0
def twin(offset):
    class Twin(Scaled):
        def __getitem__(self, i): return i + offset
    return Twin(offset)
def keep(samples): return samples
description, _ = describe_pipeline(PythonPipeline([Scaled(3), twin(1), twin(2)], keep, True))
print(description.shipment.digest.hex())
"""


def test_a_pipeline_of_the_script_is_the_same_in_all_ranks(tmp_path):
    (tmp_path / "train.py").write_text(RANK_SCRIPT.format(path=str(TESTS.parent)))
    prints = {
        subprocess.run([sys.executable, "train.py"], env={**os.environ, "RANK": rank, "TORCHELASTIC_ERROR_FILE": f"/tmp/{rank}"}, cwd=tmp_path, check=True,
                       stdout=subprocess.PIPE, timeout=120).stdout
        for rank in ("0", "1")
    }
    assert len(prints) == 1
