"""Loops outside of the main thread: this process makes no batch for them, as the random states that it puts aside are the main thread's, too."""

from __future__ import annotations


import pytest
import torch

import sluice.makers.payback
import sluice.torch
from sluice.loader.pipeline import Pipeline
from sluice.makers.forks import Batches
from test_forks import in_another_thread
from test_loader import equal, indices_of
from test_stepping_aside import loader_that, made_by_executors


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_AHEAD", "off")  # Requests are counted here.
    for name in ("START_SECONDS", "WARM_START_SECONDS"):  # Executors never pay, however slow this machine is.
        monkeypatch.setattr(sluice.makers.payback, name, 1e9)


@pytest.mark.parametrize("taken", [list, in_another_thread])
def test_executors_are_started_at_once_where_nothing_can_be_forked(make_fake, monkeypatch, taken):
    fake = make_fake()
    monkeypatch.setattr(sluice.torch, "can_fork", lambda: False)
    assert indices_of(taken(loader_that(pays=False, forks_at_once=True, timeout=60)))[-1] == [36]
    assert len(fake.ask()["requests"]) == 10


@pytest.mark.parametrize("first_batches", [None, 0, 3])
def test_forks_make_what_another_thread_gets(make_fake, monkeypatch, first_batches):
    """`first_batches`: so many the main thread gets before; None: it has not made the iterator either."""
    fake = make_fake()
    expected = made_by_executors()[:10]
    before = len(fake.ask()["requests"])
    batches = loader_that(pays=False)
    if first_batches is not None:
        batches = iter(batches)
        assert equal(expected[:first_batches], [next(batches) for _ in range(first_batches)])
    monkeypatch.setattr(Pipeline, "make_here", None)
    assert equal(expected[first_batches or 0:], in_another_thread(batches))
    assert len(fake.ask()["requests"]) == before


def test_the_main_thread_draws_on_meanwhile(make_fake, monkeypatch):
    make_fake()
    start = Batches.__init__

    def while_it_draws(self, computation, slots) -> None:
        torch.rand(1)
        start(self, computation, slots)

    monkeypatch.setattr(Batches, "__init__", while_it_draws)
    loader = loader_that(pays=False)
    in_another_thread(loader)
    drawn = torch.rand(1)
    torch.manual_seed(21)  # As `loader_that` does. Then the base seed is drawn.
    torch.empty((), dtype=torch.int64).random_(), torch.rand(1)
    assert drawn == torch.rand(1)
