"""The native pipeline against torchvision's transforms on tensors: of bytes, which torch resizes with other weights than Pillow, and of floats."""

import os
import random

import numpy
import pytest
import torch
import torchvision.transforms as transforms
from PIL import Image
from torch_conformance_test import BICUBIC, BILINEAR, FLIP_AFTER, JITTER, MEAN, STD, TO_SQUARE, compare, image_folder, ops_of  # noqa: F401
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

from sluice.lowering import augmentations

OPERATIONS = {
    "recommended": [
        v2.ToImage(), v2.ToDtype(torch.uint8, scale=True), v2.RandomResizedCrop((64, 51)), FLIP_AFTER, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), v2.ToPureTensor()
    ],
    "enlarged": [v2.PILToTensor(), v2.RandomResizedCrop((301, 64), (0.05, 0.2), interpolation=BICUBIC), transforms.ConvertImageDtype(torch.float32)],
    "flipped before": [v2.ToImage(), v2.RandomVerticalFlip(), v2.Resize(64), v2.CenterCrop(60), v2.ConvertImageDtype()],
    "cropped before": [v2.ToImage(), v2.RandomCrop(90, 3, True, fill=9), v2.Resize((70, 90), interpolation=BICUBIC), v2.Pad([1, 2, 3, 4], fill=77)],
    "largest side": [v2.ToImage(), v2.Resize(60, max_size=80), v2.CenterCrop(80)],
    "resized twice": [transforms.Resize(70), v2.ToImage(), v2.CenterCrop(70), v2.Resize((33, 48)), v2.Resize((48, 33))],
    "first generation": [transforms.PILToTensor(), transforms.RandomCrop(90, 3, True, fill=9), transforms.Pad(2, fill=77), transforms.RandomVerticalFlip()],
    "grey": [v2.ToImage(), v2.Resize(64), v2.Grayscale(3), v2.CenterCrop(60)],
    "grey of one channel": [v2.ToImage(), v2.Resize((64, 51)), v2.Grayscale(), v2.RandomEqualize(0.5), v2.RandomAutocontrast(0.5), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.2])],
    "first generation's colours": [
        transforms.PILToTensor(), transforms.RandomInvert(0.3), transforms.RandomPosterize(3, 0.3), transforms.RandomSolarize(99.5, 0.7), transforms.RandomEqualize(0.7),
        transforms.CenterCrop(60)
    ],
    "floats": [TO_SQUARE, transforms.ToTensor(), transforms.Normalize(MEAN, STD), FLIP_AFTER, v2.CenterCrop(50), transforms.RandomCrop(40), transforms.RandomErasing(0.5)],
    "floats from 0 to 255": [TO_SQUARE, v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize([110], [60]), FLIP_AFTER],
}  # fmt: skip


# Each of these draws much, so several seeds for each image.
SMALLER, SCALED = v2.RandomResizedCrop((57, 64)), v2.ToDtype(torch.float32, scale=True)
COLOURS = {
    **{f"jitter-{name}": [v2.ToImage(), SMALLER, v2.ColorJitter(**{name: JITTER[name]}), FLIP_AFTER] for name in JITTER},
    "jitter": [v2.ToImage(), SMALLER, FLIP_AFTER, v2.ColorJitter(0.8, 0.8, 0.8, 0.5), SCALED, v2.Normalize(MEAN, STD)],
    "jitter-mild": [v2.PILToTensor(), SMALLER, v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(0.3)],
    "jitter-far": [v2.ToImage(), SMALLER, v2.ColorJitter((0, 9), (0, 1e6), (0, 30))],
    "jitter-before": [v2.ToImage(), v2.ColorJitter(0.4, None, 0.8, 0.3), v2.RandomGrayscale(0.2), SMALLER, FLIP_AFTER],
    "jitter-before-crop": [v2.ToImage(), v2.Resize((90, 80)), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), FLIP_AFTER, v2.RandomCrop((57, 64), 4)],
    "apply": [v2.ToImage(), SMALLER, v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), v2.RandomGrayscale(0.2), v2.RandomSolarize(128, 0.2)],
    "random": [
        v2.ToImage(), SMALLER, v2.RandomInvert(0.2), v2.RandomPosterize(5, 0.3), v2.RandomSolarize(180.00000001, 0.3), v2.RandomAutocontrast(0.5), v2.RandomEqualize(0.3),
        v2.RandomAdjustSharpness(1.7, 0.5), v2.ColorJitter(0, 0.5, 0, 0.1), v2.RandomAdjustSharpness(0.2, 0.5)
    ],
    "random-before": [v2.ToImage(), v2.RandomAutocontrast(0.5), v2.RandomAdjustSharpness(0.3, 0.5), v2.RandomEqualize(0.3), v2.RandomGrayscale(0.2), SMALLER, FLIP_AFTER],
    "thin": [v2.ToImage(), v2.Resize((2, 300)), v2.RandomAdjustSharpness(3, 0.5), v2.ColorJitter(0.8, 0.8, 0.8, 0.5)],
    "one pixel": [v2.ToImage(), v2.CenterCrop(1), v2.RandomAutocontrast(0.5), v2.RandomEqualize(0.5), v2.RandomAdjustSharpness(3, 0.5), v2.ColorJitter(0.8, 0.8, 0.8, 0.5)],
    "largest": [v2.ToImage(), v2.CenterCrop((254, 260)), v2.ColorJitter(0.8, 0.8, 0.8, 0.5)],  # 66,040 pixels
}  # fmt: skip


def compare_lowered(tmp_path, folder, names, steps):
    transform, obstacles = transforms.Compose(steps), []
    ops = ops_of(transform, obstacles)
    assert not obstacles
    compare(tmp_path, folder, names, ops, transform)


@pytest.mark.parametrize("name", COLOURS)
def test_colours_are_the_same_bytes(tmp_path, image_folder, name):  # noqa: F811
    folder, names = image_folder
    compare_lowered(tmp_path, folder, names * int(os.environ.get("SLUICE_AUGMENTATION_ROUNDS", "3")), COLOURS[name])


@pytest.fixture(scope="module")
def all_colours(tmp_path_factory):
    """Files without loss, whose 16 million pixels are each of another colour."""
    folder = tmp_path_factory.mktemp("colours")
    for number, image in enumerate(numpy.arange(1 << 24, dtype=">u4").view(numpy.uint8).reshape(16, 1024, 1024, 4)[..., 1:]):
        Image.fromarray(numpy.ascontiguousarray(image)).save(folder / f"{number}.png", compress_level=1)
    return folder, [f"{number}.png" for number in range(16)]


@pytest.mark.parametrize("hue", [-0.3, -1e-8, 0.1, 0.5])
def test_every_colour_turns_alike(tmp_path, all_colours, hue):
    compare_lowered(tmp_path, *all_colours, [v2.ToImage(), v2.ColorJitter(hue=(hue, hue)), v2.CenterCrop(1024)])


@pytest.mark.parametrize("saturation", [0, 0.6, 1.4])
def test_every_colour_is_blended_alike(tmp_path, all_colours, saturation):
    compare_lowered(tmp_path, *all_colours, [v2.ToImage(), v2.ColorJitter(saturation=(saturation, saturation)), v2.CenterCrop(1024)])


def test_every_colour_has_the_same_grey(tmp_path, all_colours):
    compare_lowered(tmp_path, *all_colours, [v2.ToImage(), v2.Grayscale(), v2.CenterCrop(1024)])


def test_all_levels_are_blended_alike(tmp_path):
    """Many factors, each drawn."""
    Image.fromarray(numpy.arange(256, dtype="u1").reshape(16, 16)).convert("RGB").save(tmp_path / "levels.png")
    names = ["levels.png"] * 4000
    compare_lowered(tmp_path, tmp_path, names, [v2.ToImage(), v2.CenterCrop(16), v2.ColorJitter(1, 1, 1)])


OTHERS = {
    "first generation": [transforms.PILToTensor(), transforms.CenterCrop(50), transforms.ColorJitter(0.4)],
    "grey in the first generation": [transforms.PILToTensor(), transforms.Grayscale(3)],
    "sharp in the first generation": [transforms.PILToTensor(), transforms.RandomAdjustSharpness(2)],
    "autocontrast in the first generation": [transforms.PILToTensor(), transforms.RandomAutocontrast()],
    "contrast of many pixels": [v2.ToImage(), v2.CenterCrop((254, 261)), v2.ColorJitter(0, 0.4)],
    "contrast of any number of pixels": [v2.ToImage(), v2.Resize(64), v2.ColorJitter(0, 0.4)],
    "one channel": [v2.ToImage(), v2.CenterCrop(50), v2.Grayscale(), v2.ColorJitter(0.4)],
    "no threshold of bytes": [v2.ToImage(), v2.RandomSolarize(256.0)],
    "floats": [TO_SQUARE, v2.ToImage(), SCALED, v2.ColorJitter(0.4)],
    "turned": [v2.ToImage(), v2.RandomRotation(9)],
}


@pytest.mark.parametrize("name", OTHERS)
def test_others_stay_python(name):
    obstacles = []
    ops_of(transforms.Compose([*OTHERS[name], v2.CenterCrop(9)]), obstacles)
    assert len(obstacles) == 1


def test_another_arithmetic_stays_python(monkeypatch):
    """As torch has it on processors without FMA."""
    monkeypatch.setattr(augmentations, "_are_tensors_known", lambda: False)
    obstacles = []
    ops_of(transforms.Compose(COLOURS["jitter"]), obstacles)
    assert len(obstacles) == 1 and "rounds otherwise than executors do" in obstacles[0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_the_same_bytes(tmp_path, image_folder, name):  # noqa: F811
    compare_lowered(tmp_path, *image_folder, OPERATIONS[name])


@pytest.mark.parametrize("kind", [BILINEAR, BICUBIC])
@pytest.mark.parametrize("largest", [3, 60, 900])
def test_sizes_are_the_same_bytes(tmp_path, image_folder, kind, largest):  # noqa: F811
    """A weight has more bits the less of an image it is."""
    generator = random.Random(largest)
    for _ in range(6):
        size = [generator.randint(1, largest) for _ in range(2)]
        compare_lowered(tmp_path, *image_folder, [v2.PILToTensor(), v2.Resize(size, interpolation=kind)])


def test_torchvision_decodes_to_pillows_bytes(image_folder):  # noqa: F811
    folder, names = image_folder
    for name in names:
        with Image.open(folder / name) as image:
            assert torch.equal(decode_image(folder / name, ImageReadMode.RGB), pil_to_tensor(image.convert("RGB"))), name
