"""The order of native operations: what the specification says of it, and what `explain` tells."""

from __future__ import annotations

import json
import pickle

import pytest
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder

from sluice import keep_position
from sluice.base.settings import EXACT, PROGRAM, RELAXED, SettingError, Settings
from sluice.explain.ordering import order_in_words
from sluice.loader.pipeline import describe_loader
from sluice.makers.measured import Cost, Work

CROP, TENSOR = transforms.RandomResizedCrop(16), transforms.ToTensor()


def specification(root, order: str, *steps) -> dict:
    loader = DataLoader(ImageFolder(root, transforms.Compose([*steps, CROP, TENSOR])))
    native = describe_loader(loader, lowering=True, order=order).native
    assert native is not None and native.order == order
    return json.loads(native.header)


def kept_ops(specification: dict) -> list[str]:
    return [op["op"] for op in specification["ops"] if op.get("keep_position")]


@pytest.mark.parametrize(("order", "told"), [(EXACT, None), (PROGRAM, "program"), (RELAXED, "relaxed")])
def test_executors_are_told_an_order_that_is_not_the_usual_one(image_root, order, told):
    assert specification(image_root, order).get("order") == told


def test_a_transform_keeps_its_position_where_positions_matter(image_root):
    jitter = pickle.loads(pickle.dumps(keep_position(transforms.ColorJitter(0.4))))
    assert kept_ops(specification(image_root, RELAXED, jitter, transforms.ColorJitter(hue=0.1))) == ["color_jitter"]
    assert kept_ops(specification(image_root, EXACT, jitter)) == [] == kept_ops(specification(image_root, PROGRAM, jitter))


def test_one_that_is_applied_at_random_keeps_the_position_of_all_that_are(image_root):
    apply = transforms.RandomApply([transforms.ColorJitter(0.4), keep_position(transforms.RandomGrayscale())])
    told = specification(image_root, RELAXED, apply)
    assert kept_ops(told) == ["random_apply"] and all("keep_position" not in op for op in told["ops"][1]["ops"])


def test_the_setting():
    assert Settings.from_environment({}).order == EXACT and Settings.from_environment({"SLUICE_ORDER": "relaxed"}).order == RELAXED
    with pytest.raises(SettingError, match="use exact or program or relaxed"):
        Settings.from_environment({"SLUICE_ORDER": "any"})


WORK = Work(1, 2, ops={"read": Cost(1.0, 4096), "color_jitter": Cost(1.0, 2048), "color_jitter spared": Cost(0.0, 6144), "grayscale": Cost(1.0, 2048)})


def test_what_waited_is_told_with_what_it_was_spared():
    lines = order_in_words(EXACT, WORK)
    assert lines == ["order (exact: the same bytes as in the program's order)", "  color_jitter waited behind later crops or resizes: 1.0 KiB of a sample, not 4.0"]
    assert "compare the accuracy" in order_in_words(RELAXED, WORK)[0]


def test_nothing_is_told_where_nothing_waited_unless_other_pixels_may_come_of_it():
    plain = Work(1, 2, ops={"read": Cost(1.0, 4096)})
    assert order_in_words(EXACT, plain) == [] == order_in_words(EXACT, None)
    assert len(order_in_words(RELAXED, plain)) == 1
    assert order_in_words(PROGRAM, WORK) == ["order: that of the program, as SLUICE_ORDER=program says"]
