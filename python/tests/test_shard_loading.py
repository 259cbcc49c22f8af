"""Loaders over tar shards: torch's own workers, Sluice's Python executors and its native ones give the same batches."""

from __future__ import annotations

import json
import os
import pickle

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import DistributedSampler, Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from fake_computation import read_specification
from shard_files import shards_of_images, write_shard
from sluice.loader.pipeline import describe_loader
from sluice.lowering.range_table import RangeTable
from sluice.shards import KEY, TarShards
from sluice.shipping.failures import NotNative
from sluice.torch import DataLoader
from test_loader import equal
from test_own_files import alike, epochs_of
from view_classes import ManyViews

EVALUATION = transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor()])
RECIPES = {
    "training": transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                                    transforms.Normalize([0.5] * 3, [0.25] * 3)]),
    "evaluation": EVALUATION,
    "bytes": transforms.Compose([transforms.RandomResizedCrop(24), transforms.ColorJitter(0.4), transforms.PILToTensor()]),
}


@pytest.fixture(scope="module")
def folder(image_root, tmp_path_factory):
    return shards_of_images(image_root, tmp_path_factory.mktemp("shards"))


def batches_of(dataset, monkeypatch, lowering, **arguments):
    monkeypatch.setenv("SLUICE_LOWERING", "on" if lowering else "off")
    loader = DataLoader(dataset, **{"batch_size": 5, "shuffle": True, "num_workers": 2, **arguments})
    assert loader.explain().startswith("executor: native" if lowering else "executor: python"), loader.explain()
    torch.manual_seed(17)
    return [[tensor.clone() for tensor in batch] for _ in range(2) for batch in loader]


@pytest.mark.parametrize("recipe", RECIPES)
def test_native_and_python_executors_give_the_same_bytes(any_feeder, folder, monkeypatch, recipe):
    dataset = TarShards(folder, transform=RECIPES[recipe])
    native, python = (batches_of(dataset, monkeypatch, lowering) for lowering in (True, False))
    assert len(native) == 10 and equal(native, python)


def test_two_images_of_each_sample(any_feeder, folder, monkeypatch):
    dataset = TarShards(folder, transform=ManyViews(RECIPES["training"]))
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_the_same_bytes_as_from_an_image_folder(any_feeder, image_root, folder, monkeypatch):
    recipe = RECIPES["training"]
    assert equal(batches_of(TarShards(folder, transform=recipe), monkeypatch, True), batches_of(ImageFolder(image_root, recipe), monkeypatch, True))


@pytest.mark.parametrize("lowering", [True, False])
def test_the_batches_of_torchs_own_workers(any_feeder, folder, monkeypatch, lowering):
    dataset = TarShards(folder, transform=EVALUATION)
    torch.manual_seed(17)
    theirs = [batch for _ in range(2) for batch in TorchLoader(dataset, batch_size=5, shuffle=True, num_workers=2)]
    assert equal(batches_of(dataset, monkeypatch, lowering), theirs)


def test_torchs_own_random_numbers(any_feeder, folder, monkeypatch):
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    dataset = TarShards(folder, transform=RECIPES["training"])
    torch.manual_seed(17)
    theirs = [batch for _ in range(2) for batch in TorchLoader(dataset, batch_size=5, shuffle=True, num_workers=2)]
    assert equal(batches_of(dataset, monkeypatch, False), theirs)


def test_subsets_and_ranks(any_feeder, folder, monkeypatch):
    dataset = Subset(TarShards(folder, transform=EVALUATION), [22, 0, -1, 7, 7, 13])
    native, python = (batches_of(dataset, monkeypatch, lowering) for lowering in (True, False))
    assert equal(native, python)
    whole = TarShards(folder, transform=EVALUATION)
    both = [batches_of(whole, monkeypatch, True, shuffle=False, sampler=DistributedSampler(whole, 2, rank)) for rank in range(2)]
    assert [sum(len(labels) for _, labels in batches) for batches in both] == [24, 24]


def test_a_training_that_was_stopped_goes_on_with_the_next_batch(any_feeder, folder):
    def loader():
        return DataLoader(TarShards(folder, transform=RECIPES["training"]), batch_size=4, shuffle=True, num_workers=2)

    first = loader()
    batches = iter(first)
    for _ in range(2):
        next(batches)
    state = json.loads(json.dumps(first.state_dict()))
    rest = list(batches)
    resumed = loader()
    resumed.load_state_dict(state)
    assert equal(list(resumed), rest)


def test_a_copy_for_a_spawned_process_gives_the_same_samples(folder):
    dataset = TarShards(folder, transform=EVALUATION)
    copy = pickle.loads(pickle.dumps(dataset))
    assert equal([copy[number] for number in range(len(copy))], [dataset[number] for number in range(len(dataset))])


def damaged(folder, to, damage):
    """The folder's first shard, with the bytes of one member changed. Returns its path."""
    data = bytearray((folder / "train-000.tar").read_bytes())
    place = int(TarShards(folder).columns[0].offset[3])
    data[place : place + 64] = damage
    to.mkdir(exist_ok=True)
    (to / "train-000.tar").write_bytes(data)
    return to / "train-000.tar"


@pytest.mark.parametrize("lowering", [True, False])
def test_a_damaged_member_is_left_out_or_named(any_feeder, folder, tmp_path, monkeypatch, lowering):
    path = damaged(folder, tmp_path / "shards", b"\0" * 64)
    monkeypatch.setenv("SLUICE_LOWERING", "on" if lowering else "off")
    dataset = TarShards(path, transform=EVALUATION)
    loader = DataLoader(dataset, batch_size=4, num_workers=2, on_error="skip")
    good = DataLoader(TarShards(folder / "train-000.tar", transform=EVALUATION), batch_size=4, num_workers=2)
    for (images, labels), (want, want_labels), keep in zip(loader, good, ([0, 1, 2], [0, 1, 2, 3], [0]), strict=True):
        assert torch.equal(images, want[keep]) and torch.equal(labels, want_labels[keep])
    assert [(skipped.batch, skipped.index) for skipped in loader.skipped] == [(0, 3)]
    place = f"at offset {int(dataset.columns[0].offset[3])}: cannot identify"
    assert f"ShardError: {path}: 0/" in loader.skipped[0].error and place in loader.skipped[0].error
    with pytest.raises(ValueError, match=place):
        list(DataLoader(dataset, batch_size=4, num_workers=2))


@pytest.mark.parametrize("lazy", ["on", "off"])
def test_a_truncated_image_is_named_also_where_images_decode_late(real_feeder, folder, tmp_path, monkeypatch, lazy):
    monkeypatch.setenv("SLUICE_LAZY_IMAGES", lazy)
    whole = (folder / "train-000.tar").read_bytes()
    first = TarShards(folder).columns[0]
    jpeg = whole[int(first.offset[0]) :][: int(first.nbytes[0])]
    path = write_shard(tmp_path / "a.tar", [("0.jpg", jpeg[:-200]), ("0.cls", b"1")])
    dataset = TarShards(path, fields=("jpg", "cls", KEY), transform=EVALUATION)
    loader = DataLoader(dataset, batch_size=1, num_workers=1)
    with pytest.raises(ValueError, match=r"a\.tar: 0\.jpg at offset 512: image file is truncated"):
        list(loader)


def test_a_shard_that_is_replaced_during_training_is_no_silent_change(any_feeder, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_AHEAD", "off")  # Otherwise the next epoch's first batches are made before the shard is replaced.
    path = tmp_path / "a.tar"
    path.write_bytes((folder / "train-000.tar").read_bytes())
    loader = DataLoader(TarShards(path, transform=EVALUATION), batch_size=4, num_workers=2)
    assert loader.explain().startswith("executor: native") and len(list(loader)) == 3
    path.write_bytes((folder / "train-001.tar").read_bytes())
    with pytest.raises(ValueError, match=r"a\.tar has changed since its index was made"):
        list(loader)


@pytest.mark.parametrize("arguments, reason", [
    (dict(fields=("jpg;jpeg", "cls", KEY)), "the fields are 3, not an image and a class number"),
    (dict(fields=("jpg;jpeg", KEY)), "not an image and a class number"),
    (dict(fields=("png", "cls")), "sample 0 has no image"),
    (dict(fields=("jpg;jpeg", "txt")), "the second field, txt, is no class number"),
    (dict(fields=("jpg;jpeg", "id")), "sample 0 has no class number of 64 bits"),
    (dict(target_transform=abs), "target_transform abs has no native form"),
    (dict(transform=None), "transform"),
])  # fmt: skip
def test_what_stays_python_says_why(folder, arguments, reason):
    with pytest.raises(NotNative, match=reason):
        from sluice.lowering.native_pipeline import lower

        loader = TorchLoader(TarShards(folder, **{"transform": EVALUATION, **arguments}))
        lower(loader.dataset, loader.collate_fn, True)


def test_an_image_of_another_kind_stays_python(tmp_path, folder):
    write_shard(tmp_path / "a.tar", [("0.jpg", b"x"), ("0.cls", b"1"), ("1.gif", b"x"), ("1.cls", b"1")])
    with pytest.raises(NotNative, match=r"sample 1 is not a JPEG, PNG or WebP file by its name, but \.gif"):
        RangeTable(TarShards(tmp_path), None)
    assert RangeTable(TarShards(tmp_path), [0]).count == 1


class OwnShards(TarShards):
    pass


def test_a_class_of_ones_own_stays_python(folder, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")
    loader = DataLoader(OwnShards(folder, transform=EVALUATION), num_workers=1)
    assert "OwnShards, not torchvision's ImageFolder, one of its data sets in memory, or sluice's TarShards itself" in loader.explain()


def test_the_table_says_where_each_image_lies(folder):
    dataset = TarShards(folder, transform=EVALUATION)
    native = describe_loader(DataLoader(Subset(dataset, [20, 1, -2]), num_workers=1), lowering=True).native
    spec, samples = read_specification(native.header + native.files.blob)
    assert spec["version"] == 2 and spec["source"] == {"kind": "file_ranges", "files": 3, "samples": 3}
    for ((path, offset, length, file_bytes, modified), label), sample in zip(samples, (20, 1, 21), strict=True):
        status = os.stat(path)
        assert (status.st_size, status.st_mtime_ns) == (file_bytes, modified)
        with open(path, "rb") as file:
            file.seek(offset)
            assert file.read(length)[:2] == b"\xff\xd8"
        assert label == dataset[sample][1] and path == dataset.shards[dataset.shard_of(sample)]


def test_epochs_share_one_table(folder):
    dataset = TarShards(folder, transform=EVALUATION)
    loader = DataLoader(Subset(dataset, [0, 2]), num_workers=2)
    first = describe_loader(loader, lowering=True)
    second = describe_loader(loader, lowering=True, kept=first.kept)
    assert second.native.files is first.native.files and second.kept is first.kept
    other = DataLoader(Subset(dataset, [0, 3]), num_workers=2)
    assert describe_loader(other, lowering=True, kept=first.kept).native.files is not first.native.files


def test_an_executor_that_knows_no_ranges_changes_nothing(make_fake, folder, monkeypatch):
    dataset = TarShards(folder, transform=EVALUATION)
    fake = make_fake()
    expected = batches_of(dataset, monkeypatch, True)
    fake.stop()
    make_fake(refuse_native=True)
    assert equal(batches_of(dataset, monkeypatch, True), expected)
