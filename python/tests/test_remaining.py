"""What the client reports of the samples that its training still has to take: the user's word, or a framework's."""

from __future__ import annotations

import types

import pytest
import torch

from conftest import eventually
from sample_datasets import Numbers
from sluice.loader import frameworks, remaining
from sluice.torch import DataLoader


@pytest.fixture(autouse=True)
def nothing_told():
    remaining.tell(None)
    yield
    remaining.tell(None)


def loader_of(**arguments) -> DataLoader:
    return DataLoader(Numbers(), batch_size=4, num_workers=2, **arguments)  # 37 samples in 10 batches.


def take(loader, batches: int | None = None) -> list[int | None]:
    """What is told after each batch of an epoch, or of its first batches."""
    told = []
    for _ in loader:
        told.append(remaining.samples())
        if len(told) == batches:
            break
    return told


def test_announced_epochs_are_counted_down_with_every_batch(make_fake):
    make_fake()
    loader = loader_of()
    loader.announce(epochs=2)
    assert take(loader) == [4 * left for left in range(19, 9, -1)]
    assert take(loader) == [4 * left for left in range(9, -1, -1)]


def test_announced_batches_are_counted_down_over_epochs(make_fake):
    make_fake()
    loader = loader_of()
    loader.announce(batches=13)
    assert take(loader)[-1] == 4 * 3
    assert take(loader, 3) == [8, 4, 0]


def test_an_epoch_that_ends_early_leaves_the_later_ones_whole(make_fake):
    make_fake()
    loader = loader_of()
    loader.announce(epochs=3)
    assert take(loader, 2)[-1] == 4 * 28
    assert take(loader, 1) == [4 * 19]


@pytest.mark.parametrize("announced, epochs", [({"epochs": 1}, 2), ({"batches": 3}, 1)])
def test_who_goes_on_after_the_announced_end_was_wrong_and_nothing_is_known(make_fake, announced, epochs):
    make_fake()
    loader = loader_of()
    loader.announce(**announced)
    for _ in range(epochs):
        told = take(loader)
    assert told[-1] is None
    iter(loader)
    assert remaining.samples() is None


def test_a_resumed_epoch_counts_what_is_left_of_it(make_fake):
    make_fake()
    state_of = loader_of()
    batches = iter(state_of)
    for _ in range(6):
        next(batches)
    loader = loader_of()
    loader.load_state_dict(state_of.state_dict())
    loader.announce(epochs=2)
    assert take(loader) == [4 * left for left in range(13, 9, -1)]


def test_other_loaders_do_not_count(make_fake):
    make_fake()
    loader, evaluation = loader_of(), loader_of()
    loader.announce(epochs=2)
    take(loader)
    assert take(evaluation) == [40] * 10


@pytest.mark.parametrize("wrong", [{}, {"epochs": 1, "batches": 1}, {"epochs": 0}, {"batches": -3}])
def test_an_announcement_is_one_number_from_1(wrong):
    with pytest.raises(ValueError, match="either epochs or batches"):
        loader_of().announce(**wrong)


def test_of_a_loader_without_a_length_only_batches_can_be_announced(make_fake):
    make_fake()

    class Unsized(torch.utils.data.Sampler):
        def __iter__(self):
            yield from range(37)

    loader = loader_of(sampler=Unsized())
    with pytest.raises(TypeError):
        loader.announce(epochs=2)
    loader.announce(batches=20)
    assert take(loader)[-1] == 4 * 10


def test_reports_tell_what_remains_only_where_it_is_known(make_fake):
    fake = make_fake()
    loader = loader_of()
    take(loader)
    eventually(lambda: len(fake.ask()["closed"]) == 1)
    assert "remaining_samples" not in fake.ask()["progress"][fake.ask()["closed"][0]]
    loader.announce(epochs=3)
    take(loader)
    eventually(lambda: len(fake.ask()["closed"]) == 2)
    assert fake.ask()["progress"][fake.ask()["closed"][1]]["remaining_samples"] == 80


# The shapes below are those of Hugging Face's transformers 5.23 and Lightning 2.6.


def transformers_module(monkeypatch):
    calls = []

    class CallbackHandler:
        def on_step_begin(self, args, state, control, **others):
            calls.append((args, state, control, others))
            return "control"

    module = types.SimpleNamespace(CallbackHandler=CallbackHandler)
    monkeypatch.setitem(frameworks.sys.modules, "transformers.trainer_callback", module)
    return CallbackHandler, calls


ARGUMENTS = types.SimpleNamespace(gradient_accumulation_steps=2, train_batch_size=16)


@pytest.mark.parametrize("state, arguments, want", [
    ({"max_steps": 5, "global_step": 0}, ARGUMENTS, 160),
    ({"max_steps": 5, "global_step": 4}, ARGUMENTS, 32),
    ({"max_steps": 5, "global_step": 6}, ARGUMENTS, None),
    ({"max_steps": 0, "global_step": 0}, ARGUMENTS, None),
    ({"max_steps": None, "global_step": 0}, ARGUMENTS, None),
    ({"max_steps": 5, "global_step": 0}, types.SimpleNamespace(), None),
])
def test_hugging_face_tells_with_every_step_and_notices_nothing(monkeypatch, make_fake, state, arguments, want):
    make_fake()
    handler_class, calls = transformers_module(monkeypatch)
    handler = handler_class()  # Made before there is an iterator, as a trainer makes it.
    for _ in range(2):
        take(loader_of())
    state = types.SimpleNamespace(**state)
    assert handler.on_step_begin(arguments, state, "c", model="m") == "control"
    assert calls == [(arguments, state, "c", {"model": "m"})]
    assert remaining.samples() == want


def test_a_trainer_class_is_followed_once(monkeypatch):
    handler_class, _ = transformers_module(monkeypatch)
    frameworks.follow_transformers()
    followed = handler_class.on_step_begin
    frameworks.follow_transformers()
    assert handler_class.on_step_begin is followed


def test_nothing_is_imported_that_the_script_has_not_imported(make_fake):
    make_fake()
    take(loader_of())
    assert not {"transformers", "lightning", "pytorch_lightning"} & set(frameworks.sys.modules)


class LightningTrainer:
    """As a trainer is in the middle of its second epoch of ten batches."""

    def __init__(self, **changed) -> None:
        self.max_epochs, self.current_epoch, self.num_training_batches = 3, 1, 10
        self.max_steps, self.global_step, self.accumulate_grad_batches = -1, 14, 1
        self.train_dataloader = types.SimpleNamespace(batch_size=16)
        vars(self).update(changed)


@pytest.mark.parametrize("changed, want", [
    ({}, (2 * 10 - 4) * 16),
    ({"max_steps": 20}, 6 * 16),
    ({"max_steps": 9, "global_step": 7, "accumulate_grad_batches": 2}, 2 * 2 * 16),
    ({"max_steps": 1000}, (2 * 10 - 4) * 16),
    ({"max_epochs": -1}, None),
    ({"max_epochs": None, "max_steps": 20}, 6 * 16),
    ({"num_training_batches": float("inf")}, None),
    ({"train_dataloader": [1, 2]}, None),
    ({"train_dataloader": types.SimpleNamespace(batch_size=None)}, None),
])
@pytest.mark.parametrize("package, callbacks", [("lightning.pytorch", frameworks.lightning_callbacks),
                                                ("pytorch_lightning", frameworks.pytorch_lightning_callbacks)])
def test_lightning_tells_with_every_batch(monkeypatch, package, callbacks, changed, want):
    class Callback:
        pass

    monkeypatch.setitem(frameworks.sys.modules, package, types.SimpleNamespace(Callback=Callback))
    [callback] = callbacks()
    assert isinstance(callback, Callback)
    callback.on_train_batch_start(LightningTrainer(**changed), "module", "batch", 4)
    assert remaining.samples() == want


def test_lightning_finds_the_callbacks_by_the_entry_points_of_the_package():
    from configparser import ConfigParser
    from importlib import import_module
    from pathlib import Path

    points = ConfigParser()
    points.read(Path(__file__).parents[1] / "entry_points.txt")
    sections = [section for section in points.sections() if section.endswith("callbacks_factory")]
    assert sections == ["lightning.pytorch.callbacks_factory", "pytorch_lightning.callbacks_factory"]
    for section, function in zip(sections, (frameworks.lightning_callbacks, frameworks.pytorch_lightning_callbacks), strict=True):
        module, _, name = points[section]["sluice"].partition(":")
        assert getattr(import_module(module), name) is function
