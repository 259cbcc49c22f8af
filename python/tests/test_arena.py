"""Batches alias shared memory, and every slot comes back."""

from __future__ import annotations

import gc
import mmap
import os

import numpy
import pytest
import torch

from torch.utils.data import Subset

from conftest import eventually
from sample_datasets import Bytes
from sluice.feeder import arena as arena_module
from sluice.feeder import choice as feeder
from sluice.feeder.arena import Arena
from sluice.shipping.framing import ProtocolError
from sluice.shipping.structure import DTYPES
from sluice.torch import DataLoader


@pytest.fixture
def arena():
    """(arena of four pages, the same memory, slots given back)."""
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, 4 * 4096)
    released: list[int] = []
    yield Arena(descriptor, 4 * 4096, released.append), mmap.mmap(descriptor, 4 * 4096), released
    os.close(descriptor)


def come(arena, slot, descriptors, **options):
    arena.hold(slot, descriptors)
    return arena.adopt(slot, descriptors, **options)


def descriptor(dtype="float32", shape=(2, 3), offset=4096):
    itemsize = getattr(torch, dtype).itemsize
    return {"dtype": dtype, "shape": list(shape), "offset": offset, "nbytes": int(numpy.prod(shape)) * itemsize}


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_alias_the_memory(arena, dtype):
    mapped, memory, released = arena
    (tensor,) = come(mapped, 7, [descriptor(dtype)])
    assert tensor.dtype is getattr(torch, dtype) and tensor.shape == (2, 3)
    assert tensor.data_ptr() == mapped.address + 4096
    memory[4096:8192] = b"\1" * 4096
    assert bytes(tensor.reshape(-1).view(torch.uint8).numpy().tobytes()) == b"\1" * tensor.numel() * tensor.element_size()
    assert released == []


def test_the_slot_is_given_back_with_the_last_view(arena):
    mapped, _, released = arena
    first, second = come(mapped, 3, [descriptor(), descriptor("int64", (5,), 4096 + 64)])
    view, array = first[1:], second.numpy()
    del first, second
    assert released == []
    del view
    assert released == []
    del array
    assert released == [3]


def test_a_batch_may_outlive_the_modules(arena, monkeypatch):
    """As one that a script has in a variable when it ends."""
    mapped, _, released = arena
    tensors = come(mapped, 3, [descriptor()])
    monkeypatch.setattr(arena_module, "os", None)
    del tensors
    assert released == [3]


def test_a_copied_batch_gives_its_slot_back_at_once(arena):
    mapped, memory, released = arena
    memory[4096:4100] = b"\0\0\x80\x3f"
    (tensor,) = come(mapped, 3, [descriptor()], copy=True)
    assert released == [3]
    memory[4096:4100] = b"\xff" * 4
    assert tensor[0, 0].item() == 1.0


@pytest.mark.parametrize("tensors, released_now", [([], [1]), ([descriptor(shape=(0, 4))], [1])])
def test_batches_without_bytes(arena, tensors, released_now):
    mapped, _, released = arena
    adopted = come(mapped, 1, tensors)
    assert [tensor.shape for tensor in adopted] == [tuple(tensor["shape"]) for tensor in tensors]
    assert released == released_now


WRONG = {
    "beyond the end": descriptor(offset=4 * 4096 - 8),
    "before the start": descriptor(offset=-64),
    "other size than the shape says": {**descriptor(), "nbytes": 20},
    "unknown type": {**descriptor(), "dtype": "float128"},
}


@pytest.mark.parametrize("case", WRONG)
def test_descriptors_that_cannot_be_right_are_refused(arena, case):
    with pytest.raises(ProtocolError):
        come(arena[0], 1, [WRONG[case]])


def test_batches_of_a_loader_lie_in_the_mapping(any_feeder):
    batches = iter(DataLoader(Bytes(8, 1000), batch_size=4, num_workers=2))
    batch = next(batches)
    session = batches._connection.session
    assert 0 <= batch.data_ptr() - session.arena.address < session.arena.size_bytes
    assert batch.data_ptr() % 64 == 0


@pytest.mark.parametrize("populates", [True, False])
def test_what_is_held_stays_as_it_is_once_the_feeder_is_gone(arena, monkeypatch, populates):
    """`populates`: whether the kernel can; else each page is written to."""
    mapped, memory, released = arena
    if not populates:
        monkeypatch.setattr(arena_module, "_MADV_POPULATE_WRITE", 9999)
    memory[:] = bytes(range(256)) * 64
    given_back = come(mapped, 1, [descriptor("uint8", (100,), 0)])
    (lent,) = come(mapped, 2, [descriptor("uint8", (5000,), 4096)])
    coming = [descriptor("uint8", (90,), 3 * 4096 + 64)]
    mapped.hold(3, coming)
    given_back.clear()
    lent[7] = 77
    expected = lent.clone()
    mapped.part()
    memory[:] = b"\xff" * len(memory)
    assert torch.equal(lent, expected)
    assert mapped.adopt(3, coming)[0].tolist() == list(range(64, 154))
    lent += 1
    assert torch.equal(lent, expected + 1)
    assert bytes(memory) == b"\xff" * len(memory)
    assert released[0] == 1
    mapped.part()


def test_batches_in_hand_stay_as_they_are_when_others_get_their_slots(any_feeder):
    """Those that the loop has, and those that it has not asked for yet."""
    kept = list(DataLoader(Bytes(16, 5000), batch_size=4, num_workers=2))
    under_way = iter(DataLoader(Bytes(16, 5000), batch_size=4, num_workers=2))
    kept.append(next(under_way))
    eventually(lambda: under_way._stream._asked.ready_batches == 3)
    feeder.disconnect_all()
    list(DataLoader(Subset(Bytes(400, 5000), range(99, 400)), batch_size=4, num_workers=2))
    kept += under_way
    assert [batch[:, -1].tolist() for batch in kept] == [[4 * (n % 4) + offset for offset in range(4)] for n in range(8)]


@pytest.mark.parametrize("feeder_ends, kept", [(True, 0), (False, 1)])
def test_pages_are_copied_only_where_the_feeder_lives_on(make_fake, monkeypatch, feeder_ends, kept):
    fake, parted = make_fake(), []
    monkeypatch.setattr(Arena, "part", lambda arena: parted.append(arena))
    batches = iter(DataLoader(Bytes(16, 5000), batch_size=4, num_workers=2))
    connection, _ = batches._connection, next(batches)
    if feeder_ends:
        fake.stop()
        eventually(lambda: connection.session is None)
    feeder.disconnect_all()
    assert len(parted) == kept


def test_nothing_leaks_over_a_thousand_batches(make_fake):
    fake = make_fake(slots=6, slot_bytes=1 << 16)
    gc.collect()
    descriptors_before = None
    loader = DataLoader(Bytes(4000, 5000), batch_size=4, num_workers=2)  # While it lives, so does the memory of its pipeline.
    for number, batch in enumerate(loader):
        assert batch[:, 0].tolist() == [(4 * number + offset) % 251 for offset in range(4)]
        if number == 10:
            descriptors_before = len(os.listdir("/proc/self/fd"))
    assert number == 999
    assert len(os.listdir("/proc/self/fd")) == descriptors_before
    del batch, loader
    eventually(lambda: not fake.ask()["held"])


def test_a_loop_that_keeps_every_batch_goes_on(any_feeder):
    batches = list(DataLoader(Bytes(400, 300_000), batch_size=2, num_workers=2))
    assert len(batches) == 200
    assert [batch[:, -1].tolist() for batch in batches] == [[(2 * n) % 251, (2 * n + 1) % 251] for n in range(200)]


def test_batches_outlive_the_feeder(make_fake):
    fake = make_fake()
    batches = [batch for batch in DataLoader(Bytes(16, 1000), batch_size=4, num_workers=2)]
    fake.stop()
    assert [batch[:, 0].tolist() for batch in batches] == [[4 * n + offset for offset in range(4)] for n in range(4)]
