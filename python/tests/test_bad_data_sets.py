"""Data sets that misbehave: the loop sees what torch's own loader shows it, or a better message. It never hangs, and no other loader loses a batch."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, Dataset, IterableDataset, get_worker_info

from conftest import eventually
from sluice.torch import DataLoader

TRAINER = os.getpid()


@pytest.fixture(params=["fake", "real", "real, begun here"])
def served(request, monkeypatch):
    """By either feeder; the last makes its first batches in this process or in forks of it."""
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on" if request.param.endswith("here") else "off")
    return request.getfixturevalue("make_fake")() if request.param == "fake" else request.getfixturevalue("real_feeder")


class Ten(Dataset):
    """Sample i is i."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int):
        return torch.tensor(index)


class At5(Ten):
    """Something happens at sample 5."""

    def __getitem__(self, index: int):
        if index == 5:
            self.happen()
        return super().__getitem__(index)


def seen(loader_class, dataset, **arguments) -> list:
    """What a loop gets until the end, or until the loader raises the second time: batches, and exceptions with the last line that they say."""
    got: list = []
    try:
        batches = iter(loader_class(dataset, batch_size=2, **{"num_workers": 2, **arguments}))
    except Exception as error:
        return [(type(error), last_line(error))]
    try:
        while sum(type(entry) is tuple for entry in got) < 2:
            try:
                got.append(plain(next(batches)))
            except StopIteration:
                break
            except Exception as error:
                got.append((type(error), last_line(error)))
    finally:
        batches._shutdown_workers()  # Now, not when the garbage collector finds what the exceptions' tracebacks hold.
    return got


def plain(batch):
    return batch.tolist() if isinstance(batch, torch.Tensor) else batch


def last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1] if str(error).strip() else ""


class NoLength(Ten):
    __len__ = None


class Length(Ten):
    """`__len__` returns, or raises, what it was given; the first `calls` times it is right."""

    def __init__(self, length, calls: int = 0) -> None:
        self.length = length
        self.calls_left = calls

    def __len__(self):
        self.calls_left -= 1
        if self.calls_left >= 0:
            return 10
        if isinstance(self.length, Exception):
            raise self.length
        return self.length


class StateRaises(Ten):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getstate__(self):
        raise self.error


class ReduceRaises(StateRaises):
    def __reduce__(self):
        raise self.error


class ReducesToNonsense(Ten):
    def __reduce__(self):
        return 3


class Unloadable(Ten):
    """Cannot be made again from its pickle."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error

    def __setstate__(self, state: dict) -> None:
        raise state["error"]


class Prints(Ten):
    def __getitem__(self, index: int):
        print("sample", index)
        os.write(1, b"without Python's buffer\n")
        return super().__getitem__(index)


class StartsThreads(Ten):
    """One ends at once; another one never does."""

    def __getitem__(self, index: int):
        threading.Thread(target=time.sleep, args=(0,)).start()
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        return super().__getitem__(index)


class Raises(At5):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def happen(self) -> None:
        raise self.error


class Endless(At5):
    """Calls itself for ever."""

    def happen(self) -> None:
        self.happen()


class Unequal(Ten):
    def __getitem__(self, index: int):
        return torch.zeros(index % 2 + 1)


class OfTwoKinds(Ten):
    def __getitem__(self, index: int):
        return torch.tensor(index) if index % 2 else "text"


class Nothing(Ten):
    def __getitem__(self, index: int):
        return None


CASES = {
    "a length that raises": lambda: Length(ValueError("no length today")),
    "a length that raises later": lambda: Length(ValueError("no length any more"), calls=3),
    "a length that is a text": lambda: Length("10"),
    "a length that is a float": lambda: Length(10.0),
    "a negative length": lambda: Length(-1),
    "a length of nothing": lambda: Length(None),
    "a length beyond all integers of C": lambda: Length(1 << 63),
    "no length": NoLength,
    "a state that raises": lambda: StateRaises(ValueError("no state")),
    "a state that exits": lambda: StateRaises(SystemExit(3)),
    "a pickle that raises": lambda: ReduceRaises(ValueError("no pickle")),
    "a pickle that recurses": lambda: ReduceRaises(RecursionError("too deep")),
    "a pickle of nonsense": ReducesToNonsense,
    "prints": Prints,
    "starts threads": StartsThreads,
    "raises StopIteration": lambda: Raises(StopIteration("enough")),
    "raises MemoryError": lambda: Raises(MemoryError("no room")),
    "raises NotImplementedError": lambda: Raises(NotImplementedError("later")),
    "calls itself for ever": Endless,
    "unequal shapes": Unequal,
    "samples of two kinds": OfTwoKinds,
    "samples of nothing": Nothing,
}


@functools.cache
def shown_by_torch(case: str) -> list:
    return seen(TorchLoader, CASES[case]())


@pytest.mark.parametrize("case", CASES)
def test_the_loop_sees_what_torch_shows_it(served, case):
    assert seen(DataLoader, CASES[case]()) == shown_by_torch(case)
    assert seen(DataLoader, Ten()) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


class Forwarding:
    """Whatever it lacks the data set in it has. Its copy, which has nothing yet, looks for that one in itself for ever."""

    def __init__(self, inner: Dataset) -> None:
        self.inner = inner

    def __getattr__(self, name: str):
        return getattr(self.inner, name)


class Forwarded(Forwarding, Dataset):
    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int):
        return self.inner[index]


class ForwardedStream(Forwarding, IterableDataset):
    def __iter__(self):
        return iter(self.inner)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(get_worker_info().id, 10, 2))


class SetUp:
    """What may do more than seed."""

    def __call__(self, worker_id: int) -> None:
        os.environ["SET_UP"] = str(worker_id)


UNREADABLE = {
    "fails": (Unloadable(ValueError("not again")), {}),
    "exits": (Unloadable(SystemExit(3)), {}),
    "forwards": (Forwarded(Ten()), {}),
    "forwards, persistent": (Forwarded(Ten()), {"persistent_workers": True}),
    "forwards, virtual workers": (Forwarded(Ten()), {"worker_init_fn": SetUp()}),
    "forwards, persistent virtual workers": (Forwarded(Ten()), {"worker_init_fn": SetUp(), "persistent_workers": True}),
    "forwards, iterable": (ForwardedStream(Stream()), {}),
}


@pytest.mark.parametrize("steps_aside", ["on", "off"])
@pytest.mark.parametrize("case", UNREADABLE)
def test_what_can_be_pickled_and_not_unpickled_is_read_as_by_torch(real_feeder, monkeypatch, case, steps_aside):
    dataset, arguments = UNREADABLE[case]
    monkeypatch.setenv("SLUICE_STEP_ASIDE", steps_aside)
    running = {process.pid for process in multiprocessing.active_children()}
    loaders = [loader_class(dataset, batch_size=2, num_workers=2, **arguments) for loader_class in (TorchLoader, DataLoader)]
    for _ in range(2):
        by_torch, ours = ([batch.tolist() for batch in loader] for loader in loaders)
        assert ours == by_torch and len(ours) >= 5
    del loaders
    eventually(lambda: {process.pid for process in multiprocessing.active_children()} <= running)


class Exits(At5):
    def __init__(self, status: int) -> None:
        self.status = status

    def happen(self) -> None:
        os._exit(self.status)


class Killed(At5):
    """As the kernel does it to a process for which there is no memory."""

    def happen(self) -> None:
        assert os.getpid() != TRAINER
        os.kill(os.getpid(), signal.SIGKILL)


DEATHS = {
    "exits": (Exits(7), "exited with code 7"),
    "exits as if all were well": (Exits(0), "exited with code 0"),
    "killed": (Killed(), "killed by signal 9"),
}


@pytest.mark.parametrize("case", DEATHS)
def test_a_sample_that_ends_its_process_is_told(real_feeder, case):
    dataset, said = DEATHS[case]
    got = seen(DataLoader, dataset)
    assert got[:2] == [[0, 1], [2, 3]]
    assert got[2][0] is RuntimeError and said in got[2][1]  # torch: it exited unexpectedly
    assert got[3:] == [[6, 7], [8, 9]]
    assert seen(DataLoader, Ten()) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


@pytest.mark.parametrize("case", ["exits", "killed"])
def test_with_a_timeout_no_batch_is_made_where_it_could_end_the_trainer(real_feeder, monkeypatch, case):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    got = seen(DataLoader, DEATHS[case][0], timeout=60)
    assert any(type(entry) is tuple and entry[0] is RuntimeError and "DataLoader worker" in entry[1] for entry in got)
    assert seen(DataLoader, Ten()) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


class Hangs(At5):
    def happen(self) -> None:
        time.sleep(10_000)


@pytest.mark.parametrize("steps_aside", ["on", "off"])
def test_a_sample_that_hangs_ends_with_torchs_error_after_the_timeout(real_feeder, monkeypatch, steps_aside):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", steps_aside)
    list(DataLoader(Ten(), batch_size=2, num_workers=2))  # The start of an executor takes longer than the timeout.
    got = seen(DataLoader, Hangs(), timeout=3)
    assert got[:3] == [[0, 1], [2, 3], (RuntimeError, "DataLoader timed out after 3 seconds")]
    assert seen(DataLoader, Ten()) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
