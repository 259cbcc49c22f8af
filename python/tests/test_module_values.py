"""What a script sets in its modules is seen by an interpreter that imports them anew."""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import torch
from torch.utils.data import Dataset

from sluice import module_values
from sluice.torch import DataLoader

PACKAGE = Path(__file__).resolve().parent.parent
MODULE = """
import enum
SIZE, TABLE, options, database, is_open = 1, {"a": 1}, None, None, False
def size(): return SIZE
class Config:
    crop, file, steps = 1, None, 7
    class Train: rate = 1
    def __setattr__(self, name, value): raise AttributeError("frozen")
class Colour(enum.Enum): RED = 1
config = Config()
vars(config)["train"] = Config.Train()
def shown(): return [Config.crop, Config.steps, Config.Train.rate, vars(config).get("crop"), vars(config.train)]
"""
SET = {
    "numbers": ("module.SIZE = 5", "5 {'a': 1} None False"),
    "members of containers": ("module.TABLE['b'] = [2]", "1 {'a': 1, 'b': [2]} None False"),
    "options": ("module.options = argparse.Namespace(crop=3)", "1 {'a': 1} Namespace(crop=3) False"),
    "what is large": ("module.TABLE = list(range(5000))", ""),
    "what is large, and not here": ("module.options = list(range(5000))", "1 {'a': 1} None False module_of_a_script.options"),
    "a dict that has grown": ("module.TABLE = dict.fromkeys(range(5000))", "1 {'a': 1} None False module_of_a_script.TABLE"),
    "what cannot travel": ("module.TABLE = {'a': lambda: 1, 'b': 2}", "1 {'a': 1} None False module_of_a_script.TABLE"),
    "an array": ("module.options = numpy.arange(3.0)", "1 {'a': 1} [0. 1. 2.] False"),
    "a tensor": ("module.options = torch.ones(2)", "1 {'a': 1} tensor([1., 1.]) False"),
    "a path": ("module.options = Path('/data')", "1 {'a': 1} /data False"),
    "a type of tensors": ("module.options = torch.float16", "1 {'a': 1} torch.float16 False"),
    "a number of numpy's": ("module.SIZE = numpy.int64(7)", "7 {'a': 1} None False"),
    "a large array that is not here": ("module.options = numpy.zeros(5000)", "1 {'a': 1} None False module_of_a_script.options"),
    "what is open": ("module.database, module.is_open = open(__file__), True", "1 {'a': 1} None False module_of_a_script.database"),
    "new names": ("module.added = 1", "1 {'a': 1} None False"),
}
SHOWN = "print(module.size(), module.TABLE, module.options, module.is_open, module_values.lacking or '')"
OF_CLASSES = {
    "nothing": ("pass", "[1, 7, 1, None, {}]"),
    "attributes of a class": ("module.Config.crop = 5", "[5, 7, 1, None, {}]"),
    "of a class within a class": ("module.Config.Train.rate = 5", "[1, 7, 5, None, {}]"),
    "of an object": ("vars(module.config)['crop'] = 5", "[1, 7, 1, 5, {}]"),
    "of an object within an object": ("module.config.train.rate = [2]", "[1, 7, 1, None, {'rate': [2]}]"),
    "of a class that has opened something": ("module.Config.file, module.Config.steps = open(__file__), 8", "[1, 7, 1, None, {}]"),
    "of an enumeration": ("module.Colour.RED._value_ = 2", "[1, 7, 1, None, {}]"),
}
CASES = {case: (*SET[case], SHOWN) for case in SET} | {case: (*OF_CLASSES[case], "print(module.shown())") for case in OF_CLASSES}


@pytest.mark.parametrize("case", CASES)
def test_values_of_a_module_of_the_users(case, tmp_path, monkeypatch):
    statement, shown, program = CASES[case]
    (tmp_path / "module_of_a_script.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_a_script as module

    exec(statement, {"module": module, "argparse": argparse, "numpy": numpy, "torch": torch, "Path": Path, "__file__": __file__})
    values = module_values.capture()
    del sys.modules["module_of_a_script"]
    assert "pytest" not in values and "json" not in values and "sluice.settings" not in values
    own = {"module_of_a_script": values["module_of_a_script"]}  # Those of all tests are more than a command line holds.
    command = f"import module_of_a_script as module; from sluice import module_values; module_values.enter({own!r}); {program}"
    run = subprocess.run([sys.executable, "-c", command], env={"PYTHONPATH": f"{tmp_path}:{PACKAGE}"}, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == shown, run.stderr
    if not shown:
        assert "module_of_a_script.TABLE is a list of 5000 in the script's process, which is too large to travel, and a dict here" in run.stderr


class Counted:
    """Says how often one was pickled."""

    pickled = 0

    def __reduce__(self):
        Counted.pickled += 1
        return bytes, (bytes(1000),)


@pytest.fixture
def module(tmp_path, monkeypatch):
    """One of the user's."""
    (tmp_path / "module_of_a_script.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_a_script as module

    yield module
    del sys.modules["module_of_a_script"]


def test_what_pip_has_put_beside_a_module_is_none_of_the_users(module, tmp_path):
    (tmp_path / "module_of_pip.py").write_text("TABLE = {'a': 1}")
    (tmp_path / "anything-1.dist-info").mkdir()
    (tmp_path / "anything-1.dist-info" / "METADATA").write_text("Name: anything\nVersion: 1\n")
    (tmp_path / "anything-1.dist-info" / "RECORD").write_text("anything-1.dist-info/METADATA,,\nmodule_of_pip.py,sha256=0,0\n")
    import module_of_pip

    assert "TABLE" in vars(module_of_pip)
    assert module.__name__ in module_values.capture() and "module_of_pip" not in module_values.capture()


def test_no_module_is_searched_for_a_function(module, monkeypatch):
    asked = []
    lazy = ModuleType("imports_when_asked")
    lazy.__getattr__ = asked.append
    monkeypatch.setitem(sys.modules, "imports_when_asked", lazy)
    module.TABLE = {"f": numpy.frompyfunc(len, 1, 1)}
    values = module_values.capture()[module.__name__]
    assert values["TABLE"] == b"?dict of 1" and "SIZE" in values
    assert not [name for name in asked if not name.startswith("__")]


def test_pickling_stops_where_a_value_is_large(module):
    module.TABLE = [Counted() for _ in range(900)]
    assert module_values.capture()[module.__name__]["TABLE"] == b"?list of 900"
    assert 0 < Counted.pickled < 200


class UsesAModule(Dataset):
    def __init__(self, name):
        self.name = name

    def __len__(self):
        return 40

    def __getitem__(self, index):
        return len(importlib.import_module(self.name).options[index])


def test_what_only_the_scripts_process_has_stops_no_loop(real_feeder, tmp_path, monkeypatch, caplog):
    """An object that the program has put into a module does not travel. Executors fail for that, and a fork that has it does not."""
    (tmp_path / "module_of_a_script.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    module = importlib.import_module("module_of_a_script")
    module.options = [b"", b"a"] * 5000
    dataset = UsesAModule("module_of_a_script")
    dataset.config = module.Config()  # Unpickling imports it.
    assert [batch.tolist() for batch in DataLoader(dataset, batch_size=10, num_workers=2)] == [[0, 1] * 5] * 4
    assert "module_of_a_script.options has no value there" in caplog.text
    del sys.modules["module_of_a_script"]


@pytest.mark.parametrize("change", [lambda values: values.reverse(), lambda values: values.append(1)])
@pytest.mark.parametrize("kind", [numpy.arange, torch.arange])
def test_a_large_array_of_other_numbers_differs(module, kind, change):
    numbers = list(range(5000))
    module.TABLE = kind(5000)
    sent = {module.__name__: module_values.capture()[module.__name__]}
    module_values.enter(sent)
    change(numbers)
    module.TABLE = numpy.array(numbers) if kind is numpy.arange else torch.tensor(numbers)
    with pytest.raises(module_values.Differs, match="TABLE is a"):
        module_values.enter(sent)


def test_what_cannot_be_read_here_differs(module, monkeypatch):
    """As a function of the script, which is another module elsewhere."""
    kind = type("of_the_script", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "of_the_script", kind, raising=False)
    module.TABLE = {"a": kind}
    sent = {module.__name__: module_values.capture()[module.__name__]}
    module.TABLE = {}
    monkeypatch.delattr(sys.modules["__main__"], "of_the_script")
    with pytest.raises(module_values.Differs, match="TABLE has something of the script's, which cannot be read here"):
        module_values.enter(sent)


def test_the_bytes_that_are_summed_are_bounded(module, monkeypatch):
    monkeypatch.setattr(module_values, "_MOST_SUMMED_IN_ALL_BYTES", 50_000)
    module.TABLE, module.options = numpy.zeros(5000), numpy.ones(5000)
    sent = module_values.capture()[module.__name__]
    assert sorted(b"sum" in sent[name] for name in ("TABLE", "options")) == [False, True]
    module_values.enter({module.__name__: sent})

