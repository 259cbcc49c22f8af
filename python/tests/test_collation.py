"""Batches whose tensors are stacked in the slot are the batches that torch's own collation makes; and errors are its errors."""

from __future__ import annotations

import collections
import pickle
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data import DataLoader as TorchLoader, default_collate

from sluice.executor.collation import collate
from sluice.shipping import structure
from sluice.shipping.structure import Stack, detached, layout, pack, pack_for_a_fork, unpack
from test_loader import equal

Point = collections.namedtuple("Point", "x y")


class OwnTensor(torch.Tensor):
    pass


class Own(dict):
    """Looks at what it is given."""

    def __init__(self, *arguments, **values):
        super().__init__(*arguments, **values)
        assert all(isinstance(value, torch.Tensor) for value in self.values())


def through_a_slot(batch):
    """As the executor writes it and the trainer reads it."""
    tensors, structure = pack(batch)
    descriptors, slot_bytes = layout(tensors)
    made = []
    for tensor, descriptor in zip(tensors, descriptors, strict=True):
        target = torch.empty(descriptor["shape"], dtype=tensor.dtype)
        tensor.write(target) if type(tensor) is Stack else target.copy_(tensor)
        made.append(target)
    assert slot_bytes >= sum(tensor.numel() * tensor.element_size() for tensor in made)
    return unpack(structure, made)


def stacks_in(batch):
    return sum(type(tensor) is Stack for tensor in pack(batch)[0])


def samples(make, count=4):
    torch.manual_seed(1)
    return [make(number) for number in range(count)]


# What a sample is, and how many tensors of the batch may wait for their slot.
CASES = {
    "a tensor": (lambda n: torch.rand(3, 4), 1),
    "a tensor and a label": (lambda n: (torch.rand(2), n), 1),
    "a list": (lambda n: [torch.rand(2), torch.tensor(n), "name"], 2),
    "nested": (lambda n: {"a": {"b": [torch.rand(2), (torch.ones(1, dtype=torch.int16), 2.5)]}, "c": n}, 2),
    "arrays": (lambda n: (numpy.full((2, 3), n, dtype=numpy.float64), numpy.arange(3)), 2),
    "numbers": (lambda n: (n, n / 3, True), 0),
    "scalars": (lambda n: torch.tensor(n), 1),
    "nothing": (lambda n: torch.zeros(0, 5), 1),
    "not contiguous": (lambda n: torch.rand(4, 3).t(), 1),
    "one tensor for all": (lambda n, one=torch.rand(3): one, 1),
    "a type that torch cannot pickle": (lambda n: torch.full((3,), n, dtype=torch.uint16), 1),
    "a named tuple": (lambda n: Point(torch.rand(2), n), 0),
    "an own dict": (lambda n: Own(a=torch.rand(2)), 0),
    "an own dict inside": (lambda n: (torch.rand(2), Own(a=torch.rand(2))), 0),
    "a default dict": (lambda n: collections.defaultdict(int, a=torch.rand(2)), 0),
    "an own kind of tensor": (lambda n: torch.rand(2).as_subclass(OwnTensor), 0),
    "gradients": (lambda n: torch.rand(2, requires_grad=True) * 2, 0),
    "conjugates": (lambda n: torch.rand(2, dtype=torch.complex64).conj(), 0),
    "own tensors among others": (lambda n: torch.rand(2) if n % 2 == 0 else torch.rand(2).as_subclass(OwnTensor), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_the_batch_is_torchs(name):
    make, waiting = CASES[name]
    if name == "a type that torch cannot pickle" and not hasattr(torch, "uint16"):
        pytest.skip("this torch has no such type")
    batch = collate(None, True, samples(make), stacks=True)
    assert stacks_in(batch) == waiting
    assert equal(through_a_slot(batch), default_collate(samples(make)))
    assert stacks_in(collate(None, True, samples(make))) == 0


def test_arrays_are_read_only_where_torch_has_them_so():
    made = [numpy.frombuffer(b"read only", "u1"), numpy.zeros(3)]
    expected = [array.flags.writeable for array in pickle.loads(ForkingPickler.dumps(made))]
    for batch in (through_a_slot(made), detached(made)):
        assert equal([array.tolist() for array in batch], [array.tolist() for array in made])
        assert [array.flags.writeable for array in batch] == expected


AS_IN_A_WORKER = {
    "a video": lambda n: torch.rand(2, 5, 6, 3).permute(0, 3, 1, 2),
    "an image of channels": lambda n: torch.rand(5, 6, 3).permute(2, 0, 1),
    "the last channels of one image": lambda n: torch.rand(1, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "a double among singles": lambda n: torch.ones(2, dtype=(torch.float32, torch.float64)[n % 2]),
    "a single among doubles": lambda n: torch.ones(2, dtype=(torch.float64, torch.float32)[n % 2]),
    "a number that does not fit": lambda n: torch.tensor([400 * (n % 2)], dtype=(torch.uint8, torch.int64)[n % 2]),
    "integers and fractions": lambda n: torch.ones(2, dtype=(torch.int32, torch.float32)[n % 2]),
    "arrays of two types": lambda n: numpy.ones(2, dtype=("f4", "f8")[n % 2]),
}


@pytest.mark.parametrize("stacks", [False, True])
@pytest.mark.parametrize("name", AS_IN_A_WORKER)
def test_memory_and_type_are_those_of_a_worker_of_torchs(name, stacks):
    """Its worker has a place for the batch before it puts it together, and the training process has none."""
    made = samples(AS_IN_A_WORKER[name])
    try:
        expected = next(iter(TorchLoader(made, batch_size=len(made), num_workers=1)))
    except TypeError:
        with pytest.raises(TypeError):
            collate(None, True, made, stacks)
        return
    except RuntimeError:
        pytest.skip("this torch's worker takes no such batch")
    found = through_a_slot(collate(None, True, made, stacks)) if stacks else collate(None, True, made)
    assert equal(found, expected) and found.stride() == expected.stride()


@pytest.mark.parametrize(
    "make",
    [
        lambda n: torch.rand(2 + n),
        lambda n: (torch.rand(2), torch.rand(1, 1 + n % 2)),
        lambda n: torch.rand(2) if n else n,
        lambda n: [torch.rand(2)] * (1 + n),
        lambda n: object(),
        lambda n: torch.rand(2) if n < 3 else None,
    ],
)
def test_errors_are_torchs(make):
    with pytest.raises(Exception) as expected:
        default_collate(samples(make))
    with pytest.raises(type(expected.value)) as found:
        collate(None, True, samples(make), stacks=True)
    assert str(found.value) == str(expected.value)


def test_what_users_register_gets_tensors(monkeypatch):
    seen = []

    def collate_points(batch, *, collate_fn_map=None):
        inner = torch_collate.collate([point.x for point in batch], collate_fn_map=collate_fn_map)
        seen.append(type(inner))
        return inner * 2

    monkeypatch.setitem(torch_collate.default_collate_fn_map, Point, collate_points)
    batch = collate(None, True, samples(lambda n: (Point(torch.rand(2), 1), torch.rand(1))), stacks=True)
    assert seen == [torch.Tensor] and stacks_in(batch) == 0


def test_a_users_own_way_to_stack_is_kept(monkeypatch):
    monkeypatch.setitem(torch_collate.default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map=None: len(batch))
    assert collate(None, True, [torch.rand(2)] * 3, stacks=True) == 3


# Batches of a collate_fn of the user's, and how many elements travel.
VIEWS = {
    "transposed": (lambda t: t[:4].t(), 24),
    "channels last": (lambda t: torch.arange(48.0).view(2, 3, 2, 4).to(memory_format=torch.channels_last), 48),
    "one channel, channels last": (lambda t: torch.arange(8.0).view(1, 1, 2, 4).to(memory_format=torch.channels_last), 8),
    "expanded": (lambda t: t[:1].expand(5, 6), 6),
    "every other column": (lambda t: t[:, ::2], 59),
    "one column": (lambda t: t[:, 2], 10),
    "of no elements": (lambda t: t[:0], 0),
    "inputs and targets": (lambda t: {"inputs": t[:, :-1], "targets": t[:, 1:]}, 60),
    "a part and the whole": (lambda t: [t[3], t], 60),
    "rows in another order": (lambda t: [t[5], t[1], t[3]], 18),
    "columns far apart": (lambda t: (t[:, 0], t[:, 5]), 20),
    "read as another type": (lambda t: (t, t.view(torch.int32)), 120),
    "one twice": (lambda t: [t.t(), t.t()] + [t[:, 1:]] * 2, 60),
}


@pytest.mark.parametrize("name", VIEWS)
def test_tensors_keep_their_strides_and_what_they_share(name):
    make, elements = VIEWS[name]
    batch = make(torch.arange(60.0).view(10, 6))
    found = through_a_slot(batch)
    members = lambda of: list(of.values()) if isinstance(of, dict) else [of] if isinstance(of, torch.Tensor) else list(of)
    assert equal(found, batch)
    assert [tensor.stride() for tensor in members(found)] == [tensor.stride() for tensor in members(batch)]
    assert sum(tensor.numel() for tensor in pack(batch)[0]) == elements
    if name in ("inputs and targets", "a part and the whole", "one twice"):
        for of in (batch, found):
            members(of)[0].fill_(-1.0)
        assert equal(found, batch)


@pytest.mark.parametrize("way", [pack, pack_for_a_fork, detached])
def test_values_within_a_batch_call_no_python(monkeypatch, way):
    """A call for each would take many times as long as pickling does."""
    seen: list = []
    monkeypatch.setattr(structure, "_is_carried", lambda value: seen.append(value) or structure.travels_in_arena(value))
    mask = torch.ones(3)
    way({"ids": [list(range(1000)), ("a", None, 1.5, b"b", {2}, {"c": True})], "mask": mask})
    assert [value for value in seen if value is not mask and value is not structure.carried_tensor] == []


FAULTS = """
import ctypes, resource, sys, torch
from sluice.executor.heap import keep_freed_memory
torch.set_num_threads(1)
ctypes.CDLL(None).mallopt(-3, 100_000)  # Otherwise luck decides what the C library keeps.
if sys.argv[1] == "keep":
    keep_freed_memory()
def use():
    return [torch.ones(3, 224, 224) for _ in range(64)]
for _ in range(3):
    use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how: str, **environment: str) -> int:
    command = [sys.executable, "-c", FAULTS, how]
    environment = {"PYTHONPATH": str(Path(__file__).resolve().parent.parent), **environment}
    return int(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout)


def test_an_executor_keeps_the_memory_that_it_asks_for_again():
    assert page_faults("keep") < 2000 < 20000 < page_faults("leave")


def test_thresholds_of_the_users_are_kept():
    assert page_faults("keep", MALLOC_MMAP_THRESHOLD_="100000") > 20000
