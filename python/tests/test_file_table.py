"""The table of an image folder's files: what it says, when it is made anew, and what it refuses."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace

import pytest
from torch.utils.data import Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from fake_computation import read_specification
from sluice.loader.pipeline import describe_loader
from sluice.lowering.file_table import FileTable
from sluice.shipping.failures import NotNative
from sluice.torch import DataLoader

TRANSFORM = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])


def folder_of(samples, root="/data"):
    return SimpleNamespace(root=root, samples=samples)


def files_of(table):
    return read_specification(json.dumps({"source": table.source}).encode() + b"\n" + table.blob)[1]


MANY = [(f"/data/class{number // 50}/image{number}.JPEG", number // 50) for number in range(1000)]


@pytest.mark.parametrize("samples, want", [
    ([], []),
    ([("/data/a.jpg", 3)], [("a.jpg", 3)]),
    ([("/data/x/a.jpg", -1), ("/data/y/a.jpg", 2**63 - 1)], [("x/a.jpg", -1), ("y/a.jpg", 2**63 - 1)]),
    ([("/data/x/../y//a.jpg", 0), ("/data/y/b.jpg", 0)], [("y/a.jpg", 0), ("y/b.jpg", 0)]),
    ([["/data/a.jpg", 3]], [("a.jpg", 3)]),
    ([("/data/K\u00fche/\u725b.jpeg", 0)], [("K\u00fche/\u725b.jpeg", 0)]),
    (MANY, [(path.removeprefix("/data/"), label) for path, label in MANY]),
])  # fmt: skip
def test_paths_and_labels(samples, want):
    assert files_of(FileTable(folder_of(samples), None)) == want


def test_files_in_any_order_and_a_selection():
    order = random.Random(3).sample(range(-1000, 1000), 700)
    want = [(MANY[index][0].removeprefix("/data/"), MANY[index][1]) for index in order]
    assert files_of(FileTable(folder_of(MANY), order)) == want


def test_the_root_of_the_file_system():
    assert files_of(FileTable(folder_of([("/a.jpg", 0), ("/x/b.jpg", 1)], root="/"), None)) == [("a.jpg", 0), ("x/b.jpg", 1)]


def test_a_relative_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = FileTable(folder_of([("train/x/a.jpg", 0)], root="train"), None)
    assert files_of(table) == [("x/a.jpg", 0)] and table.root == str(tmp_path / "train")
    monkeypatch.chdir("/")
    assert not table.is_of(folder_of([("train/x/a.jpg", 0)], root="train"), None)


@pytest.mark.parametrize("samples, selection, reason", [
    ([("/data/a.gif", 0)], None, "a.gif is not a JPEG, PNG or WebP file"),
    ([("/data/.jpg/..", 0)], None, ".. is not a JPEG, PNG or WebP file"),
    ([("/database/a.jpg", 0)], None, "/database/a.jpg is not inside the folder /data"),
    ([("/data/../a.jpg", 0)], None, "not inside"),
    ([("/data/a.jpg", "cat")], None, "label of sample 0 is 'cat'"),
    ([("/data/a.jpg", True)], None, "label of sample 0 is True"),
    ([("/data/a.jpg", 2**63)], None, "64 bits"),
    ([("/data/a.jpg",)], None, "sample 0 is no pair"),
    ([(b"/data/a.jpg", 0)], None, "path of sample 0 is a bytes"),
    ([("/data/\udc80.jpg", 0)], None, "not valid UTF-8"),
    ([("/data/a\0b.jpg", 0)], None, "NUL"),
    ([("/data/a.jpg", 0)], [1], "indices"),
])  # fmt: skip
def test_what_native_executors_would_treat_differently_is_refused(samples, selection, reason):
    with pytest.raises(NotNative, match=reason):
        FileTable(folder_of(samples), selection)


@pytest.mark.parametrize("change, same", [
    (lambda folder: None, True),
    (lambda folder: folder.samples.__setitem__(1, tuple(folder.samples[1])), True),
    (lambda folder: folder.samples.__setitem__(1, ("/data/x/b.jpg", 9)), False),
    (lambda folder: folder.samples.append(("/data/x/c.jpg", 0)), False),
    (lambda folder: folder.samples.reverse(), False),
    (lambda folder: setattr(folder, "samples", list(folder.samples)), True),
    (lambda folder: setattr(folder, "root", "/data/x"), False),
])  # fmt: skip
def test_a_table_is_made_anew_when_the_folder_has_changed(change, same):
    folder = folder_of([("/data/x/a.jpg", 0), ("/data/x/b.jpg", 1)])
    table = FileTable(folder, None)
    change(folder)
    assert table.is_of(folder, None) == same
    assert not table.is_of(folder, [0, 1])


def test_a_sample_that_could_change_unseen_is_looked_at_every_time():
    folder = folder_of([["/data/a.jpg", 0]])
    assert not FileTable(folder, None).is_of(folder, None)


def test_epochs_share_one_table(image_root):
    folder = ImageFolder(image_root, TRANSFORM)
    loader = DataLoader(Subset(folder, [0, 2]), num_workers=2)
    first = describe_loader(loader, lowering=True)
    second = describe_loader(loader, lowering=True, kept=first.kept)
    assert second.native.files is first.native.files and second.kept is first.kept

    folder.transform = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
    third = describe_loader(loader, lowering=True, kept=second.kept)
    assert third.native.files is first.native.files and third.kept.shipment is not first.kept.shipment
