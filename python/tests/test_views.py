"""Data sets whose samples have several images of one file, or images that no code converts, run natively with the bytes of their own code."""

from __future__ import annotations

import pathlib

import pytest
import torch
from PIL import Image
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate
from torchvision import datasets, transforms

from memory_datasets import ALL
from own_image_classes import Base
from sluice.loader.pipeline import describe_loader
from sluice.lowering.native_pipeline import lower
from sluice.shipping.failures import NotNative
from test_own_files import alike, epochs_of, loader_of, native_of
from test_own_files import paths as paths  # noqa: PLC0414
from view_classes import RESIZE, SMALL, TENSOR, VIEWS, AnyMode, AsModule, ConvertsByAnother, ConvertsOthers, MakesTransforms, ManyViews, MultiCrop, NamedViews, TwoCrops, Views


@pytest.mark.parametrize("make", VIEWS, ids=lambda make: make.__name__)
def test_a_class_gives_the_same_batches_natively(any_feeder, monkeypatch, paths, make):
    dataset = make(paths)
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_several_images_are_torchs_own(any_feeder, paths):
    """Without chance, so that torch makes the same."""
    dataset = Views(paths)
    dataset.transform = ManyViews(transforms.Compose([RESIZE, TENSOR]), n_views=3)
    assert native_of(dataset) is not None
    assert alike(list(loader_of(dataset)), list(torch.utils.data.DataLoader(dataset, batch_size=5)))


@pytest.mark.parametrize("transform", [TwoCrops(SMALL), ManyViews(SMALL, 4), MultiCrop()], ids=lambda transform: type(transform).__name__)
def test_subsets_and_images_in_memory(any_feeder, monkeypatch, tmp_path, paths, transform):
    for dataset in (ALL["CIFAR10"](tmp_path, transform), ALL["STL10"](tmp_path, transform), Subset(Views(paths), [9, 5, 11, 2, 0])):
        assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_explain_names_each_image_and_its_operations(any_feeder, paths):
    told = str(loader_of(NamedViews(paths)).explain())
    assert "images [n, 3, 32, 32] float32 and [n, 3, 8, 8] float32, with all else that its samples have" in told
    assert "    decode_rgb\n    then for image 1\n      random_resized_crop, random\n" in told and "    then for image 2\n" in told


@pytest.mark.parametrize("of", [AnyMode, ConvertsOthers, ConvertsByAnother])
@pytest.mark.parametrize("at", [0, 7])
def test_a_grey_file_is_what_the_code_makes_of_it(any_feeder, monkeypatch, tmp_path, paths, of, at):
    """Where nothing converts it, it has one channel."""
    grey = tmp_path / "grey.jpg"
    Image.open(paths[0]).convert("L").save(grey)
    dataset = of([*paths[:at], str(grey), *paths[at:12]])
    if of is not ConvertsOthers and at == 0:
        with pytest.raises(NotNative, match="grey.jpg is L"):
            lower(dataset, default_collate, True)
        return
    batches = list(loader_of(dataset, batch_size=1))
    assert native_of(dataset) is not None
    assert [batch[0].shape[1] for batch in batches] == [1 if of is not ConvertsOthers and number == at else 3 for number in range(13)]


class Broken(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index])), self.labels[index]


@pytest.mark.parametrize("first", ["no image", None])
def test_a_first_file_that_cannot_be_opened_is_the_loops_own_affair(any_feeder, tmp_path, paths, first):
    path = tmp_path / "first.jpg"
    if first is not None:
        path.write_text(first)
    with pytest.raises(OSError):
        list(loader_of(Broken([str(path), *paths])))


def test_every_step_that_is_in_the_way_is_named(paths):
    dataset = Views(paths)
    dataset.transform = ManyViews(transforms.Compose([transforms.GaussianBlur(3), lambda image: image.rotate(3), TENSOR]))
    with pytest.raises(NotNative) as refused:
        lower(dataset, default_collate, True)
    told = str(refused.value)
    assert "transform 1 of image 1, torchvision.transforms.GaussianBlur, has no native form" in told
    assert "transform 2 of image 1" in told and "`image.rotate(3)`" in told and "of image 2" not in told


def test_a_module_with_a_hook_stays_python(paths):
    dataset = Views(paths)
    dataset.transform = AsModule()
    assert native_of(dataset) is not None
    dataset.transform.register_forward_hook(lambda module, given, made: made)
    with pytest.raises(NotNative, match="AsModule, has no native form"):
        lower(dataset, default_collate, True)


class Slotted:
    """Without a __dict__."""

    __slots__ = ("side",)

    def __init__(self, side):
        self.side = side

    def __call__(self, image):
        return image.resize((self.side, self.side))


@pytest.mark.parametrize("transform, why", [(Slotted(8), "test_views.Slotted, has no native form"), (None, "there is no transform"), (abs, "builtin_function_or_method, has no native form"), (7, "int, has no native form")])
def test_whatever_a_transform_is_it_is_told(paths, transform, why):
    folder = datasets.ImageFolder(pathlib.Path(paths[0]).parent.parent, transform)
    with pytest.raises(NotNative) as refused:
        lower(folder, default_collate, True)
    assert why in str(refused.value)


class Odd:
    """Whatever is asked of it, it raises."""

    def __getattr__(self, name):
        raise RuntimeError(name)


def test_a_transform_that_raises_when_it_is_looked_at_stays_python(paths):
    folder = datasets.ImageFolder(pathlib.Path(paths[0]).parent.parent, Odd())
    pipeline = describe_loader(loader_of(folder), lowering=True)
    assert pipeline.native is None and "raises RuntimeError" in pipeline.reason


def own_crop(image, size):
    return 0, 0, *size


def test_methods_of_a_programs_own_keep_a_transform_in_python(paths, monkeypatch):
    """On one transform, in torchvision's class, and classes and functions in the place of torchvision's."""
    crop = transforms.RandomCrop(16)
    crop.get_params = own_crop
    with pytest.raises(NotNative, match="RandomCrop, has a hook, or a method of its own"):
        lower(NamedViews(paths, transforms.Compose([crop, TENSOR])), default_collate, True)
    dataset = NamedViews(paths)
    with monkeypatch.context() as patch:
        patch.setattr(transforms.RandomResizedCrop, "get_params", staticmethod(own_crop))
        with pytest.raises(NotNative, match="RandomResizedCrop, has a hook, or a method of its own"):
            lower(dataset, default_collate, True)
    kind = type("ToTensor", (transforms.ToTensor,), {"__module__": "own"})
    monkeypatch.setattr(transforms, "ToTensor", kind)
    with pytest.raises(NotNative, match="own.ToTensor, has no native form"):
        lower(NamedViews(paths, transforms.Compose([transforms.RandomCrop(16), kind()])), default_collate, True)


def test_functions_in_the_place_of_torchvisions_are_read(paths, monkeypatch):
    def to_tensor(image):
        return image.rotate(3)

    monkeypatch.setattr(transforms.functional, "to_tensor", to_tensor)
    with pytest.raises(NotNative, match="functional.to_tensor"):
        lower(MakesTransforms(paths), default_collate, True)
