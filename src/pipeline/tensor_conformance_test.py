"""The native pipeline against torchvision's transforms on tensors: of bytes, which torch resizes with other weights than Pillow, and of floats."""

import random

import pytest
import torch
import torchvision.transforms as transforms
from PIL import Image
from torch_conformance_test import BICUBIC, BILINEAR, FLIP_AFTER, MEAN, STD, TO_SQUARE, compare, image_folder, ops_of  # noqa: F401
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

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
    "floats": [TO_SQUARE, transforms.ToTensor(), transforms.Normalize(MEAN, STD), FLIP_AFTER, v2.CenterCrop(50), transforms.RandomCrop(40), transforms.RandomErasing(0.5)],
    "floats from 0 to 255": [TO_SQUARE, v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize([110], [60]), FLIP_AFTER],
}  # fmt: skip


def compare_lowered(tmp_path, folder, names, steps):
    transform, obstacles = transforms.Compose(steps), []
    ops = ops_of(transform, obstacles)
    assert not obstacles
    compare(tmp_path, folder, names, ops, transform)


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
