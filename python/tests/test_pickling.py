"""Tensors within a data set: their pickle has their own bytes, and what they are stays."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
from pathlib import Path

import cloudpickle.cloudpickle as tracking
import numpy
import pytest
import torch

from sluice.shipping.failures import NotLight, TooLarge
from sluice.shipping.pickling import dump

PACKAGES = Path(__file__).resolve().parent.parent
MANY = torch.arange(400 * 300, dtype=torch.float32).view(400, 300)
TENSORS = {
    "views of one tensor": lambda: list(MANY),
    "views across it": lambda: list(MANY.t()),
    "every other element": lambda: [MANY[:, ::2], MANY[3:7, 5:50:3]],
    "one element seen many times": lambda: [torch.ones(1).expand(1 << 40)],
    "small ones": lambda: [torch.tensor(number) for number in range(1000)],
    "nothing": lambda: [torch.empty(0), torch.empty(3, 0, dtype=torch.bool)],
    "of other types": lambda: [torch.ones(3, dtype=torch.complex64), torch.ones(2, dtype=torch.bfloat16), torch.tensor(True)],
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_come_back_as_they_were(case):
    tensors = TENSORS[case]()
    pickled, arrays = dump(tensors, 8 << 20, with_generators=False)
    distinct_bytes = sum(tensor.untyped_storage().nbytes() if 0 in tensor.stride() else tensor.nbytes for tensor in tensors)
    assert len(pickled) + sum(array.nbytes for array in arrays) < 2 * distinct_bytes + 300 * len(tensors) + 4000
    for before, after in zip(tensors, pickle.loads(pickled, buffers=arrays), strict=True):
        assert (after.dtype, after.shape, after.stride()) == (before.dtype, before.shape, before.stride())
        assert 0 in before.stride() or torch.equal(before, after)


@pytest.mark.parametrize("of", ["a file, backwards", "no order", "a class of its own"])
@pytest.mark.parametrize("light, refusal", [(True, NotLight), (False, TooLarge)])
def test_an_array_that_cannot_be_sent_is_not_copied_first(tmp_path, of, light, refusal):
    """Of a terabyte, which no memory holds and no test may read. numpy makes bytes of these before it writes any."""
    with open(tmp_path / "tokens.bin", "wb") as file:
        file.truncate(1 << 40)
    repeated = numpy.broadcast_to(numpy.zeros(1, numpy.uint8), 1 << 40)
    array = {
        "a file, backwards": lambda: numpy.memmap(tmp_path / "tokens.bin", numpy.uint8, "r")[::-1],
        "no order": lambda: repeated,
        "a class of its own": lambda: numpy.ma.MaskedArray(repeated, copy=False),
    }[of]()
    with pytest.raises(refusal):
        dump([array], 16 << 20, with_generators=False, light=light)


def test_small_arrays_of_files_travel(tmp_path):
    numpy.arange(1000, dtype=numpy.int32).tofile(tmp_path / "numbers.bin")
    numbers = numpy.memmap(tmp_path / "numbers.bin", numpy.int32, "r")
    pickled, arrays = dump([numbers, numbers[::3]], 16 << 20, with_generators=False, light=True)
    assert [found.tolist() for found in pickle.loads(pickled, buffers=arrays)] == [numbers.tolist(), numbers[::3].tolist()]


class Row:
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.mark.parametrize("make", [lambda: torch.ones(1), lambda: numpy.ones(1), lambda: Row(1)], ids=["tensors", "arrays", "objects"])
def test_objects_that_take_long_to_pickle_are_not_light(make):
    """However few bytes they have."""
    assert dump([make() for _ in range(100)], 16 << 20, with_generators=False, light=True)
    with pytest.raises(NotLight):
        dump([make() for _ in range(5000)], 16 << 20, with_generators=False, light=True)


SCRIPT = """
import dataclasses, functools, pickle, subprocess, sys, typing
import torch.backends.cudnn
from sluice.shipping.pickling import dump
@dataclasses.dataclass(slots=True)
class Sample:
    number: int
class Base:
    __slots__ = ("first", "__weakref__")
class Derived(Base):
    __slots__ = ("__second",)
    def __init__(self): self.first, self.__second = 1, 2
    def __eq__(self, other): return (self.first, self.__second) == (other.first, other.__second)
class Named(typing.NamedTuple):
    number: int
class Lazy:
    @functools.cached_property
    def twice(self): return 2 * self.number
lazy = Lazy()
lazy.number = 5
def switch(): return torch.backends.cudnn.deterministic and "a" in {"a", "b", 3, None}
made = Sample(3), Derived(), Named(4), lazy, switch
pickled, _ = dump(made, 8 << 20, with_generators=False)
elsewhere = '''
import cloudpickle, pickle, sys, torch
*values, lazy, switch = pickle.load(sys.stdin.buffer)
assert switch() is False and lazy.twice == 10
sys.stdout.buffer.write(cloudpickle.dumps(values))
'''
back = subprocess.run([sys.executable, "-c", elsewhere], input=pickled, stdout=subprocess.PIPE, check=True).stdout
from sluice.shipping.own_code import PickleReader
import io
assert PickleReader(io.BytesIO(back)).load() == list(made[:3])
"""


def test_objects_of_the_scripts_classes_come_back_from_elsewhere(tmp_path):
    """Where a class has __slots__, or is that of a module."""
    (tmp_path / "script.py").write_text(SCRIPT)
    subprocess.run([sys.executable, tmp_path / "script.py"], check=True, env={**os.environ, "PYTHONPATH": str(PACKAGES)})


USERS = {
    "a submodule": "import xml\nimport xml.dom.minidom\ndef use(): return xml.dom.minidom.Node.TEXT_NODE",
    "one beside another": "import xml, xml.dom, xml.sax.handler\ndef use(): return xml.dom.Node.TEXT_NODE, xml.sax.handler.version",
    "within a function of its own": "import concurrent.futures\ndef use():\n    def inner(): return concurrent.futures.ALL_COMPLETED\n    return inner()",
    "of a module that is none of a package": "import time\ndef use(): return time.gmtime(0).tm_year",
}


@pytest.mark.parametrize("case", USERS)
def test_a_function_finds_the_submodules_that_it_uses_elsewhere(case):
    script = {"__name__": "__main__"}
    exec(USERS[case], script)
    pickled, _ = dump(script["use"], 8 << 20, with_generators=False)
    elsewhere = "import pickle, sys; print(pickle.load(sys.stdin.buffer)())"
    found = subprocess.run([sys.executable, "-c", elsewhere], input=pickled, capture_output=True, check=False)
    assert found.stdout.decode().strip() == str(script["use"]()), found.stderr.decode()


ONE_AFTER_THE_OTHER = {
    "constants": ("class Own:\n    def value(self): return 1", "class Own:\n    def value(self): return 2"),
    "names": ("class Own:\n    def value(self): return int()", "class Own:\n    def value(self): return str()"),
    "bases": ("class Own(dict):\n    pass\nOwn.value = lambda self: len(self)", "class Own(str):\n    pass\nOwn.value = lambda self: len(self) + 5"),
}


@pytest.mark.parametrize("case", ONE_AFTER_THE_OTHER)
def test_a_class_that_follows_one_of_its_name_is_its_own_elsewhere(case):
    """As in a notebook whose cell is run again. Nothing here remembers the first, while an executor may."""
    pickles, values = [], []
    for code in ONE_AFTER_THE_OTHER[case]:
        script = {"__name__": "__main__"}
        exec(code, script)
        made = script["Own"]()
        pickles.append(dump(made, 8 << 20, with_generators=False)[0])
        values.append(made.value())
        script.clear()
        del made
        gc.collect()
    elsewhere = "import pickle, sys; kept = [pickle.load(sys.stdin.buffer) for _ in range(2)]; print([each.value() for each in kept])"
    found = subprocess.run([sys.executable, "-c", elsewhere], input=b"".join(map(bytes, pickles)), capture_output=True, check=False)
    assert found.stdout.decode().strip() == str(values), found.stderr.decode()


def test_the_name_of_a_class_that_is_gone_is_not_used_again():
    """A process that was forked before may still have that class, and would take the new one for it."""
    names = set()
    for _ in range(3):
        script: dict = {"__name__": "__main__"}
        exec("class Again: pass", script)
        dump(script["Again"], 1 << 20, with_generators=False)
        names.add(tracking._DYNAMIC_CLASS_TRACKER_BY_CLASS[script.pop("Again")])
        gc.collect()
    assert len(names) == 3
