"""What the training process makes itself, before forks or executors do: it leaves no trace in them, and none in the process."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from types import ModuleType

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

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


class Listed(Numbers):
    """Of many Python objects, which take longer to pickle than a process to be forked. `stage` is the script's to change."""

    stage = 0

    def __init__(self) -> None:
        super().__init__(80)
        self.files = [f"images/train/{number}.jpg" for number in range(200_000)]

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
                monkeypatch.setattr("sluice.pipeline.describe_pipeline", lambda *_: pytest.fail("it costs every pass"))
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


def test_a_library_that_a_fork_cannot_use_afterwards_is_used_in_forks_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", ModuleType("polars"))
    makers = {int(pid) for batch in DataLoader(Processes(), batch_size=4, num_workers=2) for pid in batch[:, 0]}
    assert makers and os.getpid() not in makers


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
