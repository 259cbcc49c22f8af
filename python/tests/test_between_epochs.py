"""A state made between two epochs: the next one has the order that it would have had."""

from __future__ import annotations

import json

import pytest
import torch

from sample_datasets import Numbers
from sluice.loader.checkpoint import StateError
from sluice.torch import DataLoader
from test_replay import plain

BETWEEN_EPOCHS = {
    "here": dict(),
    "in executors": dict(num_workers=2),
    "in executors, persistent": dict(num_workers=2, persistent_workers=True),
}


def begun_again(state, arguments, seed, drawn):
    """A loader of another run that has drawn so many numbers already."""
    torch.manual_seed(seed)
    torch.rand(drawn)
    loader = DataLoader(Numbers(), **arguments)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    return loader


@pytest.mark.parametrize("case", BETWEEN_EPOCHS)
@pytest.mark.parametrize("epochs", [0, 1])
def test_an_epoch_that_had_not_begun_has_the_order_that_it_would_have_had(make_fake, epochs, case):
    make_fake()
    arguments = dict(batch_size=4, shuffle=True, **BETWEEN_EPOCHS[case])
    with_draws = case != "here"  # There numbers come from the process's own generators.
    torch.manual_seed(5)
    loader = DataLoader(Numbers(), **arguments)
    for _ in range(epochs):
        list(loader)
    state, between = json.loads(json.dumps(loader.state_dict())), torch.get_rng_state()
    expected = [plain(loader, with_draws), plain(loader, with_draws)]

    after_other_draws = begun_again(state, arguments, seed=5, drawn=3)
    before = torch.get_rng_state()
    assert plain(after_other_draws, with_draws) == expected[0]
    assert torch.equal(torch.get_rng_state(), before) or case == "here"

    with_the_generator_put_back = begun_again(state, arguments, seed=5, drawn=3)
    torch.set_rng_state(between)
    assert [plain(with_the_generator_put_back, with_draws), plain(with_the_generator_put_back, with_draws)] == expected


@pytest.mark.parametrize("case", BETWEEN_EPOCHS)
def test_a_script_that_seeds_each_epoch_is_obeyed(make_fake, case):
    make_fake()
    arguments = dict(batch_size=4, shuffle=True, **BETWEEN_EPOCHS[case])
    torch.manual_seed(5)
    loader = DataLoader(Numbers(), **arguments)
    list(loader)
    state = loader.state_dict()
    torch.manual_seed(6)
    expected = plain(loader, False)
    assert plain(begun_again(state, arguments, seed=6, drawn=0), False) == expected


def test_a_damaged_generator_between_epochs_is_refused():
    loader = DataLoader(Numbers(), shuffle=True)
    state = loader.state_dict()
    state["generators"]["torch"] = "AAAA"
    loader.load_state_dict(state)
    with pytest.raises(StateError, match="generators cannot be read"):
        iter(loader)


def test_persistent_executors_go_back_to_a_state_before_their_first_epoch(make_fake):
    make_fake()
    loader = DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    state = loader.state_dict()
    expected = plain(loader, True)
    next(iter(loader))
    loader.load_state_dict(state)
    assert plain(loader, True) == expected
