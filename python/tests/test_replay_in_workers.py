"""Map-style data whose batches torch's own workers make: how far the loop has come, and how it goes on."""

from __future__ import annotations

import json

import pytest
import torch

from sample_datasets import Numbers, Reads, own_state
from sluice.loader.checkpoint import StateError
from sluice.torch import DataLoader
from test_replay import plain


@pytest.mark.parametrize("workers", [(0, 2), (2, 0)])
def test_map_style_data_resumes_with_and_without_workers(make_fake, workers):
    make_fake()
    before, after = (DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=number) for number in workers)
    batches = iter(before)
    for _ in range(3):
        next(batches)
    after.load_state_dict(before.state_dict())
    assert plain(batches, False) == plain(after, False)


@pytest.mark.parametrize("workers", [(2, 3), (3, 1), (1, 0)])
def test_map_style_data_resumes_with_another_number_of_torchs_workers(workers):
    before, after = (DataLoader(Numbers(41), batch_size=4, shuffle=True, num_workers=number) for number in workers)
    batches = iter(before)
    for _ in range(3):
        next(batches)
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    assert plain(batches, False) == plain(after, False)


def test_another_number_of_workers_is_refused_where_each_keeps_a_state():
    loader = DataLoader(Reads(41), num_workers=2, worker_init_fn=own_state)
    next(iter(loader))
    other = DataLoader(Reads(41), num_workers=1, worker_init_fn=own_state)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match="2 virtual workers, this loader has 1"):
        iter(other)


def test_persistent_workers_with_map_style_data_go_back_and_go_on():
    loader = DataLoader(Numbers(21), batch_size=4, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    expected = plain(batches, False)
    assert len(list(loader)) == 6
    loader.load_state_dict(state)
    assert plain(loader, False) == expected
    assert len(list(loader)) == 6 and loader.state_dict()["batches"] == 0


@pytest.mark.parametrize("consumed", [None, 0, 3], ids=["between epochs", "at the start", "in the middle"])
@pytest.mark.parametrize("own_generator", [False, True])
def test_a_later_epoch_of_persistent_workers_resumes_in_its_order(consumed, own_generator):
    """torch draws a seed for new workers only. A resumed epoch has new ones, and its sampler drew other numbers."""

    def make():
        generator = torch.Generator().manual_seed(3) if own_generator else None
        return DataLoader(Numbers(41), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True, generator=generator)

    loader = make()
    list(loader)
    batches = loader if consumed is None else iter(loader)
    for _ in range(consumed or 0):
        next(batches)
    state = json.loads(json.dumps(loader.state_dict()))
    expected = plain(batches, False)
    resumed = make()
    resumed.load_state_dict(state)
    again = iter(resumed)
    first = next(again)
    state = json.loads(json.dumps(resumed.state_dict()))
    assert plain([first, *again], False) == expected
    once_more = make()
    once_more.load_state_dict(state)
    assert plain(once_more, False) == expected[1:]


@pytest.mark.parametrize("workers", [0, 1])
def test_an_exception_counts_as_a_batch_of_map_style_data(workers):
    loader = DataLoader([1, None, 3], batch_size=1, num_workers=workers)
    batches = iter(loader)
    next(batches)
    with pytest.raises(TypeError):
        next(batches)
    state = loader.state_dict()
    assert state["batches"] == 2
    assert [batch.tolist() for batch in batches] == [[3]]
    loader.load_state_dict(state)
    assert [batch.tolist() for batch in loader] == [[3]]


class Failing(Reads):
    def __getitem__(self, index):
        if index == 1:
            raise ValueError("sample 1")
        return super().__getitem__(index)


def test_an_exception_that_the_loop_has_had_is_not_raised_again_by_workers_with_state():
    loader = DataLoader(Failing(8), batch_size=1, num_workers=2, worker_init_fn=own_state)
    batches = iter(loader)
    next(batches)
    with pytest.raises(ValueError, match="sample 1"):
        next(batches)
    state = loader.state_dict()
    expected = plain(batches, True)
    loader.load_state_dict(state)
    assert plain(loader, True) == expected and len(expected) == 6


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_goes_over_the_switch_that_turns_sluice_off(make_fake, monkeypatch, workers):
    make_fake()
    loader = DataLoader(Numbers(41), batch_size=4, shuffle=True, num_workers=workers)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    expected = plain(batches, False)
    monkeypatch.setenv("SLUICE", "off")
    loader = DataLoader(Numbers(41), batch_size=4, shuffle=True, num_workers=workers)
    loader.load_state_dict(state)
    batches = iter(loader)
    assert next(batches) is not None
    state = loader.state_dict()
    assert plain(batches, False) == expected[1:]
    monkeypatch.setenv("SLUICE", "on")
    loader.load_state_dict(state)
    assert plain(loader, False) == expected[1:]
