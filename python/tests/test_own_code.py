"""The code of the script itself: its classes and globals are what they are with torch's own workers, wherever batches are made."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
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
