"""The code of the script itself: its classes and globals are what they are with torch's own workers, wherever batches are made."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

from sluice.torch import DataLoader
from test_loader import equal

SCRIPT = """
import enum, torch
factor, calls, made, defined = 1, 0, [], []
class Kind(enum.Enum):
    EVEN, ODD = 0, 1
class Registered(torch.utils.data.Dataset):
    def __init_subclass__(cls):
        defined.append(cls.__name__)
class Scaled(Registered):
    total, cache, names = 0, {}, ("a", "b")
    def __len__(self):
        return 12
    def __getitem__(self, i):
        global calls, latest
        calls += 1
        latest = i
        made.append(i)
        Scaled.total += 1
        Scaled.cache[i] = self.names[i % 2]
        return Pair(i * factor, Kind(i % 2), named(i))
    def factor(self):
        return factor
class Pair:
    def __init__(self, *parts):
        self.parts = parts
    def all(self):
        return self.parts[0], self.parts[1].name, *self.parts[2:], factor
class Failed(Exception):
    def __init__(self, what, why="no reason"):
        super().__init__(what)
        self.lock = __import__("threading").Lock()
def named(i):
    global calls
    calls += 1
    return f"{factor} {len(made) > 0}"
def of(samples):
    return [sample for sample in samples]
def failing(samples):
    raise Failed("no batch")
"""


@pytest.fixture
def script(monkeypatch) -> ModuleType:
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    exec(SCRIPT, vars(module))
    return module


def told(loader_class, script) -> list:
    """What the script sees of its own code in two epochs, during which it changes a global."""
    dataset, seen = script.Scaled(), []
    loader, cache, kinds = loader_class(dataset, batch_size=2, num_workers=2, collate_fn=script.of, prefetch_factor=1), script.Scaled.cache, []
    for _ in range(2):
        for batch in loader:
            script.factor += 1
            seen.append([pair.all() for pair in batch])
            kinds += [type(pair) is script.Pair and isinstance(pair.parts[1], script.Kind) for pair in batch]
    assert all(kinds)
    return [*seen, script.calls, script.made, script.Scaled.total, script.Scaled.cache is cache, cache, dataset.factor(), script.defined, hasattr(script, "latest"),
            dataset[3].all(), script.calls, script.made, script.latest]


@pytest.mark.parametrize("steps_aside", ["on", "off"])
def test_what_the_script_sees_is_what_it_sees_with_torch(make_fake, monkeypatch, script, steps_aside):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", steps_aside)
    wanted = told(TorchLoader, script)
    exec(SCRIPT, vars(script))
    del script.latest
    assert equal(wanted, told(DataLoader, script))


@pytest.mark.parametrize("steps_aside", ["on", "off"])
def test_an_exception_of_the_script_is_its_own(make_fake, monkeypatch, script, steps_aside):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", steps_aside)
    for loader_class in (TorchLoader, DataLoader):
        with pytest.raises(script.Failed, match="Caught Failed in DataLoader worker process 0"):
            next(iter(loader_class(script.Scaled(), num_workers=1, collate_fn=script.failing)))


class Reads(torch.utils.data.Dataset):
    """Its samples are files that the script has pickled, of a class of its own that nothing here names."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.iterdir())

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        return torch.tensor(pickle.loads(self.files[index].read_bytes()).parts[0])


HOW = {
    "": {},
    "virtual workers": {"worker_init_fn": lambda worker: os.environ.update(WORKER=str(worker))},
    "persistent": {"worker_init_fn": lambda worker: os.environ.update(WORKER=str(worker)), "persistent_workers": True},
}


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("how", HOW)
def test_samples_that_the_script_has_pickled_are_read(real_feeder, monkeypatch, script, tmp_path, how, on_error):
    monkeypatch.setenv("SLUICE_ON_ERROR", on_error)
    for number in range(10):
        (tmp_path / f"{number}.pickle").write_bytes(pickle.dumps(script.Pair(number)))
    (tmp_path / "9.pickle").write_bytes(pickle.dumps(script.Pair("no number")) if on_error == "skip" else (tmp_path / "8.pickle").read_bytes())
    loader = DataLoader(Reads(tmp_path), batch_size=2, num_workers=2, **HOW[how])
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7], [8] if on_error == "skip" else [8, 8]]
