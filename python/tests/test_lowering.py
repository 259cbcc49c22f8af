"""Which pipelines become native, with which specification, and what is said of those that do not."""

from __future__ import annotations

import json
import shutil

import PIL
import pytest
import torch
from torch.utils.data import Subset
from torchvision import transforms
from torchvision.datasets import FakeData, ImageFolder
from torchvision.transforms import InterpolationMode, v2

from sample_datasets import first_only, tag_dataset
from sluice.torch import DataLoader, explain

CROP = transforms.RandomResizedCrop(32)
TO_TENSOR = transforms.ToTensor()
NORMALIZE = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
CROP_OP = {"op": "random_resized_crop", "size": [32, 32], "scale": [0.08, 1.0], "ratio": [0.75, 4 / 3],
           "log_ratio": torch.log(torch.tensor([0.75, 4 / 3])).tolist(), "interpolation": "bilinear"}
NORMALIZE_OP = {"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
DECODE, TENSOR = {"op": "decode_rgb"}, {"op": "to_tensor"}


@pytest.fixture(autouse=True)
def somewhere(monkeypatch):
    """explain() only has to know that there is a feeder; nothing is started."""
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")


class OwnCrop(transforms.RandomResizedCrop):
    pass


class OwnFolder(ImageFolder):
    pass


NATIVE = {
    "training on ImageNet": (
        [CROP, transforms.RandomHorizontalFlip(), TO_TENSOR, NORMALIZE],
        [DECODE, CROP_OP, {"op": "random_horizontal_flip", "p": 0.5}, TENSOR, NORMALIZE_OP],
    ),
    "evaluation on ImageNet": (
        [transforms.Resize(40), transforms.CenterCrop(32), TO_TENSOR, NORMALIZE],
        [DECODE, {"op": "resize", "size": [40]}, {"op": "center_crop", "size": [32, 32]}, TENSOR, NORMALIZE_OP],
    ),
    "resize to both edges": ([transforms.Resize((24, 32)), TO_TENSOR], [DECODE, {"op": "resize", "size": [24, 32]}, TENSOR]),
    "center crop alone": ([transforms.CenterCrop((20, 32)), TO_TENSOR], [DECODE, {"op": "center_crop", "size": [20, 32]}, TENSOR]),
    "other scale, ratio and probability": (
        [transforms.RandomResizedCrop((16, 32), (0.5, 0.9), (1.0, 1.0)), transforms.RandomHorizontalFlip(0.25), TO_TENSOR],
        [DECODE, {**CROP_OP, "size": [16, 32], "scale": [0.5, 0.9], "ratio": [1.0, 1.0], "log_ratio": [0.0, 0.0]},
         {"op": "random_horizontal_flip", "p": 0.25}, TENSOR],
    ),
    "bytes": ([CROP, transforms.PILToTensor()], [DECODE, CROP_OP]),
    "one mean for all channels": (
        [CROP, TO_TENSOR, transforms.Normalize([0.5], [0.25])],
        [DECODE, CROP_OP, TENSOR, {"op": "normalize", "mean": [0.5] * 3, "std": [0.25] * 3}],
    ),
    "mean and deviation as tensors": (
        [CROP, TO_TENSOR, transforms.Normalize(torch.tensor([0.5] * 3), torch.tensor([0.25] * 3))],
        [DECODE, CROP_OP, TENSOR, {"op": "normalize", "mean": [0.5] * 3, "std": [0.25] * 3}],
    ),
}

PYTHON = {
    "nothing but a tensor": ([TO_TENSOR], "brings the images to one size; next comes torchvision.transforms.ToTensor"),
    "shorter edge only": ([transforms.Resize(32), TO_TENSOR], "brings the images to one size"),
    "colour jitter": ([CROP, transforms.ColorJitter(0.4), TO_TENSOR], "ColorJitter comes where ToTensor"),
    "jitter after the tensor": ([CROP, TO_TENSOR, transforms.RandomErasing()], "transform 3, torchvision.transforms.RandomErasing"),
    "flip before the crop": ([transforms.RandomHorizontalFlip(), CROP, TO_TENSOR], "brings the images to one size"),
    "two crops": ([CROP, transforms.CenterCrop(16), TO_TENSOR], "CenterCrop comes where ToTensor"),
    "no tensor": ([CROP], "nothing comes where ToTensor"),
    "own crop": ([OwnCrop(32), TO_TENSOR], "next comes test_lowering.OwnCrop"),
    "a lambda": ([CROP, transforms.Lambda(lambda image: image), TO_TENSOR], "Lambda comes where"),
    "bicubic": ([transforms.RandomResizedCrop(32, interpolation=InterpolationMode.BICUBIC), TO_TENSOR], "not bilinear"),
    "no antialias": ([transforms.RandomResizedCrop(32, antialias=False), TO_TENSOR], "antialias=False"),
    "largest edge": ([transforms.Resize(32, max_size=40), transforms.CenterCrop(32), TO_TENSOR], "max_size"),
    "deviation of zero": ([CROP, TO_TENSOR, transforms.Normalize([0.5] * 3, [0.0] * 3)], "standard deviation of zero"),
    "two channels": ([CROP, TO_TENSOR, transforms.Normalize([0.5] * 2, [0.5] * 2)], "2 channels"),
    "second generation": ([v2.RandomResizedCrop(32), TO_TENSOR], "next comes torchvision.transforms.v2"),
}


def loader_for(dataset, **arguments):
    return DataLoader(dataset, **{"batch_size": 4, "num_workers": 2, **arguments})


def spec_of(loader) -> dict:
    from sluice.pipeline import describe_loader

    return json.loads(describe_loader(loader, lowering=True).native.spec)


@pytest.mark.parametrize("case", NATIVE)
def test_recognised(image_root, case):
    steps, ops = NATIVE[case]
    loader = loader_for(ImageFolder(image_root, transforms.Compose(steps)))
    spec = spec_of(loader)
    assert spec["ops"] == ops
    assert spec["pillow"] == int(PIL.__version__.split(".")[0])
    assert spec["source"]["root"] == str(image_root) and spec["source"]["kind"] == "image_files"
    assert spec["source"]["paths"][:2] == ["cat/01.jpg", "cat/03.JPG"] and len(spec["source"]["paths"]) == 23
    assert spec["source"]["labels"] == [0] * 11 + [1] * 12
    assert loader.explain().startswith("executor: native\n  23 JPEG files -> images [n, 3, ")
    assert loader.explain().endswith("feeder: at /run/sluice/feeder.sock")


@pytest.mark.parametrize("case", PYTHON)
def test_left_in_python_with_the_reason(image_root, case):
    steps, reason = PYTHON[case]
    text = loader_for(ImageFolder(image_root, transforms.Compose(steps))).explain()
    assert text.startswith("executor: python") and reason in text


GOOD = transforms.Compose(NATIVE["training on ImageNet"][0])

AROUND = {
    "subclass of ImageFolder": (lambda root: loader_for(OwnFolder(root, GOOD)), "OwnFolder"),
    "own image loader": (lambda root: loader_for(ImageFolder(root, GOOD, loader=open)), "loader is io.open"),
    "target transform": (lambda root: loader_for(ImageFolder(root, GOOD, target_transform=float)), "target_transform float"),
    "another dataset": (lambda root: loader_for(FakeData(transform=GOOD)), "FakeData"),
    "no Compose": (lambda root: loader_for(ImageFolder(root, TO_TENSOR)), "not torchvision.transforms.Compose"),
    "own collate_fn": (lambda root: loader_for(ImageFolder(root, GOOD), collate_fn=first_only), "sample_datasets.first_only"),
    "worker_init_fn": (lambda root: loader_for(ImageFolder(root, GOOD), worker_init_fn=tag_dataset), "tag_dataset has to run"),
    "no batching": (lambda root: loader_for(ImageFolder(root, GOOD), batch_size=None), "single samples"),
    "subset out of range": (lambda root: loader_for(Subset(ImageFolder(root, GOOD), [0, 99])), "indices"),
    "subset of a subset out of range": (lambda root: loader_for(Subset(Subset(ImageFolder(root, GOOD), [0]), [1])), "indices"),
}


@pytest.mark.parametrize("case", AROUND)
def test_what_surrounds_the_transforms_counts_too(image_root, case):
    make, reason = AROUND[case]
    text = make(image_root).explain()
    assert text.startswith("executor: python") and reason in text


def test_files_that_are_not_jpeg_by_name(image_root, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(image_root, root)
    (root / "cat" / "01.jpg").rename(root / "cat" / "01.png")
    assert "01.png is not a JPEG file" in loader_for(ImageFolder(root, GOOD)).explain()


def test_subsets_list_their_own_files(image_root):
    folder = ImageFolder(image_root, GOOD)
    spec = spec_of(loader_for(Subset(Subset(folder, [20, 3, 7, -1]), [3, 0, 2])))
    assert spec["source"]["paths"] == [folder.samples[n][0].removeprefix(f"{image_root}/") for n in (22, 20, 7)]
    assert spec["source"]["labels"] == [1, 1, 0]


def test_hooks_keep_a_pipeline_in_python(image_root):
    crop = transforms.RandomResizedCrop(32)
    crop.register_forward_hook(lambda *_: None)
    assert "hook" in loader_for(ImageFolder(image_root, transforms.Compose([crop, TO_TENSOR]))).explain()


def test_another_default_dtype_keeps_a_pipeline_in_python(image_root):
    loader = loader_for(ImageFolder(image_root, GOOD))
    torch.set_default_dtype(torch.float64)
    try:
        assert "default dtype" in loader.explain()
    finally:
        torch.set_default_dtype(torch.float32)


def test_lowering_can_be_switched_off(image_root, monkeypatch):
    monkeypatch.setenv("SLUICE_LOWERING", "off")
    assert "SLUICE_LOWERING is off" in explain(loader_for(ImageFolder(image_root, GOOD)))


@pytest.mark.parametrize("arguments, reason", [
    (dict(num_workers=0), "num_workers is 0"),
    (dict(multiprocessing_context="fork"), "multiprocessing_context"),
])
def test_explains_what_torch_does_itself(image_root, arguments, reason):
    text = loader_for(ImageFolder(image_root, GOOD), **arguments).explain()
    assert text.startswith("executor: torch's own") and reason in text
