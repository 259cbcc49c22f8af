"""What a script sets in its modules is seen by an interpreter that imports them anew."""

from __future__ import annotations

import argparse
import functools
import importlib
import subprocess
import sys
import unittest.mock
from pathlib import Path
from types import ModuleType

import numpy
import pytest
import torch
from torch.utils.data import Dataset
from torchvision import transforms

from sluice.shipping import module_values
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
    assert "pytest" not in values and "json" not in values and "sluice.base.settings" not in values
    own = {"module_of_a_script": values["module_of_a_script"]}  # Those of all tests are more than a command line holds.
    command = f"import module_of_a_script as module; from sluice.shipping import module_values; module_values.enter({own!r}); {program}"
    run = subprocess.run([sys.executable, "-c", command], env={"PYTHONPATH": f"{tmp_path}:{PACKAGE}"}, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == shown, run.stderr
    if not shown:
        assert "module_of_a_script.TABLE does not travel: in the script's process it is 'list of 5000 (sum" in run.stderr and "here 'dict'" in run.stderr


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


OTHER_MODULE = """
import functools
def size(): return 7
def times(factor): return 7 * factor
class Config: pass
def timed(function):
    @functools.wraps(function)
    def wrapper(*arguments): return function(*arguments)
    return wrapper
"""
DIFFERS = "does not travel"
CODE = {  # What the script does, and what a fresh interpreter has then. None: it says that it differs.
    "nothing": ("pass", "1 Config 3 [] None (64,)"),
    "a function of the script": ("module.size = lambda: 9", None),
    "a function of the script, decorated by a module's": ("module.size = other.timed(lambda: 9)", None),
    "the module's own, decorated": ("module.size = other.timed(module.size)", None),
    "a method of the script": ("module.Config.three = lambda self: 9", None),
    "a static method of the script": ("module.Config.three = staticmethod(lambda: 9)", None),
    "a special method of the script": ("module.Config.__len__ = lambda self: 9", None),
    "a class of the script": ("class Mine: pass\nmodule.Config = Mine", None),
    "an object of the script in the place of a function": ("class Mine: __call__ = len\nmodule.size = Mine()", None),
    "an object of a library in the place of a function": ("module.size = unittest.mock.Mock()", None),
    "a function of the script in a list": ("module.hooks.append(lambda: 9)", None),
    "a class of the script in a list": ("class Mine: pass\nmodule.hooks.append(Mine)", None),
    "a function of the script in the place of none": ("module.hook = lambda: 9", None),
    "a partial of a function of the script": ("module.hook = functools.partial(lambda: 9)", None),
    "a transform with a function of the script": ("module.resize = transforms.Lambda(lambda: 9)", None),
    "a function of the script by a new name": ("module.added = lambda: 9", "1 Config 3 [] None (64,)"),
    "another module's function": ("module.size = other.size", "7 Config 3 [] None (64,)"),
    "another module's class": ("module.Config = other.Config; other.Config.three = other.size", "1 Config 7 [] None (64,)"),
    "another module's function, in a list": ("module.hooks.append(other.size)", "1 Config 3 ['size'] None (64,)"),
    "a partial of another module's function": ("module.size = functools.partial(other.times, 2)", "14 Config 3 [] None (64,)"),
    "a builtin": ("module.size = dict", "{} Config 3 [] None (64,)"),
    "another of its own functions": ("module.size = module.two", "2 Config 3 [] None (64,)"),
    "another transform": ("module.resize = transforms.Resize((32,))", "1 Config 3 [] None (32,)"),
    "an attribute of a transform": ("module.resize.size = (32,)", "1 Config 3 [] None (32,)"),
}
MODULE_OF_CODE = """
import functools
from torchvision import transforms
import other_of_a_script
from other_of_a_script import timed
def size(): return 1
def two(): return 2
@timed
def waits(): pass
@functools.lru_cache
def keeps(): pass
class Config:
    def __len__(self): return 1
    @staticmethod
    def three(): return 3
    @property
    def four(self): return 4
    @functools.cached_property
    def five(self): return 5
hooks, hook, resize = [], None, transforms.Resize((64,))
def shown(): return f"{size()} {Config.__name__} {Config.three()} {[hook.__name__ for hook in hooks]} {hook} {resize.size}"
"""


@pytest.mark.parametrize("case", CODE)
def test_code_that_the_script_puts_into_a_module(case, tmp_path, monkeypatch):
    statement, shown = CODE[case]
    (tmp_path / "code_of_a_script.py").write_text(MODULE_OF_CODE)
    (tmp_path / "other_of_a_script.py").write_text(OTHER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    module, other = importlib.import_module("code_of_a_script"), importlib.import_module("other_of_a_script")
    script = {"module": module, "other": other, "functools": functools, "transforms": transforms, "unittest": unittest, "__name__": "__main__"}
    exec(statement, script)
    sent = {name: module_values.capture()[name] for name in (module.__name__, other.__name__)}
    del sys.modules[module.__name__], sys.modules[other.__name__]
    fresh = importlib.import_module("code_of_a_script")
    if shown is None:
        with pytest.raises(module_values.Differs, match=DIFFERS):
            module_values.enter(sent)
    else:
        module_values.enter(sent)
        assert fresh.shown() == shown
    del sys.modules[module.__name__], sys.modules[other.__name__]


LARGE = {
    "a list in another order": ("list(map(str, range(5000)))", "list(map(str, reversed(range(5000))))", True),
    "an equal list": ("list(map(str, range(5000)))", "[f'{number}' for number in range(5000)]", False),
    "a list of pairs": ("[(str(n), n) for n in range(5000)]", "[(str(n), n) for n in range(4999)] + [('4999', 0)]", True),
    "other objects": ("[object() for _ in range(5000)]", "[object() for _ in range(5000)]", False),
    "another text": ("'a' * 50000", "'b' * 50000", True),
    "half a character": (r"'\ud800' * 50000", r"'\ud800' * 50000", False),
    "another set": ("set(map(str, range(5000)))", "set(map(str, range(1, 5001)))", True),
    "an equal set": ("set(map(str, range(5000)))", "set(map(str, reversed(range(5000))))", False),
    "sets in a list": ("[set('abcdefgh')] * 5000", "[set('hgfedcba')] * 5000", False),
}


@pytest.mark.parametrize("case", LARGE)
def test_large_values_of_plain_data_are_compared(case, module):
    there, here, differs = LARGE[case]
    module.TABLE = eval(there)
    sent = {module.__name__: module_values.capture()[module.__name__]}
    module.TABLE = eval(here)
    if differs:
        with pytest.raises(module_values.Differs, match="TABLE does not travel"):
            module_values.enter(sent)
    else:
        module_values.enter(sent)


@pytest.mark.parametrize("change", [lambda values: values.reverse(), lambda values: values.append(1)])
@pytest.mark.parametrize("kind", [numpy.arange, torch.arange])
def test_a_large_array_of_other_numbers_differs(module, kind, change):
    numbers = list(range(5000))
    module.TABLE = kind(5000)
    sent = {module.__name__: module_values.capture()[module.__name__]}
    module_values.enter(sent)
    change(numbers)
    module.TABLE = numpy.array(numbers) if kind is numpy.arange else torch.tensor(numbers)
    with pytest.raises(module_values.Differs, match="TABLE does not travel"):
        module_values.enter(sent)


def test_what_cannot_be_read_here_differs(module, monkeypatch):
    """As a function of the script, which is another module elsewhere."""
    kind = type("of_the_script", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "of_the_script", kind, raising=False)
    module.TABLE = {"a": kind}
    sent = {module.__name__: module_values.capture()[module.__name__]}
    module.TABLE = {}
    monkeypatch.delattr(sys.modules["__main__"], "of_the_script")
    with pytest.raises(module_values.Differs, match="TABLE does not travel: in the script's process it is 'dict with something of the script's', here 'dict'"):
        module_values.enter(sent)


def test_the_bytes_that_are_summed_are_bounded(module, monkeypatch):
    monkeypatch.setattr(module_values, "_MOST_SUMMED_IN_ALL_BYTES", 50_000)
    monkeypatch.setattr(module_values, "users_modules", lambda: [(module.__name__, module)])  # Those of other tests have large values, too.
    module.TABLE, module.options = numpy.zeros(5000), numpy.ones(5000)
    sent = module_values.capture()[module.__name__]
    assert sorted(b"sum" in sent[name] for name in ("TABLE", "options")) == [False, True]
    module_values.enter({module.__name__: sent})

