"""torchvision's data sets that hold their images in memory, made natively."""

from __future__ import annotations

import numpy
import pytest
import torch
import torch.utils.data
from torch.utils.data import Subset
from torchvision import datasets, transforms
from torchvision.transforms import v2

from conftest import eventually
from memory_datasets import ALL, COLOURED, COUNT, GREY
from sample_datasets import first_only
from sluice.loader.pipeline import describe_loader
from sluice.lowering import pixel_table
from sluice.lowering.pixel_table import PixelTable
from sluice.torch import DataLoader
from test_loader import equal

TO_TENSOR = transforms.ToTensor()
PLAIN = transforms.Compose([TO_TENSOR, transforms.Normalize((0.1307,), (0.3081,))])
TRAINING = transforms.Compose([transforms.RandomCrop(16, padding=4), transforms.RandomHorizontalFlip(), TO_TENSOR, transforms.Normalize((0.5,), (0.25,))])


def batches_of(dataset, epochs=1, **arguments):
    loader = DataLoader(dataset, **{"batch_size": 5, "num_workers": 2, **arguments})
    torch.manual_seed(17)
    return [[tensor.clone() for tensor in batch] for _ in range(epochs) for batch in loader]


def in_python(dataset, monkeypatch, **arguments):
    monkeypatch.setenv("SLUICE_LOWERING", "off")
    batches = batches_of(dataset, **arguments)
    monkeypatch.setenv("SLUICE_LOWERING", "on")
    return batches


def by_torch(dataset, **arguments):
    torch.manual_seed(17)
    return list(torch.utils.data.DataLoader(dataset, **{"batch_size": 5, **arguments}))


def native_of(dataset, **arguments):
    return describe_loader(DataLoader(dataset, **{"batch_size": 5, "num_workers": 2, **arguments}), lowering=True).native


def explained(dataset) -> str:
    return str(DataLoader(dataset, batch_size=5, num_workers=2).explain())


@pytest.mark.parametrize("name", ALL)
def test_the_batches_are_torchs_own(any_feeder, tmp_path, name):
    dataset = ALL[name](tmp_path, PLAIN)
    assert equal(batches_of(dataset), by_torch(dataset))
    assert native_of(dataset) is not None


@pytest.mark.parametrize("name", ALL)
def test_random_operations_draw_as_in_python(any_feeder, tmp_path, monkeypatch, name):
    dataset = ALL[name](tmp_path, TRAINING)
    assert native_of(dataset) is not None
    options = dict(epochs=2, shuffle=True, drop_last=True)
    assert equal(batches_of(dataset, **options), in_python(dataset, monkeypatch, **options))


@pytest.mark.parametrize("name", ["CIFAR10", "MNIST"])
def test_one_transform_needs_no_compose_and_bytes_stay_bytes(any_feeder, tmp_path, name):
    for transform in (TO_TENSOR, transforms.PILToTensor()):
        dataset = ALL[name](tmp_path, transform)
        assert native_of(dataset).images[0].dtype is (torch.float32 if transform is TO_TENSOR else torch.uint8)
        assert equal(batches_of(dataset), by_torch(dataset))


@pytest.mark.parametrize("name", ["CIFAR10", "SVHN", "MNIST", "USPS"])
def test_subsets_and_workers_that_persist(any_feeder, tmp_path, name):
    dataset = ALL[name](tmp_path, PLAIN)
    for part in (Subset(dataset, [7, 3, -1, 22, 3]), Subset(Subset(dataset, list(range(20))), [19, 0, -2]), Subset(dataset, range(4, 15))):
        assert native_of(part).samples == len(part)
        assert equal(batches_of(part, epochs=2, batch_size=2, persistent_workers=True), by_torch(part, batch_size=2) * 2)


def test_images_that_lie_otherwise_in_memory(any_feeder, tmp_path):
    for data in (lambda data: numpy.ascontiguousarray(data), lambda data: data[::2], lambda data: data[:, ::-1], lambda data: data[:, :, :20]):
        dataset = ALL["CIFAR10"](tmp_path, PLAIN)
        dataset.data = data(dataset.data)
        assert native_of(dataset).samples == len(dataset)
        assert equal(batches_of(dataset), by_torch(dataset))


LABELS = {
    "an array": numpy.arange(COUNT),
    "a tensor": torch.arange(COUNT),
    "more than there are images": list(range(COUNT + 9)),
    "large": [2**62 + number for number in range(COUNT)],
}


@pytest.mark.parametrize("case", LABELS)
def test_labels_as_programs_replace_them(any_feeder, tmp_path, case):
    for name in ("CIFAR10", "MNIST"):
        dataset = ALL[name](tmp_path, PLAIN)
        dataset.targets = LABELS[case]
        assert native_of(dataset) is not None
        assert equal(batches_of(dataset), by_torch(dataset))


@pytest.mark.parametrize("name", ["CIFAR10", "MNIST", "SVHN"])
def test_what_a_program_changes_in_place_shows_in_the_next_epoch(any_feeder, tmp_path, name):
    for part in (lambda dataset: dataset, lambda dataset: Subset(dataset, [20, 3, 7, 8, 1, 0])):
        dataset = ALL[name](tmp_path, PLAIN)
        labels = dataset.labels if name == "SVHN" else dataset.targets
        loader = DataLoader(part(dataset), batch_size=5, num_workers=2)
        for change in ("nothing", "a pixel", "a label", "nothing", "all pixels"):
            if change == "a pixel":
                dataset.data[7, 2, 5] = 255 - dataset.data[7, 2, 5]
            elif change == "a label":
                labels[3] = 9
            elif change == "all pixels":
                dataset.data = 255 - dataset.data
            assert equal([[tensor.clone() for tensor in batch] for batch in loader], by_torch(part(dataset))), change


def test_a_table_is_made_once(tmp_path, monkeypatch):
    dataset = ALL["CIFAR10"](tmp_path, TRAINING)
    loader = DataLoader(dataset, batch_size=5, num_workers=2)
    first = describe_loader(loader, lowering=True)
    assert describe_loader(loader, lowering=True, kept=first.kept).native.files is first.native.files
    dataset.data[22, 31, 31, 2] ^= 1
    second = describe_loader(loader, lowering=True, kept=first.kept)
    assert second.native.files is not first.native.files and not second.is_like(first)


def _replaced(**attributes):
    def change(dataset):
        vars(dataset).update(attributes)

    return change


REFUSED = {
    "target_transform": ("CIFAR10", _replaced(target_transform=complex), "target_transform complex"),
    "no transform": ("CIFAR10", _replaced(transform=None), "there is no transform"),
    "an own transform": ("CIFAR10", _replaced(transform=first_only), "transform 1, sample_datasets.first_only, has no native form"),
    "its own batches": ("CIFAR10", _replaced(__getitems__=first_only), "__getitems__"),
    "floats": ("CIFAR10", lambda dataset: setattr(dataset, "data", dataset.data / 255), "data is numpy.ndarray of float64, not an array of uint8"),
    "a list": ("CIFAR10", lambda dataset: setattr(dataset, "data", list(dataset.data)), "data is list, not an array"),
    "a tensor": ("CIFAR10", lambda dataset: setattr(dataset, "data", torch.from_numpy(dataset.data)), "not an array of uint8"),
    "an array": ("MNIST", lambda dataset: setattr(dataset, "data", dataset.data.numpy()), "not a tensor of uint8"),
    "another shape": ("CIFAR10", lambda dataset: setattr(dataset, "data", dataset.data[..., :1]), "data has the shape (23, 32, 32, 1)"),
    "no pixels": ("MNIST", lambda dataset: setattr(dataset, "data", dataset.data[:, :0]), "data has the shape (23, 0, 28)"),
    "few labels": ("CIFAR10", _replaced(targets=[1, 2, 3]), "3 targets for 23 images"),
    "texts": ("CIFAR10", _replaced(targets=["cat"] * COUNT), "targets are not all of the type int"),
    "flags": ("CIFAR10", _replaced(targets=[True] * COUNT), "targets are not all of the type int"),
    "no labels": ("STL10", _replaced(labels=None), "labels are NoneType, not whole numbers"),
    "large labels": ("CIFAR10", _replaced(targets=[2**63] * COUNT), "not all ints of 64 bits"),
    "labels of 32 bits": ("CIFAR10", _replaced(targets=numpy.zeros(COUNT, "i4")), "targets are numpy.ndarray of int32"),
    "labels without a sign": ("SVHN", _replaced(labels=numpy.zeros(COUNT, "u8")), "labels are numpy.ndarray of uint64"),
    "labels that are floats": ("MNIST", _replaced(targets=torch.zeros(COUNT)), "targets are torch.Tensor of torch.float32"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_left_in_python_with_the_reason(tmp_path, monkeypatch, case):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")
    name, change, reason = REFUSED[case]
    dataset = ALL[name](tmp_path, PLAIN)
    change(dataset)
    text = explained(dataset)
    assert text.startswith("executor: python") and reason in text


def test_a_method_in_the_place_of_torchvisions(tmp_path, image_root, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")
    square = transforms.Compose([transforms.CenterCrop(8), TO_TENSOR])
    for dataset, owner in ((ALL["CIFAR100"](tmp_path, PLAIN), datasets.CIFAR10), (datasets.ImageFolder(image_root, square), datasets.DatasetFolder)):
        assert explained(dataset).startswith("executor: native")
        with monkeypatch.context() as patched:
            patched.setattr(owner, "__getitem__", lambda self, index: None)
            assert f"{type(dataset).__name__}.__getitem__ is " in explained(dataset)


@pytest.mark.parametrize("selection, is_native", [(None, False), (range(7), False), (range(6), True)])
def test_more_than_a_frame_may_hold_stays_in_python(make_fake, tmp_path, monkeypatch, selection, is_native):
    make_fake()
    dataset = ALL["CIFAR10"](tmp_path, PLAIN)
    monkeypatch.setattr(pixel_table, "MOST_BLOB_BYTES", (1 << 20) + 20_000)
    part = dataset if selection is None else Subset(dataset, selection)
    assert (native_of(part) is not None) is is_native
    assert is_native or "in memory, more than a native pipeline may have (1 MiB)" in explained(part)
    assert equal(batches_of(part), by_torch(part))


def test_a_torchvision_without_this_class_is_no_obstacle(tmp_path, monkeypatch):
    dataset = ALL["MNIST"](tmp_path, PLAIN)
    monkeypatch.delattr(datasets.mnist, "MNIST")
    assert pixel_table.module_of(dataset) is None


GREY_ONLY = {
    "three means": ([TO_TENSOR, transforms.Normalize([0.5] * 3, [0.5] * 3)], "transform 2, torchvision.transforms.Normalize, has 3 channels, not 1"),
    "three values": ([TO_TENSOR, transforms.RandomErasing(value=[1, 2, 3])], "has 3 channels, not 1"),
    "a border of a colour": ([transforms.Pad(2, fill=(1, 2, 3)), TO_TENSOR], "has the fill (1, 2, 3), not a number, for grey images"),
    "a corner of a colour": ([transforms.RandomRotation(9, fill=[1, 2, 3]), TO_TENSOR], "not a number, for grey images"),
    "three channels at random": ([transforms.RandomApply([transforms.Grayscale(3)]), TO_TENSOR], "of the number of channels"),
}


@pytest.mark.parametrize("case", GREY_ONLY)
def test_what_grey_images_do_not_take(tmp_path, monkeypatch, case):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")
    steps, reason = GREY_ONLY[case]
    text = explained(GREY["MNIST"](tmp_path, transforms.Compose(steps)))
    assert text.startswith("executor: python") and reason in text


CHANNELS = {
    "grey to three": ("MNIST", [transforms.Grayscale(3), transforms.Resize(20), TO_TENSOR, transforms.Normalize([0.1, 0.2, 0.3], [0.5] * 3)], 3),
    "grey to one": ("MNIST", [transforms.Grayscale(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)], 1),
    "colour to one": ("CIFAR10", [transforms.RandomCrop(20), transforms.Grayscale(), TO_TENSOR, transforms.Normalize(0.5, 0.5)], 1),
    "there and back": ("CIFAR10", [v2.Grayscale(1), transforms.Pad(3, fill=9), transforms.Grayscale(3), transforms.PILToTensor()], 3),
    "erased": ("MNIST", [TO_TENSOR, transforms.RandomErasing(0.9, value=0.5), transforms.Normalize([0.5], [0.5])], 1),
}


@pytest.mark.parametrize("case", CHANNELS)
def test_the_number_of_channels(real_feeder, tmp_path, monkeypatch, case):
    name, steps, channels = CHANNELS[case]
    dataset = ALL[name](tmp_path, transforms.Compose(steps))
    native = native_of(dataset)
    assert native.images[0].channels == channels
    made = batches_of(dataset)
    assert equal(made, in_python(dataset, monkeypatch)) and made[0][0].shape[:2] == (5, channels)
    assert native.sample_bytes() == made[0][0][0].nbytes + 8


def test_explain_speaks_of_memory(real_feeder, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_CACHE_DIR", str(tmp_path))
    loader = DataLoader(GREY["MNIST"](tmp_path, TRAINING), batch_size=5, num_workers=2)
    list(loader)
    text = str(loader.explain())
    assert text.startswith("executor: native\n  23 grey images of 28x28 in memory -> images [n, 1, 16, 16] float32, labels [n] int64\n")
    assert "copy the pixels" in text and "read the file" not in text and "cache" not in text
    assert "  23 images of 32x32 in memory -> images [n, 3, 16, 16]" in explained(COLOURED["CIFAR10"](tmp_path, TRAINING))


@pytest.mark.parametrize("name", ["CIFAR10", "STL10", "MNIST"])
def test_data_workers_get_the_images_from_the_feeder(data_worker, tmp_path, monkeypatch, name):
    dataset = ALL[name](tmp_path, TRAINING)
    expected = in_python(dataset, monkeypatch)
    loader = DataLoader(dataset, batch_size=5, num_workers=2)

    def made_by_the_worker() -> bool:
        torch.manual_seed(17)
        loader._next_epoch = 0
        assert equal([[tensor.clone() for tensor in batch] for batch in loader], expected)
        return "by data workers" in str(loader.explain())

    eventually(made_by_the_worker, 180)  # A worker that loses its first race is tried again half a minute later.


def test_a_sample_that_fails_raises_what_the_original_raises(real_feeder, tmp_path):
    dataset = ALL["MNIST"](tmp_path, transforms.Compose([transforms.RandomCrop(29), TO_TENSOR]))
    assert native_of(dataset) is not None
    with pytest.raises(ValueError, match="Required crop size"):
        batches_of(dataset)


def test_a_table_finds_each_difference(tmp_path):
    for name in ("CIFAR10", "STL10", "MNIST"):
        table = PixelTable(ALL[name](tmp_path, PLAIN), None)
        same = ALL[name](tmp_path, PLAIN)
        assert table.is_of(same, None)
        assert not table.is_of(same, [0]) and not table.is_of(ALL["USPS"](tmp_path, PLAIN), None)
        for place in (0, 11, 22):
            changed = ALL[name](tmp_path, PLAIN)
            changed.data[place, -1, -1] ^= 1
            assert not table.is_of(changed, None)
        changed.data = changed.data[:-1]
        assert not table.is_of(changed, None)
