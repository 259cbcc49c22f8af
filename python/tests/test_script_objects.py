"""Objects of a script whose identity or class its samples ask for are what they are in torch's forked workers."""

from __future__ import annotations

import pytest

from conftest import REAL_BINARY
from test_run import with_and_without

HELPER = """
class _Missing: pass
MISSING, NOT_SET = _Missing(), object()
REGISTERED = {}
"""
START = """
import abc, dataclasses, torch
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


@pytest.mark.parametrize("stepping_aside", ["on", "off"])
def test_a_script_prints_what_it_prints_with_torch(tmp_path, stepping_aside):
    (tmp_path / "helper_of_a_script.py").write_text(HELPER)
    (tmp_path / "script.py").write_text(START + "".join(f"print({case!r})\n{script}" for case, script in SCRIPTS.items()))
    plain, ours = with_and_without(["script.py"], tmp_path, SLUICE_FEEDER_BINARY=str(REAL_BINARY), SLUICE_STEP_ASIDE=stepping_aside)
    assert plain[0] == 0 and plain[:2] == ours[:2], ours[2]
