"""Objects of a script whose identity or class its samples ask for are what they are in torch's forked workers."""

from __future__ import annotations

import pytest

from conftest import REAL_BINARY
from test_run import PACKAGE, run, with_and_without

HELPER = """
class _Missing: pass
MISSING, NOT_SET = _Missing(), object()
REGISTERED, HOOKS = {}, []
def size(): return 1
class Sizes:
    def of(self, i): return size() + sum(hook(i) for hook in HOOKS)
"""
START = """
import abc, dataclasses, functools, threading, torch, weakref
import helper_of_a_script as helper
from torch.utils.data import DataLoader, Dataset
from helper_of_a_script import MISSING, NOT_SET, REGISTERED

def show(dataset, **options):
    loader = DataLoader(dataset, batch_size=4, num_workers=2, **options)
    print([batch.tolist() for _ in range(2) for batch in loader])
"""
SCRIPTS = {
    "an abstract class": """
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, side): self.side = side
    def area(self): return self.side ** 2
class Shapes(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return Square(i).area() if isinstance(Square(i), Shape) and not isinstance(i, Shape) else -1
show(Shapes())
""",
    "a default that is a global": """
NOT_GIVEN = object()
class Defaults(Dataset):
    def __len__(self): return 8
    def field(self, row, default=NOT_GIVEN): return row.get("w", -1 if default is NOT_GIVEN else 99)
    @staticmethod
    def other(*, default=NOT_GIVEN): return default is NOT_GIVEN
    def __getitem__(self, i): return self.field({}) + self.other()
show(Defaults())
""",
    "a default that samples change": """
class Known(Dataset):
    def __len__(self): return 8
    def seen(self, i, known=[]):
        known.append(i)
        return len(set(known)) > 0
    def __getitem__(self, i): return self.seen(i)
show(Known())
print(Known.seen.__defaults__)
""",
    "sentinels of modules": """
class Rows(Dataset):
    rows = [MISSING, NOT_SET, dataclasses.MISSING, 3] * 2
    def __len__(self): return 8
    def __getitem__(self, i): return [row is each for row in [self.rows[i]] for each in (MISSING, NOT_SET, dataclasses.MISSING)].count(True)
show(Rows())
""",
    "a function in a module's table": """
class Looked(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return REGISTERED.get("double", abs)(i)
def double(i): return 2 * i
REGISTERED["double"] = double
show(Looked())
del REGISTERED["double"]
""",
    "a function of the script in a module": """
class Sized(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return helper.Sizes().of(i)
own = helper.size, helper.Sizes.of
helper.size = lambda: 100
show(Sized())
helper.size = own[0]
helper.HOOKS.append(lambda i: i)
show(Sized())
helper.HOOKS.clear()
helper.Sizes.of = lambda self, i: -i
show(Sized())
helper.Sizes.of = own[1]
""",
    "globals by name": """
def tripled(i): return 3 * i
class Named(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return globals().get("trip" + "led", abs)(i)
show(Named())
""",
    "functions for several types, and locks": """
@functools.singledispatch
def doubled(value): return [value]
@doubled.register(list)
def _(values): return [doubled(each) for each in values]
@doubled.register
def _(number: int): return 2 * number
class Guarded(Dataset):
    def __init__(self):
        self.lock, self.reentrant, self.condition, self.several = threading.Lock(), threading.RLock(), threading.Condition(), threading.Semaphore(2)
        self.event, self.known = threading.Event(), weakref.WeakValueDictionary()
    def __len__(self): return 8
    def __getitem__(self, i):
        with self.lock, self.reentrant, self.condition, self.several:
            return doubled([i, i + 1])[1] + len(self.known) + self.event.is_set()
show(Guarded())
""",
    "a sampler that fails": """
def indices():
    yield from range(5)
    raise ValueError("broken sampler")
try: show([1] * 24, sampler=indices())
except ValueError as error: print(error)
""",
    "generators as samplers": """
class Numbers(Dataset):
    def __len__(self): return 24
    def __getitem__(self, i): return i
show(Numbers(), sampler=range(12))
show(Numbers(), sampler=(i for i in range(12)))
""",
}


ASSERTS = """
class Asserts(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        try: assert i < 4
        except AssertionError: return -1
        return i
show(Asserts())
"""


def test_assertions_that_python_leaves_out(tmp_path):
    (tmp_path / "helper_of_a_script.py").write_text(HELPER)
    (tmp_path / "script.py").write_text(START + ASSERTS)
    asked = {"cwd": tmp_path, "PYTHONPATH": str(PACKAGE), "SLUICE_FEEDER_BINARY": str(REAL_BINARY), "SLUICE_STEP_ASIDE": "off"}
    assert run(["-O", "-m", "sluice", "script.py"], **asked)[:2] == (0, f"{[[0, 1, 2, 3], [4, 5, 6, 7]] * 2}\n")


@pytest.mark.parametrize("stepping_aside", ["on", "off"])
def test_a_script_prints_what_it_prints_with_torch(tmp_path, stepping_aside):
    (tmp_path / "helper_of_a_script.py").write_text(HELPER)
    (tmp_path / "script.py").write_text(START + "".join(f"print({case!r})\n{script}" for case, script in SCRIPTS.items()))
    plain, ours = with_and_without(["script.py"], tmp_path, SLUICE_FEEDER_BINARY=str(REAL_BINARY), SLUICE_STEP_ASIDE=stepping_aside)
    assert plain[0] == 0 and plain[:2] == ours[:2], ours[2]
