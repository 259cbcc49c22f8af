"""What torch's workers inherit and keep for themselves: the training process goes over to it, and back, for each batch that it makes."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

from sample_datasets import Numbers
from sluice.torch import DataLoader


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()


@contextlib.contextmanager
def other_dtype():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def other_folder():
    folder = os.getcwd()
    os.chdir("/")
    yield
    os.chdir(folder)


CHANGES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no gradients": torch.no_grad,
    "the default device": lambda: torch.device("meta"),
    "the default type": other_dtype,
    "the folder": other_folder,
}


def seen_here():
    return (torch.ones(2, 2) @ torch.ones(2, 2)).dtype, torch.is_grad_enabled(), torch.ones(1).device, torch.ones(1).dtype, os.getcwd()


class Seeing(Numbers):
    def __getitem__(self, index: int):
        return seen_here()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("changed_first", [False, True])
def test_a_sample_sees_what_held_when_the_iterator_was_made(change, changed_first):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        loader = loader_class(Seeing(), num_workers=1, collate_fn=list)
        with CHANGES[change]() if changed_first and "device" not in change else contextlib.nullcontext():
            batches = iter(loader)
        before = seen_here()
        with CHANGES[change]() if not changed_first else contextlib.nullcontext():
            seen.append([next(batches), next(batches)])
        assert seen_here() == before
    assert seen[0] == seen[1]


class OpenCV:
    """As much of it as counts here."""

    threads = 2

    def getNumThreads(self) -> int:  # noqa: N802
        return self.threads

    def setNumThreads(self, count: int) -> None:  # noqa: N802
        self.threads = 4 if count < 0 else count


class Changing(Numbers):
    def __getitem__(self, index: int):
        torch.set_grad_enabled(False), torch.set_default_dtype(torch.float64), torch.set_num_threads(7), os.chdir("/")
        os.environ["OF_A_SAMPLE"] = os.environ.get("OF_A_SAMPLE", "") + "x"
        os.environ.pop("OF_THE_SCRIPT", None)
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        sys.modules.setdefault("cv2", OpenCV()).setNumThreads(1)
        return index


@pytest.mark.parametrize("has_opencv", [False, True])
def test_what_a_sample_changes_the_script_does_not_see(monkeypatch, has_opencv):
    def seen():
        opencv = sys.modules.get("cv2")
        return *seen_here(), torch.get_num_threads(), dict(os.environ), signal.getsignal(signal.SIGUSR1), opencv and opencv.getNumThreads()

    monkeypatch.setitem(sys.modules, "cv2", OpenCV())
    if not has_opencv:
        del sys.modules["cv2"]
    monkeypatch.setenv("OF_THE_SCRIPT", "1")
    before = seen()
    for _ in DataLoader(Changing(), batch_size=4, num_workers=1):
        assert seen()[:-1] == before[:-1] and sys.modules["cv2"].getNumThreads() == (2 if has_opencv else 4)


class Counting(Numbers):
    def __getitem__(self, index: int):
        os.environ["OF_A_SAMPLE"] = os.environ.get("OF_A_SAMPLE", "") + "x"
        return len(os.environ["OF_A_SAMPLE"]), os.environ.get("OF_THE_SCRIPT")


def test_the_next_samples_see_the_environment_as_a_sample_has_left_it(monkeypatch):
    monkeypatch.setattr("sluice.loader.own_batches.can_fork", lambda: False)  # On a busy machine they would take over.
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        monkeypatch.setenv("OF_THE_SCRIPT", "as of iter()")
        loader = loader_class(Counting(12), batch_size=4, num_workers=1, collate_fn=list)
        for _ in range(2):
            batches = iter(loader)
            os.environ["OF_THE_SCRIPT"] = "later"
            seen.append(list(batches))
    assert seen[:2] == seen[2:]


class SlowFirst(Counting):
    """Forks take over within the first batch."""

    def __getitem__(self, index: int):
        if index < 4:
            time.sleep(0.5)
        return super().__getitem__(index)


def test_forks_that_come_late_see_the_environment_of_the_beginning(monkeypatch):
    monkeypatch.setenv("OF_THE_SCRIPT", "as of iter()")
    loader = DataLoader(SlowFirst(80), batch_size=4, num_workers=1, collate_fn=list)
    batches = iter(loader)
    os.environ["OF_THE_SCRIPT"] = "later"
    first = next(batches)
    assert batches._payback.forks_pay
    assert first == [(count, "as of iter()") for count in (1, 2, 3, 4)]  # The samples of the batch that was broken off have left nothing.
    assert os.environ["OF_THE_SCRIPT"] == "later" and "OF_A_SAMPLE" not in os.environ
