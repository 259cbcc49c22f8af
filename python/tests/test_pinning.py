"""Batches are copied to pinned memory by a thread, as torch does it. There is no accelerator here, so what pins is a copy that is counted."""

from __future__ import annotations

import gc
import threading
import time

import pytest
import torch
from torch.utils.data import Dataset
from torch.utils.data._utils import pin_memory as torchs

from sluice.feeder.pinning import Pins
from sluice.torch import DataLoader

THREAD = "sluice-pins"


class Numbers(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return {"number": torch.full((1000,), index), "text": str(index)}


@pytest.fixture
def accelerator(monkeypatch):
    """Which threads have pinned a tensor that was not pinned yet, in order."""
    threads, pinned = [], set()

    def pin(tensor, device=None):
        if tensor.data_ptr() in pinned:
            return tensor
        threads.append(threading.current_thread().name)
        copy = tensor.clone()
        kept.append(copy)
        pinned.add(copy.data_ptr())
        return copy

    kept: list[torch.Tensor] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "current_device_index", lambda: 3)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda index: threads.append(index))
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    return threads


def ended(threads=()):
    """Whether no thread that pins is left but these."""
    deadline = time.monotonic() + 20
    while others := [thread for thread in threading.enumerate() if thread.name in (THREAD, "pt_data_pin") and thread not in threads]:
        if time.monotonic() > deadline:
            return others
        time.sleep(0.01)
    return []


def test_batches_are_those_of_torchs_loader_and_pinned_beside_the_loop(any_feeder, accelerator):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True)
    made = list(loader)
    assert [batch["number"][:, 0].tolist() for batch in made] == [list(range(at, at + 4)) for at in range(0, 40, 4)]
    assert made[3]["text"] == ["12", "13", "14", "15"]
    assert accelerator[0] == 3 and set(accelerator[1:]) == {THREAD} and len(accelerator) >= 11  # Some of the next pass are made ahead.
    del made, loader
    gc.collect()
    assert not ended()


def test_each_pass_of_workers_that_persist_is_pinned(any_feeder, accelerator):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True, persistent_workers=True)
    for _ in range(3):
        assert len(list(loader)) == 10
    assert set(accelerator[1:]) == {THREAD} and accelerator.count(THREAD) >= 30  # Those of the next pass are made ahead.
    del loader
    gc.collect()
    assert not ended()


def test_a_loop_that_is_left_leaves_no_thread(any_feeder, accelerator):
    for _ in zip(DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True), range(2), strict=False):
        pass
    gc.collect()
    assert not ended()


def test_what_cannot_be_pinned_is_the_loops_error(any_feeder, accelerator, monkeypatch):
    def fail(tensor, device=None):
        raise MemoryError("no memory to pin")

    monkeypatch.setattr(torch.Tensor, "pin_memory", fail)
    with pytest.raises(MemoryError, match="no memory to pin"):
        next(iter(DataLoader(Numbers(), batch_size=4, num_workers=2, pin_memory=True)))


def test_a_thread_that_has_ended_is_an_error_and_no_hang(accelerator, monkeypatch):
    monkeypatch.setattr(torchs, "_pin_memory_loop", lambda *arguments: None)
    monkeypatch.setattr("sluice.feeder.pinning._LOOK_SECONDS", 0.01)
    pinned = Pins("cuda").pin([torch.ones(3)])
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        pinned.tensors()


def test_a_slot_is_free_as_soon_as_its_batch_is_pinned(any_feeder, accelerator):
    """The loop keeps the batches, and not their slots."""
    loader = iter(DataLoader(Numbers(), batch_size=4, num_workers=1, prefetch_factor=2, pin_memory=True))
    kept = [batch["number"] for batch in loader]
    assert len(kept) == 10 and all(not tensor.is_shared() for tensor in kept)
