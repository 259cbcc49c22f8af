"""Which pipelines become native, with which specification, and what is said of those that do not."""

from __future__ import annotations

import contextlib
import importlib.metadata
import random
import shutil

import PIL.Image
import pytest
import torch
from PIL import ImageFilter
from torch.utils.data import Subset
from torchvision import transforms
from torchvision.datasets import FakeData, ImageFolder
from torchvision.transforms import InterpolationMode, v2

from fake_computation import read_specification
from sample_datasets import first_only
from sluice.loader.pipeline import describe_loader
from sluice.torch import DataLoader, explain

CROP = transforms.RandomResizedCrop(32)
CROP_OF_ALL = transforms.CenterCrop(32)
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


class GaussianBlur:
    """As many have one, of Pillow's filter."""

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2)))


class OwnCrop(transforms.RandomResizedCrop):
    pass


NATIVE = {
    "training on ImageNet": (
        [CROP, transforms.RandomHorizontalFlip(), TO_TENSOR, NORMALIZE],
        [DECODE, CROP_OP, {"op": "random_horizontal_flip", "p": 0.5}, TENSOR, NORMALIZE_OP],
    ),
    "evaluation on ImageNet": (
        [transforms.Resize(40), transforms.CenterCrop(32), TO_TENSOR, NORMALIZE],
        [DECODE, {"op": "resize", "size": [40], "interpolation": "bilinear"}, {"op": "center_crop", "size": [32, 32]}, TENSOR, NORMALIZE_OP],
    ),
    "resize to both edges": ([transforms.Resize((24, 32)), TO_TENSOR], [DECODE, {"op": "resize", "size": [24, 32], "interpolation": "bilinear"}, TENSOR]),
    "center crop alone": ([transforms.CenterCrop((20, 32)), TO_TENSOR], [DECODE, {"op": "center_crop", "size": [20, 32]}, TENSOR]),
    "other scale, ratio and probability": (
        [transforms.RandomResizedCrop((16, 32), (0.5, 0.9), (1.0, 1.0)), transforms.RandomHorizontalFlip(0.25), TO_TENSOR],
        [DECODE, {**CROP_OP, "size": [16, 32], "scale": [0.5, 0.9], "ratio": [1.0, 1.0], "log_ratio": [0.0, 0.0]},
         {"op": "random_horizontal_flip", "p": 0.25}, TENSOR],
    ),
    "bytes": ([CROP, transforms.PILToTensor()], [DECODE, CROP_OP]),
    "bytes resized": (
        [v2.ToImage(), v2.ToDtype(torch.uint8), v2.Resize((24, 32)), v2.RandomCrop((20, 32)), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()],
        [DECODE, {"op": "resize", "size": [24, 32], "interpolation": "tensor_bilinear"}, {"op": "random_crop", "size": [20, 32], "generation": 2}, {"op": "to_float"}],
    ),
    "floats from 0 to 255": ([CROP, v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize([9], [7])], [DECODE, CROP_OP, {"op": "to_float", "scale": False}, {"op": "normalize", "mean": [9.0] * 3, "std": [7.0] * 3}]),
    "floats moved": (
        [CROP, TO_TENSOR, NORMALIZE, transforms.RandomHorizontalFlip(), v2.RandomVerticalFlip(), v2.CenterCrop((20, 32)), transforms.RandomCrop((5, 32))],
        [DECODE, CROP_OP, {"op": "random_horizontal_flip", "p": 0.5}, {"op": "random_vertical_flip", "p": 0.5}, {"op": "center_crop", "size": [20, 32]},
         {"op": "random_crop", "size": [5, 32]}, TENSOR, NORMALIZE_OP],
    ),
    "dtype of the first generation": ([CROP, transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float32)], [DECODE, CROP_OP, TENSOR]),
    "one mean for all channels": (
        [CROP, TO_TENSOR, transforms.Normalize([0.5], [0.25])],
        [DECODE, CROP_OP, TENSOR, {"op": "normalize", "mean": [0.5] * 3, "std": [0.25] * 3}],
    ),
    "SimCLR without its blur": (
        [CROP, transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomGrayscale(0.2), TO_TENSOR],
        [DECODE, CROP_OP, {"op": "random_horizontal_flip", "p": 0.5},
         {"op": "color_jitter", "brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.6, 1.4], "hue": [-0.1, 0.1]},
         {"op": "random_grayscale", "p": 0.2}, TENSOR],
    ),
    "training on CIFAR": (
        [transforms.Resize(32), transforms.RandomCrop(32, padding=4, fill=7), transforms.RandomVerticalFlip(), TO_TENSOR],
        [DECODE, {"op": "resize", "size": [32], "interpolation": "bilinear"}, {"op": "pad", "padding": [4, 4, 4, 4], "fill": [7, 7, 7]},
         {"op": "random_crop", "size": [32, 32]}, {"op": "random_vertical_flip", "p": 0.5}, TENSOR],
    ),
    "second generation": (
        [v2.RandomResizedCrop(32), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True),
         v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])],
        [DECODE, CROP_OP, {"op": "random_horizontal_flip", "p": 0.5}, {"op": "to_float"}, NORMALIZE_OP],
    ),
    "second generation's crop": (
        [v2.RandomCrop(32, padding=[1, 2, 3, 4], pad_if_needed=True), v2.PILToTensor()],
        [DECODE, {"op": "pad", "padding": [1, 2, 3, 4]}, {"op": "random_crop", "size": [32, 32], "generation": 2, "pad_if_needed": True}],
    ),
    "flip of a tensor of bytes": ([CROP, v2.ToImage(), v2.RandomVerticalFlip(1)], [DECODE, CROP_OP, {"op": "random_vertical_flip", "p": 1.0}]),
    "colours of a tensor": (
        [v2.ToImage(), v2.ColorJitter(0.4, hue=0.1), v2.Resize((24, 32)), v2.ColorJitter(0, 0.5), v2.RandomGrayscale(0.25), v2.RandomAdjustSharpness(0.2), v2.RandomSolarize(99)],
        [DECODE, {"op": "color_jitter", "brightness": [0.6, 1.4], "hue": [-0.1, 0.1], "arithmetic": "tensor"},
         {"op": "resize", "size": [24, 32], "interpolation": "tensor_bilinear"}, {"op": "color_jitter", "contrast": [0.5, 1.5], "arithmetic": "tensor"},
         {"op": "random_grayscale", "p": 0.25, "arithmetic": "tensor"}, {"op": "random_apply", "p": 0.5, "ops": [{"op": "augment", "name": "tensor_sharpness", "magnitudes": [-0.8]}]},
         {"op": "random_apply", "p": 0.5, "ops": [{"op": "augment", "name": "solarize", "magnitudes": [99.0]}]}],
    ),
    "erasing": (
        [CROP, TO_TENSOR, transforms.RandomErasing(0.25, value=[1, 2, 3])],
        [DECODE, CROP_OP, TENSOR, {"op": "random_erasing", "p": 0.25, "scale": [0.02, 0.33], "ratio": [0.3, 3.3],
                                   "log_ratio": torch.log(torch.tensor([0.3, 3.3])).tolist(), "value": [1.0, 2.0, 3.0]}],
    ),
    "bicubic and mirrored border": (
        [transforms.Resize((20, 30), InterpolationMode.BICUBIC), transforms.Pad((1, 2), padding_mode="reflect"), TO_TENSOR],
        [DECODE, {"op": "resize", "size": [20, 30], "interpolation": "bicubic"}, {"op": "pad", "padding": [1, 2, 1, 2], "mode": "reflect"}, TENSOR],
    ),
    "largest edge": (
        [transforms.Resize(32, max_size=40), transforms.CenterCrop(32), TO_TENSOR],
        [DECODE, {"op": "resize", "size": [32], "max_size": 40, "interpolation": "bilinear"}, {"op": "center_crop", "size": [32, 32]}, TENSOR],
    ),
    "one channel": ([CROP, transforms.Grayscale(), TO_TENSOR, transforms.Normalize(0.5, 0.25)],
                    [DECODE, CROP_OP, {"op": "grayscale", "channels": 1}, TENSOR, {"op": "normalize", "mean": [0.5] * 3, "std": [0.25] * 3}]),
    "applied at random": (
        [CROP, transforms.RandomApply([transforms.ColorJitter(0.4), transforms.RandomGrayscale(0.25)], 0.5), v2.RandomApply([v2.RandomVerticalFlip()], 0.5),
         TO_TENSOR],
        [DECODE, CROP_OP,
         {"op": "random_apply", "p": 0.5 + 2.0**-24, "ops": [{"op": "color_jitter", "brightness": [0.6, 1.4]}, {"op": "random_grayscale", "p": 0.25}]},
         {"op": "random_apply", "p": 0.5, "ops": [{"op": "random_vertical_flip", "p": 0.5}]}, TENSOR],
    ),
    "always applied": ([CROP, transforms.RandomApply([transforms.Grayscale(3)], 1), TO_TENSOR],
                       [DECODE, CROP_OP, {"op": "random_apply", "p": 1.0, "ops": [{"op": "grayscale"}]}, TENSOR]),
    "one augmentation": (
        [CROP, transforms.RandomPosterize(3, 0.75), transforms.RandomAdjustSharpness(2, 0.1), v2.RandomSolarize(99), TO_TENSOR],
        [DECODE, CROP_OP,
         {"op": "random_apply", "p": 0.75, "ops": [{"op": "augment", "name": "posterize", "magnitudes": [3.0]}]},
         {"op": "random_apply", "p": 1677722 / 2**24, "ops": [{"op": "augment", "name": "sharpness", "magnitudes": [1.0]}]},
         {"op": "random_apply", "p": 0.5, "ops": [{"op": "augment", "name": "solarize", "magnitudes": [99.0]}]}, TENSOR],
    ),
    "rotation": ([CROP, transforms.RandomRotation(30, fill=7), TO_TENSOR],
                 [DECODE, CROP_OP, {"op": "random_rotation", "degrees": [-30.0, 30.0], "interpolation": "nearest", "fill": [7, 7, 7]}, TENSOR]),
    "mean and deviation as tensors": (
        [CROP, TO_TENSOR, transforms.Normalize(torch.tensor([0.5] * 3), torch.tensor([0.25] * 3))],
        [DECODE, CROP_OP, TENSOR, {"op": "normalize", "mean": [0.5] * 3, "std": [0.25] * 3}],
    ),
}

PYTHON = {
    "nothing but a tensor": ([TO_TENSOR], "nothing brings the images to one size"),
    "shorter edge only": ([transforms.Resize(32), TO_TENSOR], "brings the images to one size"),
    "no tensor": ([CROP], "ToTensor or PILToTensor is missing"),
    "own blur": ([CROP, GaussianBlur(), TO_TENSOR], "transform 2, test_lowering.GaussianBlur, has no native form (test_lowering.py:"),
    "own crop": ([OwnCrop(32), TO_TENSOR], "transform 1, test_lowering.OwnCrop, has no native form"),
    "a lambda": ([CROP, transforms.Lambda(lambda image: image.rotate(3)), TO_TENSOR], "`image.rotate(3)`"),
    "a function": ([CROP, first_only, TO_TENSOR], "transform 2, sample_datasets.first_only, has no native form"),
    "blur": ([CROP, transforms.GaussianBlur(3), TO_TENSOR], "GaussianBlur, has no native form: torch computes its weights with"),
    "other interpolation": ([transforms.RandomResizedCrop(32, interpolation=InterpolationMode.LANCZOS), TO_TENSOR], "interpolation lanczos"),
    "no antialias": ([transforms.RandomResizedCrop(32, antialias=False), TO_TENSOR], "antialias=False"),
    "deviation of zero": ([CROP, TO_TENSOR, transforms.Normalize([0.5] * 3, [0.0] * 3)], "standard deviation of zero"),
    "two channels": ([CROP, TO_TENSOR, transforms.Normalize([0.5] * 2, [0.5] * 2)], "2 channels"),
    "one channel, and three means": ([CROP, transforms.Grayscale(), TO_TENSOR, NORMALIZE], "has 3 channels, not 1"),
    "random values": ([CROP, TO_TENSOR, transforms.RandomErasing(value="random")], "random values"),
    "contrast of a tensor of any size": ([v2.ToImage(), v2.ColorJitter(0, 0.4), CROP], "ColorJitter, takes the mean of more than 66052 pixels, or of any number"),
    "colours of a tensor in the first generation": ([CROP, v2.ToImage(), transforms.ColorJitter(0.4)], "ColorJitter, rounds otherwise on a tensor in the first generation"),
    "colours of a grey tensor": ([CROP, v2.ToImage(), v2.Grayscale(), v2.ColorJitter(0.4)], "ColorJitter, has no native form on a tensor of one channel"),
    "threshold of a tensor": ([CROP, v2.ToImage(), v2.RandomSolarize(-1)], "RandomSolarize, has a threshold of -1 on a tensor"),
    "jitter of floats": ([CROP, TO_TENSOR, v2.ColorJitter(0.4)], "ColorJitter, has no native form on a tensor of floats"),
    "erasing of bytes": ([CROP, v2.ToImage(), v2.RandomErasing()], "RandomErasing, has no native form on a tensor of bytes"),
    "scale by a number": ([CROP, v2.ToImage(), v2.ToDtype(torch.float32, scale=1)], "not to uint8 or float32"),
    "other floats": ([CROP, transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float64)], "is not from bytes to float32"),
    "bytes of floats": ([CROP, TO_TENSOR, v2.ToDtype(torch.uint8, scale=True)], "not to uint8 or float32"),
    "bytes resized as floats": ([transforms.PILToTensor(), transforms.Resize((24, 32))], "Resize, resizes a tensor of bytes as one of floats"),
    "bytes resized to the nearest": ([v2.ToImage(), v2.Resize((24, 32), interpolation=transforms.InterpolationMode.NEAREST)], "resizes a tensor of bytes as one of floats"),
    "bytes resized without a filter": ([v2.ToImage(), v2.Resize((24, 32), antialias=None)], "resizes a tensor of bytes as one of floats"),
    "floats resized": ([TO_TENSOR, v2.Resize((24, 32))], "Resize, has no native form on a tensor of floats"),
    "bytes mirrored at the border": ([CROP, v2.ToImage(), v2.Pad(3, padding_mode="reflect")], "pads a tensor with more than one whole number"),
    "bytes with a coloured border": ([CROP, v2.ToImage(), v2.Pad(3, fill=(1, 2, 3))], "pads a tensor with more than one whole number"),
    "floats with a border": ([CROP, TO_TENSOR, transforms.RandomCrop(32, padding=4)], "may add a border to a tensor of floats"),
    "floats moved after erasing and normalising": ([CROP, TO_TENSOR, transforms.RandomErasing(), NORMALIZE, transforms.RandomHorizontalFlip()], "RandomHorizontalFlip, has no native form on a tensor of floats"),
    "a text for an interpolation": ([transforms.Resize((9, 9), interpolation="bicubic"), TO_TENSOR], "has a text for its interpolation"),
    "a mean that is no number": ([CROP, TO_TENSOR, transforms.Normalize([float("nan")], [1])], "has a number that is not finite"),
    "floats of unknown size": ([TO_TENSOR, transforms.CenterCrop(20)], "may add a border to a tensor of floats"),
    "floats moved after erasing": ([CROP, TO_TENSOR, transforms.RandomErasing(), transforms.RandomHorizontalFlip()], "RandomHorizontalFlip, has no native form on a tensor of floats"),
    "negative border": ([CROP, transforms.Pad(-1), TO_TENSOR], "padding -1"),
    "bright border": ([CROP, transforms.Pad(1, fill=256), TO_TENSOR], "fill 256"),
    "two borders": ([v2.RandomCrop(32, padding=1, pad_if_needed=True, padding_mode="edge"), TO_TENSOR], "pads in two ways"),
    "a large result": ([CROP, transforms.Pad(16384), TO_TENSOR], "a side above 16384"),
    "applied blur": ([CROP, transforms.RandomApply([transforms.GaussianBlur(3)]), TO_TENSOR], "applies torchvision.transforms.GaussianBlur, which has no"),
    "applied crop": ([CROP, transforms.RandomApply([transforms.RandomCrop(32, 4)]), TO_TENSOR], "applies transforms of the size"),
    "applied to a tensor": ([CROP, transforms.RandomApply([TO_TENSOR])], "to tensors"),
    "applied twice": ([CROP, transforms.RandomApply([v2.RandomInvert()]), TO_TENSOR], "applied at random themselves"),
    "augmented before the size is known": ([transforms.RandAugment(), CROP, TO_TENSOR], "depends on the size of an image"),
    "bicubic augmentation": ([CROP, transforms.AutoAugment(interpolation=InterpolationMode.BICUBIC), TO_TENSOR], "interpolation bicubic"),
    "no such magnitude": ([CROP, transforms.RandAugment(magnitude=31), TO_TENSOR], "magnitude 31 of 31"),
    "many augmentations": ([CROP, transforms.RandAugment(num_ops=65), TO_TENSOR], "more than 64 operations"),
    "mixed augmentation": ([CROP, transforms.AugMix(), TO_TENSOR], "AugMix, has no native form"),
    "no bits": ([CROP, transforms.RandomPosterize(0), TO_TENSOR], "other than 1 to 8 bits"),
    "larger by rotation": ([CROP, transforms.RandomRotation(9, expand=True), TO_TENSOR], "changes the size"),
}
with contextlib.suppress(ValueError):  # torchvision takes it since 0.19.
    PYTHON["no size"] = ([v2.Resize(None, max_size=30), CROP, TO_TENSOR], "size None")


def test_augmentations_carry_torchvisions_own_magnitudes(image_root):
    def ops_of(*steps):
        spec, _ = specification_of(loader_for(ImageFolder(image_root, transforms.Compose([CROP, *steps, TO_TENSOR]))))
        return spec["ops"][2:-1]

    rand = transforms.RandAugment(num_ops=2)
    first, second = ops_of(rand)
    assert first == second and first["op"] == "random_augment" and "generation" not in first
    space = rand._augmentation_space(31, (32, 32))
    assert [choice["name"] for choice in first["choices"]] == [name.lower().replace("x", "_x").replace("y", "_y") if name[:5] in ("Shear", "Trans") else name.lower()
                                                               for name in space]
    by_name = {choice["name"]: choice for choice in first["choices"]}
    assert by_name["rotate"] == {"name": "rotate", "magnitudes": [space["Rotate"][0][9].item()], "signed": True}
    assert by_name["translate_x"]["magnitudes"] == [float(int(space["TranslateX"][0][9].item()))]
    assert by_name["identity"] == {"name": "identity"}
    trivial = ops_of(v2.TrivialAugmentWide(num_magnitude_bins=7))[0]
    assert trivial["generation"] == 2
    assert next(choice for choice in trivial["choices"] if choice["name"] == "solarize")["magnitudes"][0] == 255.0
    assert all(len(choice.get("magnitudes", [0] * 7)) == 7 for choice in trivial["choices"])
    auto = loader_for(ImageFolder(image_root, transforms.Compose([CROP_OF_ALL, transforms.AutoAugment(), TO_TENSOR])))
    assert describe_loader(auto, lowering=True).native.draws
    policies = ops_of(transforms.AutoAugment())[0]["policies"]
    assert len(policies) == 25 and policies[0][0]["p"] == 0.4 and policies[0][0]["name"] == "posterize"


def test_every_obstacle_is_named(image_root):
    steps = [OwnCrop(32), transforms.GaussianBlur(3), TO_TENSOR, transforms.Normalize([0.5] * 2, [0.5] * 2)]
    folder = ImageFolder(image_root, transforms.Compose(steps), target_transform=float, loader=first_only)
    text = loader_for(folder, collate_fn=first_only).explain()
    for part in ("collate_fn is", "loader is", "target_transform float", "transform 1, ", "transform 2, ", "transform 4, "):
        assert part in text
    assert "transform 3" not in text and "one size" not in text


def loader_for(dataset, **arguments):
    return DataLoader(dataset, **{"batch_size": 4, "num_workers": 2, **arguments})


def specification_of(loader) -> tuple[dict, list[tuple[str, int]]]:
    native = describe_loader(loader, lowering=True).native
    return read_specification(native.header + native.files.blob)


@pytest.mark.parametrize("case", NATIVE)
def test_recognised(image_root, case):
    steps, ops = NATIVE[case]
    loader = loader_for(ImageFolder(image_root, transforms.Compose(steps)))
    spec, files = specification_of(loader)
    assert spec["ops"] == ops
    assert spec["pillow"] == int(PIL.__version__.split(".")[0])
    assert spec["source"]["root"] == str(image_root) and spec["source"]["kind"] == "image_files"
    assert [path for path, _ in files][:2] == ["cat/01.jpg", "cat/03.JPG"]
    assert [label for _, label in files] == [0] * 11 + [1] * 12
    assert loader.explain().startswith(f"executor: native\n  23 JPEG files -> images [n, {1 if case == 'one channel' else 3}, ")
    assert loader.explain().endswith("feeder: at /run/sluice/feeder.sock")
    assert [line.strip().split(":")[0].split(",")[0] for line in loader.explain().splitlines()[3:-1]] == [op["op"] for op in ops]


def test_explain_says_which_operations_are_random(image_root):
    steps = [CROP, transforms.RandomApply([transforms.ColorJitter(0.4)], 0.5), transforms.RandomPosterize(3),
             transforms.AutoAugment(), TO_TENSOR]
    assert loader_for(ImageFolder(image_root, transforms.Compose(steps))).explain().splitlines()[2:-1] == [
        "  by the native operations", "    decode_rgb", "    random_resized_crop, random", "    random_apply, random: color_jitter",
        "    random_apply, random: posterize", "    auto_augment, random", "    to_tensor"]


@pytest.mark.parametrize("case", PYTHON)
def test_left_in_python_with_the_reason(image_root, case):
    steps, reason = PYTHON[case]
    text = loader_for(ImageFolder(image_root, transforms.Compose(steps))).explain()
    assert text.startswith("executor: python") and reason in text


GOOD = transforms.Compose(NATIVE["training on ImageNet"][0])

AROUND = {
    "own image loader": (lambda root: loader_for(ImageFolder(root, GOOD, loader=first_only)), "loader is sample_datasets.first_only"),
    "target transform": (lambda root: loader_for(ImageFolder(root, GOOD, target_transform=complex)), "target_transform complex"),
    "another dataset": (lambda root: loader_for(FakeData(transform=GOOD)), "FakeData"),
    "no Compose": (lambda root: loader_for(ImageFolder(root, first_only)), "transform 1, sample_datasets.first_only, has no native form"),
    "one transform": (lambda root: loader_for(ImageFolder(root, TO_TENSOR)), "nothing brings the images to one size"),
    "own collate_fn": (lambda root: loader_for(ImageFolder(root, GOOD), collate_fn=first_only), "sample_datasets.first_only"),
    "no batching": (lambda root: loader_for(ImageFolder(root, GOOD), batch_size=None), "single samples"),
    "subset out of range": (lambda root: loader_for(Subset(ImageFolder(root, GOOD), [0, 99])), "indices"),
    "subset of a subset out of range": (lambda root: loader_for(Subset(Subset(ImageFolder(root, GOOD), [0]), [1])), "indices"),
}


@pytest.mark.parametrize("case", AROUND)
def test_what_surrounds_the_transforms_counts_too(image_root, case):
    make, reason = AROUND[case]
    text = make(image_root).explain()
    assert text.startswith("executor: python") and reason in text


def test_files_of_other_formats_by_name(image_root, tmp_path):
    root = tmp_path / "copy"
    shutil.copytree(image_root, root)
    (root / "cat" / "01.jpg").rename(root / "cat" / "01.PNG")
    assert "\n  22 JPEG and 1 PNG files -> images [n, 3, " in loader_for(ImageFolder(root, GOOD)).explain()
    (root / "cat" / "01.PNG").rename(root / "cat" / "01.webp")
    (root / "cat" / "07.jpg").rename(root / "cat" / "07.png")
    assert "\n  21 JPEG, 1 PNG and 1 WebP files -> images [n, 3, " in loader_for(ImageFolder(root, GOOD)).explain()
    (root / "cat" / "01.webp").rename(root / "cat" / "01.bmp")
    assert "01.bmp is not a JPEG, PNG or WebP file" in loader_for(ImageFolder(root, GOOD)).explain()


def test_subsets_list_their_own_files(image_root):
    folder = ImageFolder(image_root, GOOD)
    _, files = specification_of(loader_for(Subset(Subset(folder, [20, 3, 7, -1]), [3, 0, 2])))
    assert files == [(folder.samples[n][0].removeprefix(f"{image_root}/"), folder.samples[n][1]) for n in (22, 20, 7)]


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
    (dict(multiprocessing_context="spawn"), "multiprocessing_context"),
])
def test_explains_what_torch_does_itself(image_root, arguments, reason):
    text = loader_for(ImageFolder(image_root, GOOD), **arguments).explain()
    assert text.startswith("executor: torch's own") and reason in text


def test_a_pillow_of_another_name_stays_in_python(image_root, monkeypatch):
    def not_there(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", not_there)
    assert "not a released Pillow" in loader_for(ImageFolder(image_root, GOOD)).explain()


@pytest.mark.parametrize("limit, want", [(1000, 1000), (None, None), (0.5, "MAX_IMAGE_PIXELS is 0.5")])
def test_pillows_limit_of_pixels_goes_along(image_root, monkeypatch, limit, want):
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", limit)
    loader = loader_for(ImageFolder(image_root, GOOD))
    if isinstance(want, str):
        assert want in loader.explain()
    else:
        assert specification_of(loader)[0].get("max_image_pixels") == want
