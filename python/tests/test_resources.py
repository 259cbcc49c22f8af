"""A process that makes many iterators, and leaves them in all ways, holds no more than one that has left each way a few times."""

from __future__ import annotations

import gc
import os

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from sample_datasets import Failing, Numbers
from sluice.torch import DataLoader
from test_memory import process_tree

# A leak at one iterator of fifty shows. `make soak-client` makes very many.
ITERATORS = {"left early": 150, "finished": 100, "failed": 60, "interrupted": 45, "forked": 5}
WARM_UP = 3


class Interrupting:
    """A sampler of one batch, and then Ctrl-C."""

    def __iter__(self):
        yield from range(4)
        raise KeyboardInterrupt


def loader_of(dataset, **arguments) -> DataLoader:
    return DataLoader(dataset, batch_size=4, num_workers=1, **arguments)


def leave_early() -> None:
    next(iter(loader_of(Numbers())))


def finish() -> None:
    assert len(list(loader_of(Numbers(8)))) == 2


def fail() -> None:
    with pytest.raises(ValueError, match="five"):
        list(loader_of(Failing(ValueError("five"))))


def interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(loader_of(Numbers(), sampler=Interrupting()))


def fork() -> None:
    """With an iterator that lives: the child must not touch what is its parent's."""
    batches = iter(loader_of(Numbers()))
    next(batches)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            finish()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    next(batches)


WAYS = {"left early": leave_early, "finished": finish, "failed": fail, "interrupted": interrupt, "forked": fork}


def processes_below(pid: int) -> int:
    """Some may vanish while they are counted."""
    while True:
        try:
            return len(process_tree(pid))
        except (FileNotFoundError, ProcessLookupError):
            continue


def held(feeder: RealFeeder) -> dict[str, int]:
    """By this process, and by the feeder, which is one below it."""
    return {
        "processes": processes_below(os.getpid()),
        "threads": len(os.listdir("/proc/self/task")),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "the feeder's threads": len(os.listdir(f"/proc/{feeder.pid}/task")),
        "the feeder's descriptors": len(os.listdir(f"/proc/{feeder.pid}/fd")),
    }


def most_held_in_warm_up(feeder: RealFeeder) -> dict[str, int]:
    most: dict[str, int] = {}
    for way in WAYS.values():
        for _ in range(WARM_UP):
            way()
            most = {name: max(count, most.get(name, 0)) for name, count in held(feeder).items()}
    return most


def excess(before: dict[str, int], feeder: RealFeeder) -> dict[str, int]:
    gc.collect()
    return {name: count - before[name] for name, count in held(feeder).items() if count > before[name]}


@pytest.mark.parametrize("step_aside", ["off", "on"])
def test_iterators_leave_nothing_behind(tmp_path, monkeypatch, step_aside):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    monkeypatch.setenv("SLUICE_STEP_ASIDE", step_aside)
    feeder = RealFeeder(tmp_path, threads=1)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    try:
        before = most_held_in_warm_up(feeder)
        for name, times in ITERATORS.items():
            for _ in range(times):
                WAYS[name]()
        eventually(lambda: not excess(before, feeder), 120)
    finally:
        feeder.stop()
