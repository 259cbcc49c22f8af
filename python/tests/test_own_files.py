"""Dataset classes of users over image files run natively where their code does no more than look up, open and transform: with the bytes of their own code."""

from __future__ import annotations

import importlib.util
import linecache
import pathlib
import threading

import numpy
import pytest
import torch
import torchvision
from PIL import Image
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate
from torchvision import datasets, transforms

from other_image_classes import NEED_PANDAS, OTHERS, Prints
from own_image_classes import OWN, TRAINING, AsDict, Base, Folder, Plain, Survives, WithIndex, pandas
from sluice.loader.pipeline import describe_loader
from sluice.lowering import code_tree
from sluice.lowering.native_pipeline import lower
from sluice.lowering.own_images import OwnImages
from sluice.shipping.failures import NotNative
from sluice.torch import DataLoader


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs") / "all"
    folder.mkdir()
    made = [str(folder / f"{number:03}.jpg") for number in range(24)]
    for number, path in enumerate(made):
        Image.fromarray(numpy.random.default_rng(number).integers(0, 256, (40 + number, 50, 3), dtype="u1")).save(path)
    return made


def alike(one, other):
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return type(one) is type(other) and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return type(one) is type(other) and one == other


def loader_of(dataset, **arguments) -> DataLoader:
    return DataLoader(dataset, **{"batch_size": 5, "num_workers": 2, **arguments})


def native_of(dataset):
    return describe_loader(loader_of(dataset), lowering=True).native


def epochs_of(dataset, monkeypatch, lowering="on", **arguments):
    monkeypatch.setenv("SLUICE_LOWERING", lowering)
    torch.manual_seed(3)
    loader = loader_of(dataset, shuffle=True, **arguments)
    made = [list(loader) for _ in range(2)]
    assert ("executor: native" in loader.explain()) == (lowering == "on")
    return made


def named(kinds):
    """Those with a data frame need pandas."""
    skipped = pytest.mark.skipif(pandas is None, reason="pandas is not installed")
    return [pytest.param(kind, id=kind.__name__, marks=[skipped] if kind in NEED_PANDAS else []) for kind in kinds]


@pytest.mark.parametrize("kind", named(OWN))
def test_a_class_gives_the_same_batches_natively(any_feeder, monkeypatch, paths, kind):
    dataset = kind(paths)
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_a_class_gives_torchs_own_batches(any_feeder, paths):
    plain = transforms.Compose([transforms.Resize((20, 20)), transforms.ToTensor()])
    dataset = WithIndex(paths, plain)
    assert alike(list(loader_of(dataset)), list(torch.utils.data.DataLoader(dataset, batch_size=5)))
    assert native_of(dataset) is not None


@pytest.mark.parametrize("kind", [Plain, AsDict])
def test_subsets_of_a_class(any_feeder, monkeypatch, paths, kind):
    dataset = Subset(Subset(kind(paths), [9, 5, 11, 7, 2, 0]), [1, 2, 5, 0])
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_keys_beyond_the_class_are_its_own_affair(any_feeder, paths):
    batch = next(iter(loader_of(Plain(paths), sampler=[-1, -2, 0])))
    assert batch[1].tolist() == [23 % 7, 22 % 7, 0]
    with pytest.raises(IndexError):
        list(loader_of(Plain(paths), sampler=[24]))


def test_an_index_keeps_the_type_that_the_sampler_gives_it(any_feeder, paths):
    batches = list(loader_of(WithIndex(paths), sampler=numpy.arange(5, dtype="i4")))
    assert batches[0][0].dtype is torch.int32 and batches[0][0].tolist() == [0, 1, 2, 3, 4]


def test_a_class_that_survives_a_file_that_is_no_image(any_feeder, monkeypatch, paths, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    dataset = Survives([*paths[:9], str(broken), *paths[9:]])
    dataset.folder = str(tmp_path)
    for path in paths:
        (tmp_path / pathlib.Path(path).name).symlink_to(path)
    assert native_of(dataset) is not None
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_a_file_that_is_no_image_is_the_classs_own_affair(any_feeder, paths, tmp_path):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no image")
    with pytest.raises(Image.UnidentifiedImageError):
        list(loader_of(Plain([*paths, str(broken)])))


class Unpicklable(Plain):
    def __init__(self, paths):
        super().__init__(paths)
        self.of_threads = threading.local()


@pytest.mark.parametrize("bad", [1, 12])
def test_a_file_that_needs_python_in_a_class_that_cannot_leave_this_process(any_feeder, paths, tmp_path, bad):
    """Also so many of them that no executor makes the rest."""
    odd = [str(tmp_path / f"{number}.png") for number in range(bad)]
    for path in odd:
        Image.fromarray(numpy.arange(4000, dtype="u2").reshape(50, 80)).save(path)
    dataset = Unpicklable([*odd, *paths])
    dataset.transform = transforms.Compose([transforms.Resize((20, 20)), transforms.ToTensor()])
    assert native_of(dataset) is not None
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=1))
    assert alike(list(loader_of(dataset, batch_size=1)), expected)


def test_what_has_changed_between_two_passes_is_seen(any_feeder, paths):
    dataset = AsDict(paths)
    loader = loader_of(dataset, batch_size=24)
    assert next(iter(loader))["weight"][3] == 1.0
    dataset.weights[3] = 4.5
    dataset.paths[0] = paths[1]
    dataset.transform = transforms.Compose([transforms.Resize((8, 9)), transforms.ToTensor()])
    batch = next(iter(loader))
    assert batch["weight"][3] == 4.5 and batch["path"][:2] == [paths[1]] * 2
    assert batch["image"].shape == (24, 3, 8, 9) and torch.equal(batch["image"][0], batch["image"][1])


@pytest.mark.parametrize("kind", named(OTHERS))
def test_a_class_that_does_more_stays_python(paths, kind):
    with pytest.raises(NotNative) as refused:
        lower(kind(paths), default_collate, True)
    assert OTHERS[kind] in str(refused.value)


def test_a_subset_from_the_end_stays_python(paths):
    """What a class gives for -1 may be another sample than its last."""
    with pytest.raises(NotNative, match="a Subset has negative indices"):
        lower(Subset(AsDict(paths), [3, -1]), default_collate, True)


def test_explain_shows_the_line_that_does_more(any_feeder, paths):
    explained = str(loader_of(Prints(paths)).explain())
    assert "the dataset is a other_image_classes.Prints" in explained and "other_image_classes.py:" in explained and "`print(index)`" in explained


def rgb(path):
    return Image.open(path).convert("RGB")


def other_label(label):
    return 5 - label


def folder_of(kind, paths, **arguments):
    return kind(str(pathlib.Path(paths[0]).parent.parent), transform=TRAINING, **arguments)


@pytest.mark.parametrize("make", [
    lambda paths: folder_of(Folder, paths),
    lambda paths: folder_of(datasets.DatasetFolder, paths, loader=datasets.folder.default_loader, extensions=(".jpg",)),
    lambda paths: folder_of(datasets.DatasetFolder, paths, loader=rgb, extensions=(".jpg",)),
    lambda paths: folder_of(datasets.ImageFolder, paths, loader=rgb),
    lambda paths: folder_of(datasets.ImageFolder, paths, target_transform=other_label),
])  # fmt: skip
def test_folders_of_torchvision_under_other_names(any_feeder, monkeypatch, paths, make):
    dataset = make(paths)
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


@pytest.mark.parametrize("name, attributes", [
    ("Food101", {"_image_files": pathlib.Path, "_labels": int}), ("FGVCAircraft", {"_image_files": str, "_labels": int}), ("StanfordCars", {"_samples": tuple}),
    ("Flowers102", {"_image_files": pathlib.Path, "_labels": int}), ("DTD", {"_image_files": pathlib.Path, "_labels": int}), ("GTSRB", {"_samples": tuple}),
    ("SUN397", {"_image_files": pathlib.Path, "_labels": int}), ("RenderedSST2", {"_samples": tuple}),
])  # fmt: skip
def test_data_sets_of_torchvision_over_files(paths, name, attributes):
    """Without their files: what their constructors leave behind."""
    dataset = object.__new__(getattr(datasets, name))
    made = {pathlib.Path: [pathlib.Path(path) for path in paths], str: paths, int: list(range(24)), tuple: [(path, number) for number, path in enumerate(paths)]}
    vars(dataset).update({attribute: made[kind] for attribute, kind in attributes.items()}, transform=TRAINING, target_transform=None, loader=datasets.folder.default_loader)
    found = OwnImages(dataset)
    assert [(str(path), label) for path, label in found.samples] == made[tuple]
    assert [step.transform for step in found.views.shared] == TRAINING.transforms and found.views.own == ((),)


def forget_sources():
    code_tree._tree.cache_clear()
    linecache.clearcache()


def test_a_file_that_has_changed_since_it_was_imported_tells_nothing(tmp_path, paths):
    file = tmp_path / "changing.py"
    file.write_text("from own_image_classes import *\nclass Changing(Base):\n    def __getitem__(self, index):\n"
                    "        return self.transform(Image.open(self.paths[index]).convert('RGB')), self.labels[index]\n")  # fmt: skip
    spec = importlib.util.spec_from_file_location("changing", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert OwnImages(module.Changing(paths)).samples[3] == (paths[3], 3)
    forget_sources()
    file.write_text(file.read_text().replace("self.labels[index]", "0"))
    with pytest.raises(NotNative, match="not that of its code"):
        OwnImages(module.Changing(paths))
    forget_sources()
    file.unlink()
    with pytest.raises(NotNative, match="not to be had"):
        OwnImages(module.Changing(paths))


def test_a_changed_function_is_followed(paths, monkeypatch):
    """A program may put one of its own in the place of another's."""
    monkeypatch.setattr(Image, "open", lambda path: Image.new("RGB", (8, 8)))
    with pytest.raises(NotNative, match="own_image_classes.py:.* has `Image.open"):
        OwnImages(Plain(paths))


def test_another_image_backend_is_left_to_it(paths, monkeypatch):
    monkeypatch.setattr(torchvision, "_image_backend", "accimage")
    with pytest.raises(NotNative, match="another image backend than PIL"):
        OwnImages(WithIndex(paths))


def test_a_class_without_samples(paths):
    dataset = Plain(paths)
    dataset.paths = []
    with pytest.raises(NotNative, match="IndexError"):
        OwnImages(dataset)


def test_a_big_class_is_read_once_for_all_samples(paths):
    """Not code for each: a Dataset with a million files begins in a second."""
    asked = []

    class Million(Base):
        @property
        def chosen(self):
            return self.paths

        def __getitem__(self, index):
            return self.transform(Image.open(self.chosen[index]).convert("RGB")), self.labels[index]

        def __len__(self):
            asked.append(None)
            return len(self.paths)

    dataset = Million(paths)
    dataset.paths, dataset.labels = [f"/somewhere/{number}.jpg" for number in range(10**6)], [0] * 10**6
    assert len(OwnImages(dataset).samples) == 10**6 and len(asked) == 1
