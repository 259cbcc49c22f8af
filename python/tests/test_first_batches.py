"""What the training process makes itself, before forks or executors do: it leaves no trace in them, and none in the process."""

from __future__ import annotations

import asyncio
import faulthandler
import importlib.util
import os
import signal
import sys
import threading
import time
from types import ModuleType
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

import sluice.makers.payback
from sample_datasets import Numbers, Processes
from sluice.torch import DataLoader
from test_forks import loader_with_forks
from test_loader import equal


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()


class OfAFile(Numbers):
    """Opens its file when it is first read. The position in an open file is all processes' that have it from one."""

    def __init__(self, path) -> None:
        super().__init__(400)
        self.path = path
        self.descriptor = None

    def __getitem__(self, index: int):
        if self.descriptor is None:
            self.descriptor = os.open(self.path, os.O_RDONLY)
        os.lseek(self.descriptor, 4 * index, os.SEEK_SET)
        time.sleep(0.001)
        return int.from_bytes(os.read(self.descriptor, 4), "little")


def test_forks_open_files_of_their_own(tmp_path):
    (tmp_path / "numbers").write_bytes(torch.arange(400, dtype=torch.int32).numpy().tobytes())
    loader = loader_with_forks(OfAFile(tmp_path / "numbers"), num_workers=4)
    loader._sluice_payback.forks_pay = False
    seen = []
    for number, batch in enumerate(loader):
        loader._sluice_payback.forks_pay = number > 2
        seen += batch.tolist()
    assert seen == list(range(400))


class File(str):
    """More than its value (test_plain_data.py)."""


class Listed(Numbers):
    """Of many Python objects, which take longer to pickle than a process to be forked. `stage` is the script's to change."""

    stage = 0

    def __init__(self) -> None:
        super().__init__(80)
        self.files = [File(f"images/train/{number}.jpg") for number in range(100_000)]

    def __getitem__(self, index: int):
        return self.files[index], self.stage, os.getpid()


@pytest.mark.parametrize("arguments", [{}, {"persistent_workers": True}, {"sampler": list(torch.arange(80))}, {"batch_size": None}], ids=str)
def test_forks_inherit_what_would_be_dear_to_copy(monkeypatch, arguments):
    monkeypatch.setattr("sluice.torch.adds_no_cpu", lambda *_: True)
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        dataset = Listed()
        loader = loader_class(dataset, **{"batch_size": 4, "num_workers": 2, **arguments})
        epochs = []
        for _ in range(3):
            epochs.append(list(loader))
            dataset.stage += 1
            if loader_class is DataLoader:  # Later ones pickle nothing at all.
                monkeypatch.setattr("sluice.loader.pipeline.describe_pipeline", lambda *_: pytest.fail("it costs every pass"))
        assert os.getpid() not in {int(pid) for epoch in epochs for batch in epoch for pid in torch.as_tensor(batch[2]).reshape(-1)}
        seen.append([batch[:2] for epoch in epochs for batch in epoch])
    assert equal(*seen)


class Owning(Numbers):
    """Its end removes its files."""

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder = folder
        self.folder.mkdir()

    def __getitem__(self, index: int):
        return self.folder.exists()

    def __del__(self) -> None:
        self.folder.rmdir()


def test_a_data_set_ends_once(monkeypatch, tmp_path):
    monkeypatch.setattr("sluice.torch.adds_no_cpu", lambda *_: True)
    loader = DataLoader(Owning(tmp_path / "owned"), batch_size=4, num_workers=2)
    assert all(batch.all() for _ in range(3) for batch in loader) and (tmp_path / "owned").exists()


@pytest.mark.parametrize("library", ["polars", "lmdb"])
def test_a_library_that_a_fork_cannot_use_afterwards_is_used_in_forks_alone(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    makers = {int(pid) for batch in DataLoader(Processes(), batch_size=4, num_workers=2) for pid in batch[:, 0]}
    assert makers and os.getpid() not in makers


OPENED_ONCE = """
opened = set()
class Environment:
    def __init__(self, path):
        if path in opened: raise RuntimeError("already open in this process")
        self.path = path
        opened.add(path)
    def __del__(self): opened.discard(self.path)
"""


class OfADatabase(Numbers):
    database = None

    def __getitem__(self, index: int):
        import lmdb

        if self.database is None:
            self.database = lmdb.Environment("numbers")
        return index


def test_loaders_side_by_side_read_a_data_base_that_a_process_opens_once(tmp_path, monkeypatch):
    (tmp_path / "lmdb.py").write_text(OPENED_ONCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "lmdb", None)  # So that it is gone at the end, too.
    del sys.modules["lmdb"]
    loaders = [DataLoader(OfADatabase(), batch_size=4, num_workers=2) for _ in range(2)]
    assert [batch.tolist() for pair in zip(*loaders, strict=True) for batch in pair][-2:] == [[36], [36]]


class Coroutines(Numbers):
    """Each sample runs an event loop, as those do that read from a network."""

    def __getitem__(self, index: int):
        async def made() -> int:
            await asyncio.sleep(0)
            return index

        return asyncio.run(made())


def test_a_sample_may_run_an_event_loop_while_the_scripts_runs():
    async def of(loader_class) -> list:
        batches = list(loader_class(Coroutines(), batch_size=4, num_workers=1))
        await asyncio.sleep(0)  # The script's own one goes on.
        return batches

    assert equal(*(asyncio.run(of(loader_class)) for loader_class in (TorchLoader, DataLoader)))


class Threaded(Numbers):
    """Its first sample starts a thread that goes on for ever."""

    thread: threading.Thread | None = None

    def __getitem__(self, index: int):
        if self.thread is None:
            self.thread = threading.Thread(target=threading.Event().wait)
            self.thread.start()
        return index


def test_a_thread_that_a_sample_starts_does_not_keep_the_script_from_its_end():
    before = set(threading.enumerate())
    assert len(list(DataLoader(Threaded(), batch_size=4, num_workers=2))) == 10
    assert [thread.daemon for thread in set(threading.enumerate()) - before if thread.name != "sluice-connection"] == [True]
    assert not threading.current_thread().daemon


class Crashing(Numbers):
    def __getitem__(self, index: int):
        os.kill(os.getpid(), signal.SIGSEGV)
        return index


def test_a_crash_tells_where_the_sample_was(tmp_path):
    child = os.fork()
    if child == 0:
        os.dup2(os.open(tmp_path / "said", os.O_CREAT | os.O_WRONLY), 2)
        faulthandler.disable()  # pytest's own.
        list(DataLoader(Crashing(), batch_size=4, num_workers=2))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV
    assert f"line {Crashing.__getitem__.__code__.co_firstlineno + 1} in __getitem__" in (tmp_path / "said").read_text()


class Preempted(Exception):
    """What a script raises when it is asked to end."""


class Handler:
    def __call__(self, number: int, frame: Any) -> None:
        raise Preempted("enough")

    def method(self, number: int, frame: Any) -> None:
        raise SystemExit(7)


class Signalled(Numbers):
    """The script gets a signal while a sample is made, or while the data set is pickled."""

    def __init__(self, while_pickled: bool) -> None:
        super().__init__()
        self.while_pickled = while_pickled

    def __reduce__(self):
        if self.while_pickled:
            os.kill(os.getpid(), signal.SIGUSR1)
        return Signalled, (self.while_pickled,)

    def __getitem__(self, index: int):
        os.kill(os.getpid(), signal.SIGUSR1)
        return index


@pytest.mark.parametrize("while_pickled", [False, True])
@pytest.mark.parametrize("handler, raised", [(Handler(), Preempted("enough")), (Handler().method, SystemExit(7))], ids=["an exception", "the end"])
def test_what_a_handler_of_the_script_raises_reaches_the_script(while_pickled, handler, raised):
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(type(raised)) as caught:
            list(DataLoader(Signalled(while_pickled), batch_size=4, num_workers=2))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert str(caught.value) == str(raised)


class Differentiable(Numbers):
    def __getitem__(self, index: int):
        return torch.ones(2, requires_grad=True)


def test_a_batch_that_torchs_workers_refuse_is_refused():
    said = []
    for loader_class in (TorchLoader, DataLoader):
        with pytest.raises(RuntimeError) as raised:
            next(iter(loader_class(Differentiable(), batch_size=4, num_workers=1)))
        said.append(str(raised.value).splitlines()[-1])
    assert said[0] == said[1]


class Keeping(Numbers):
    """Hands out what it keeps, and what it writes to again."""

    def __init__(self) -> None:
        super().__init__()
        self.row, self.words, self.place = torch.zeros(3), ["a"], numpy.zeros(2)

    def __getitem__(self, index: int):
        self.place[:] = index
        return {"row": self.row[1:], "words": self.words, "place": self.place}


@pytest.mark.parametrize("arguments", [{"batch_size": None}, {"batch_size": 1, "collate_fn": lambda samples: samples[0]}], ids=["samples", "own collation"])
def test_a_batch_is_the_loops_own(monkeypatch, arguments):
    monkeypatch.setattr(sluice.makers.payback, "FORK_SECONDS", 1e9)  # However slow this machine is, this process makes the batches.
    batches = []
    for batch in DataLoader(Keeping(), num_workers=1, **arguments):
        assert (batch["row"].tolist(), batch["words"]) == ([0, 0], ["a"])
        batch["row"].add_(1)
        batch["words"].append("b")
        batches.append(batch)
    assert [int(batch["place"][0]) for batch in batches] == list(range(37))


class Unlike(Numbers):
    """A copy of it is another one."""

    def __getstate__(self):
        return {"count": self.count, "is_copy": True}

    def __getitem__(self, index: int):
        return vars(self).get("is_copy", False)


def test_a_data_set_that_says_what_is_copied_is_not_copied(monkeypatch):
    monkeypatch.setattr("sluice.torch.adds_no_cpu", lambda *_: True)
    assert not any(batch.any() for batch in DataLoader(Unlike(), batch_size=4, num_workers=2))


MODULE = """
import random, torch
class Transform:
    def __init__(self): self.generator = random.Random(3)
class Drawing(torch.utils.data.Dataset):
    def __len__(self): return 12
    def __getitem__(self, index): return draw()
"""
GENERATORS = {
    "of the module": ("import numpy; GENERATOR = numpy.random.RandomState(3)\ndef draw(): return GENERATOR.rand()", "GENERATOR is a random generator"),
    "of a class": ("class Own: generator = torch.Generator()\ndef draw(): return torch.rand(1, generator=Own.generator)", "Own.generator is a random"),
    "within a transform": ("TRANSFORM = Transform()\ndef draw(): return TRANSFORM.generator.random()", "TRANSFORM holds a random generator"),
    "a proxy": ("class Proxy: __dict__ = property(lambda self: 1 / 0)\nPROXY, draw = Proxy(), random.random", ""),
    "the process's own": ("draw = random.random\nclass Own: generator = torch.default_generator", ""),
}


@pytest.mark.parametrize("case", GENERATORS)
def test_a_generator_of_a_module_is_each_workers_own(case, tmp_path, monkeypatch, caplog):
    source, said = GENERATORS[case]
    (tmp_path / "module_that_draws.py").write_text(MODULE + source)
    spec = importlib.util.spec_from_file_location("module_that_draws", tmp_path / "module_that_draws.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "module_that_draws", module)
    spec.loader.exec_module(module)
    monkeypatch.syspath_prepend(tmp_path)
    dataset = module.Drawing()
    drawn = [[batch.tolist() for _ in range(2) for batch in of(dataset, batch_size=4, num_workers=2)] for of in (TorchLoader, DataLoader)]
    assert any(f"module_that_draws.{said}" in record.getMessage() for record in caplog.records) == bool(said)
    assert drawn[0] == drawn[1] or not said
