"""Images in memory, coloured and grey, against torchvision's transforms on Pillow's images of them: the same bytes. Beside torch_conformance_test.py, whose
program and transforms it uses.

A native grey image has three equal channels and gives one of them. That holds only where Pillow does to a grey image what it does to each of those."""

import json

import numpy
import PIL
import pytest
import torch
import torchvision.transforms as transforms
from PIL import Image
from torchvision.transforms import v2

from torch_conformance_test import AUGMENTATIONS, BILINEAR, MEAN, OPERATIONS, STD, TO_SQUARE, picture, probe  # puts python/ on the path
from client_lowering import lowered
from sluice.lowering.lowered import Lowered

SIZES = {"MNIST": (28, 28), "wide": (131, 97), "tall": (16, 45), "one row": (60, 1), "one pixel": (1, 1)}
PER_SIZE = 40
BORDERS = transforms.Pad(80, padding_mode="edge"), transforms.Resize((65, 65))  # So that every operation has enough of each image.

ONLY_HERE = {
    "no operation": [],
    "as MNIST": [transforms.Pad(90), transforms.RandomCrop(28, padding=4, fill=3), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))],
    "one mean": [transforms.ToTensor(), transforms.Normalize(0.5, 0.25)],
    "v2": [v2.Pad(7, fill=5), v2.RandomRotation(30, BILINEAR, fill=200), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.5])],
    "to three": [transforms.Grayscale(3), TO_SQUARE, transforms.ColorJitter(0.4, 0.4, 0.4, 0.4), transforms.ToTensor(), transforms.Normalize(MEAN, STD)],
    "to one": [TO_SQUARE, transforms.Grayscale(), transforms.RandomEqualize(), transforms.RandomAdjustSharpness(2.5), transforms.RandomRotation(20, BILINEAR, fill=9)],
    "to one and back": [v2.Grayscale(1), TO_SQUARE, transforms.RandomAutocontrast(), v2.Grayscale(3), transforms.TrivialAugmentWide()],
    "erased": [TO_SQUARE, transforms.ToTensor(), transforms.RandomErasing(0.8, value=0.25), transforms.Normalize([0.5], [0.5])],
}


def images_of(mode, size):
    """Pictures, noise, and those of few levels, on which what looks at all pixels decides otherwise."""
    images = []
    for number in range(PER_SIZE):
        image = picture(*size, number).convert(mode)
        if number % 4 == 1:
            image = image.point(lambda level: level // 100 * 100)
        elif number % 4 == 2:
            image = Image.fromarray(numpy.random.default_rng(number).integers(0, 256, numpy.array(image).shape, dtype=numpy.uint8))
        elif number % 8 == 3:
            image = Image.new(mode, size, number if mode == "L" else (number, 255, 0))
        images.append(image)
    return images


def compare(tmp_path, mode, size, steps, axes):
    """Whether the steps are native for such images; where they are, that the bytes are torchvision's."""
    if not any(type(step).__name__ in ("ToTensor", "ToImage", "PILToTensor") for step in steps):
        steps = [*steps, transforms.PILToTensor()]
    images, transform, obstacles = images_of(mode, size), transforms.Compose(steps), []
    channels = 3 if mode == "RGB" else 1
    native = lowered(transform, obstacles, Lowered(ops=[], size=(size[1], size[0]), channels=channels))
    if obstacles:
        return False
    pixels = numpy.stack([numpy.array(image).reshape(size[1], size[0], channels) for image in images])
    pixels = numpy.ascontiguousarray(pixels.transpose(0, *(1 + "hwc".index(axis) for axis in axes)))
    source = {"kind": "pixels", "samples": len(images), "height": size[1], "width": size[0], "channels": channels, "axes": axes}
    spec = {"version": 2, "pillow": int(PIL.__version__.split(".")[0]), "source": source, "ops": native.lists()[0]}
    (tmp_path / "specification").write_bytes(json.dumps(spec).encode() + b"\n" + numpy.arange(len(images)).tobytes() + pixels.tobytes())
    made = probe("samples", str(tmp_path / "specification"), lines=[(index, 1000 + index) for index in range(len(images))])
    expected = []
    for index, image in enumerate(images):
        torch.manual_seed(1000 + index)
        expected.append(transform(image).numpy())
        assert expected[-1].shape == (native.own[0].channels, *native.own[0].size)
    each = len(made) // len(images)
    different = [index for index, want in enumerate(expected) if made[index * each : (index + 1) * each] != want.tobytes()]
    assert not different and each == expected[0].nbytes
    return True


@pytest.mark.parametrize("mode, axes", [("RGB", "chw"), ("L", "hwc")])
@pytest.mark.parametrize("name", [*OPERATIONS, *AUGMENTATIONS])
def test_operations_are_the_same_bytes(tmp_path, name, mode, axes):
    steps = [*BORDERS, *(OPERATIONS | AUGMENTATIONS)[name]]
    taken = [compare(tmp_path, mode, size, steps, axes) for size in SIZES.values()]
    # A colour or three means: torchvision refuses them for grey images, but for v2's Normalize, which makes three channels.
    assert all(taken) or (mode == "L" and not any(taken) and name in NOT_GREY)


NOT_GREY = {"pad", "rotation-bilinear", "erasing", "erasing-before", "v2", "trivial-bilinear", *(name for name in AUGMENTATIONS if name.startswith("auto-v2-"))}


@pytest.mark.parametrize("axes", ["hwc", "chw", "cwh", "whc", "wch", "hcw"])
@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("name", ONLY_HERE)
def test_pipelines_of_images_in_memory(tmp_path, name, mode, axes):
    for size in SIZES.values():
        assert compare(tmp_path, mode, size, ONLY_HERE[name], axes)
