"""Iterators that no loop has any more: their workers end at once, in whichever thread the collector finds them."""

from __future__ import annotations

import contextlib
import gc
import signal
import weakref

import pytest

from conftest import eventually
from sample_datasets import Failing, Numbers
from test_forks import children, loader_with_forks


@pytest.fixture(autouse=True)
def no_collector(clean_slate, make_fake, monkeypatch):
    """It runs where a test says so."""
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_AHEAD", "off")
    make_fake()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("is_in_a_cycle", [False, True])
def test_workers_of_a_half_read_iterator_end(is_in_a_cycle):
    holder = {"batches": iter(loader_with_forks(Numbers(400)))}
    next(holder["batches"])
    workers = holder["batches"]._forks._batches._workers
    assert children() >= {worker.pid for worker in workers}
    if is_in_a_cycle:
        holder["itself"] = holder
    del holder
    gc.collect()
    # In a cycle their queues are closed already. Told by torch, they would not hear of it, and be terminated after 5 s each.
    eventually(lambda: [worker.exitcode for worker in workers] == [-signal.SIGKILL if is_in_a_cycle else 0] * len(workers))


def test_what_a_sample_raises_does_not_keep_the_iterator():
    batches = iter(loader_with_forks(Failing(ValueError("five"))))
    known = weakref.ref(batches)
    with contextlib.suppress(ValueError):
        list(batches)
    del batches
    assert known() is None
