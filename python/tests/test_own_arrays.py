"""Dataset classes of users over images in memory run natively, with the bytes of their own code."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate
from torchvision.transforms import ToTensor

from array_classes import ARRAYS, COUNT, OTHERS, Base, noise
from sluice.lowering.native_pipeline import lower
from sluice.shipping.failures import NotNative
from test_own_files import alike, epochs_of, loader_of, native_of

TENSOR = ToTensor()


@pytest.mark.parametrize("name", ARRAYS)
def test_a_class_gives_the_same_batches_natively(any_feeder, monkeypatch, tmp_path, name):
    dataset = ARRAYS[name](tmp_path)
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))
    part = Subset(dataset, [9, 3, 4, 11, 0])
    assert alike(epochs_of(part, monkeypatch), epochs_of(part, monkeypatch, "off"))


def test_the_batches_are_torchs_own(any_feeder):
    dataset = Base(noise(18, 20, 3), TENSOR)
    assert native_of(dataset) is not None
    assert alike(list(loader_of(dataset)), list(torch.utils.data.DataLoader(dataset, batch_size=5)))


def test_what_a_program_changes_in_place_shows_in_the_next_epoch(any_feeder):
    dataset = Base(noise(18, 20, 3), TENSOR)
    loader = loader_of(dataset, batch_size=COUNT)
    first = next(iter(loader))
    dataset.images[3] = 255
    dataset.labels[4] = 99
    images, labels = next(iter(loader))
    assert torch.equal(images[3], torch.ones(3, 18, 20)) and labels[4] == 99
    assert torch.equal(images[5], first[0][5])


@pytest.mark.parametrize("name", OTHERS)
def test_other_arrays_stay_python(name):
    make, reason = OTHERS[name]
    with pytest.raises(NotNative) as refused:
        lower(make(), default_collate, True)
    assert reason in str(refused.value)


def test_keys_that_the_array_has_not_are_the_classs_own_affair(any_feeder):
    dataset = Base(noise(18, 20, 3))
    dataset.images = dataset.images[:-1]
    with pytest.raises(NotNative, match="IndexError"):
        lower(dataset, default_collate, True)
    with pytest.raises(IndexError):
        list(loader_of(dataset))


def test_an_array_is_not_copied_to_be_looked_at():
    """A gigabyte would take a second in each epoch."""
    images = noise(18, 20, 3)
    assert numpy.shares_memory(lower(Base(images), default_collate, True).files.parts[1], images)

