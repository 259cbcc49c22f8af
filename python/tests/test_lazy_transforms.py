"""What users do with lazy images: torchvision's transforms, numpy, timm's and Hugging Face's ways to load. The bytes are those of
Pillow's images and torchvision's own functions."""

from __future__ import annotations

import io

import numpy
import pytest
import torch
import torchvision.transforms as v1
import torchvision.transforms.functional as functional
import torchvision.transforms.v2 as v2
from PIL import Image, ImageOps

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import FILES, jpeg
from sluice.media import lazy_images

pytestmark = [pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER), pytest.mark.usefixtures("native_libraries")]

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
NAMES = ("63x38", "49x37", "4:4:4", "one column", "grey", "CMYK", "progressive", "orientation 6", "large", "PNG with alpha", "palette")


def both_ways(work):
    """The outcomes of `work` with Pillow alone and with lazy images, from the same random state."""
    outcomes = []
    for prepare in (lazy_images.remove, lazy_images.install):
        prepare()
        torch.manual_seed(3)
        try:
            outcomes.append(work())
        except Exception as error:
            outcomes.append((type(error), str(error)))
    return outcomes


def assert_equal(expected, found):
    assert isinstance(found, type(expected))
    if isinstance(expected, torch.Tensor):
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if expected.numel() > 3:  # Of one pixel, strides say nothing.
            assert found.stride() == expected.stride()
        assert found.numpy().tobytes() == expected.numpy().tobytes()
    elif isinstance(expected, numpy.ndarray):
        assert found.shape == expected.shape and found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    elif isinstance(expected, Image.Image):
        assert (found.mode, found.size, found.tobytes()) == (expected.mode, expected.size, expected.tobytes())
    elif isinstance(expected, (list, tuple)) and expected and not isinstance(expected[0], type):
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            assert_equal(one, other)
    else:
        assert found == expected


def opened(name):
    return Image.open(io.BytesIO(FILES[name])).convert("RGB")


def timm_evaluation(name):
    """Like timm's: to a share of the size, centre, array, tensor."""
    image = v1.CenterCrop(24)(v1.Resize(27, v1.InterpolationMode.BICUBIC)(opened(name)))
    array = numpy.array(image, dtype=numpy.uint8)
    return numpy.rollaxis(array[:, :, ::-1], 2).copy()


def albumentations(name):
    array = numpy.asarray(opened(name))
    top, left = int(torch.randint(0, max(1, array.shape[0] - 20), ())), 0
    return numpy.ascontiguousarray(array[top : top + 20, left : left + 20][:, ::-1])


def hugging_face(name):
    """datasets.Image decodes bytes, loads, and turns the picture as its orientation says."""
    image = Image.open(io.BytesIO(FILES[name]))
    image.load()
    if image.getexif().get(Image.ExifTags.Base.Orientation) is not None:
        image = ImageOps.exif_transpose(image)
    return image.convert("RGB") if image.mode != "RGB" else image


def cached(name):
    """One decoded image, used for several views."""
    image = opened(name)
    step = v1.Compose([v1.RandomResizedCrop(20), v1.RandomHorizontalFlip(), v1.ToTensor()])
    return [step(image) for _ in range(4)]


BEHIND = [v1.ToTensor(), v1.Normalize(MEAN, DEVIATION)]
SCALED = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]
TRANSFORMS = {
    "v1 training": v1.Compose([v1.RandomResizedCrop(24), v1.RandomHorizontalFlip(), *BEHIND]),
    "v1 evaluation": v1.Compose([v1.Resize(32), v1.CenterCrop(28), *BEHIND]),
    "v1 bicubic": v1.Compose([v1.Resize((31, 29), v1.InterpolationMode.BICUBIC), *BEHIND]),
    "v1 nearest": v1.Compose([v1.Resize((31, 29), v1.InterpolationMode.NEAREST), v1.ToTensor()]),
    "v1 to at most": v1.Compose([v1.Resize(40, max_size=50), v1.PILToTensor()]),
    "v1 crop and pad": v1.Compose([v1.RandomCrop(32, padding=4, pad_if_needed=True), v1.RandomHorizontalFlip(), *BEHIND]),
    "v1 five crops": v1.Compose([v1.Resize(40), v1.FiveCrop(20), v1.Lambda(lambda crops: torch.stack([v1.ToTensor()(c) for c in crops]))]),
    "v1 colours": v1.Compose([v1.RandomResizedCrop(24), v1.ColorJitter(0.4, 0.4, 0.4, 0.1), v1.RandomGrayscale(0.5), *BEHIND]),
    "v1 blurred": v1.Compose([v1.RandomResizedCrop(24), v1.GaussianBlur(3), *BEHIND]),
    "v1 turned": v1.Compose([v1.RandomRotation(30), v1.RandomVerticalFlip(), v1.RandomAffine(10, (0.1, 0.1)), *BEHIND]),
    "v1 RandAugment": v1.Compose([v1.RandomResizedCrop(24), v1.RandAugment(), *BEHIND]),
    "v1 TrivialAugment": v1.Compose([v1.RandomResizedCrop(24), v1.TrivialAugmentWide(), *BEHIND]),
    "v1 grey": v1.Compose([v1.Grayscale(), v1.Resize(20), v1.ToTensor()]),
    "v1 grey of three": v1.Compose([v1.Grayscale(3), v1.Resize(20), *BEHIND]),
    "v1 erasing": v1.Compose([v1.Resize((24, 24)), *BEHIND, v1.RandomErasing(1.0)]),
    "v1 in place": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize(MEAN, DEVIATION, inplace=True)]),
    "v1 one mean": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize(0.5, 0.25)]),
    "v1 whole numbers": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize((0, 1, 2), (1, 2, 3))]),
    "v1 deviation of zero": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize(MEAN, [0.1, 0.0, 0.1])]),
    "v1 mean that is no number": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize([float("nan"), 0, 0], DEVIATION)]),
    "v1 tensors as means": v1.Compose([v1.Resize((24, 24)), v1.ToTensor(), v1.Normalize(torch.tensor(MEAN), torch.tensor(DEVIATION))]),
    "v2 training": v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), *SCALED]),
    "v2 antialias": v2.Compose([v2.RandomResizedCrop(24, antialias=True), v2.RandomHorizontalFlip(1.0), *SCALED]),
    "v2 evaluation": v2.Compose([v2.Resize(32), v2.CenterCrop(40), *SCALED]),
    "v2 tensors first": v2.Compose([v2.ToImage(), v2.RandomResizedCrop(24), v2.ToDtype(torch.float32, scale=True)]),
    "v2 colours": v2.Compose([v2.RandomResizedCrop(24), v2.ColorJitter(0.3, 0.3), v2.RandomGrayscale(0.5), *SCALED]),
    "v2 mix": v2.Compose([v2.RandomZoomOut(p=1.0), v2.RandomPhotometricDistort(), v2.RandAugment(), *SCALED]),
    "v2 scale jitter": v2.Compose([v2.ScaleJitter((30, 30)), v2.RandomShortestSize(25), v2.PILToTensor()]),
    "weights' preset": v1._presets.ImageClassification(crop_size=24, resize_size=28),
    "bytes": v1.PILToTensor(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_torchvision(name):
    for file in NAMES:
        expected, found = both_ways(lambda file=file: [TRANSFORMS[name](opened(file)) for _ in range(5)])
        try:
            assert_equal(expected, found)
        except AssertionError as error:
            raise AssertionError(f"{file}: {error}") from None


@pytest.mark.parametrize("load", [timm_evaluation, albumentations, hugging_face, cached])
def test_other_ways_to_load(load):
    for file in NAMES:
        assert_equal(*both_ways(lambda file=file: load(file)))


@pytest.mark.parametrize("size", [(1, 1), (1, 5), (5, 1), (3, 7), (8, 8), (17, 33)])
def test_tensors_of_every_shape(size):
    file = jpeg(40, 40)
    transform = v1.Compose([v1.Resize(size), *BEHIND])
    assert_equal(*both_ways(lambda: transform(Image.open(io.BytesIO(file)))))


def test_every_byte_becomes_torchvisions_float():
    pixels = numpy.arange(256 * 3, dtype=numpy.uint8).reshape(16, 16, 3)
    assert_equal(*both_ways(lambda: functional.to_tensor(Image.fromarray(pixels))))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_another_default_dtype(dtype):
    def work():
        torch.set_default_dtype(dtype)
        try:
            return v1.ToTensor()(opened("large")).float()
        finally:
            torch.set_default_dtype(torch.float32)

    assert_equal(*both_ways(work))


def test_another_default_device():
    def work():
        with torch.device("meta"):
            return functional.to_tensor(opened("large"))

    assert_equal(*both_ways(work))


class OwnImage(Image.Image):
    """Its pixels are others in an array."""

    @property
    def __array_interface__(self):
        return {**super().__array_interface__, "data": bytes(self.width * self.height * 3)}


def test_an_image_class_of_the_users():
    def work():
        image = OwnImage()
        image.im, image._mode, image._size = Image.new("RGB", (9, 8), "red").im, "RGB", (9, 8)
        return functional.to_tensor(image)

    expected, found = both_ways(work)
    assert_equal(expected, found)
    assert not expected.any()


class Twice(v1.Normalize):
    def forward(self, tensor):
        return super().forward(super().forward(tensor))


def hooked():
    transform = v1.Normalize(MEAN, DEVIATION)
    transform.register_forward_hook(lambda module, inputs, output: output * 2)
    return transform


def replaced():
    transform = v1.Normalize(MEAN, DEVIATION)
    transform.forward = lambda tensor: tensor - 7
    return transform


@pytest.mark.parametrize("make", [lambda: Twice(MEAN, DEVIATION), hooked, replaced, lambda: torch.jit.script(v1.Normalize(MEAN, DEVIATION))])
def test_a_normalize_that_is_more_than_torchvisions(make):
    expected, found = both_ways(lambda: make()(functional.to_tensor(opened("large"))))
    assert_equal(expected, found)


def test_a_hook_for_all_modules():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, inputs, output: output + 1)
    try:
        assert_equal(*both_ways(lambda: BEHIND[1](functional.to_tensor(opened("large")))))
    finally:
        handle.remove()


def other_tensors():
    image = torch.rand(3, 9, 8)
    yield from (image.double(), image[None], image[:1], image.permute(0, 2, 1), (image * 255).byte(), image[:, ::2])
    yield from (image.clone().requires_grad_(), numpy.zeros((3, 4, 4), dtype=numpy.float32), torch.zeros(3, 0, 4))


@pytest.mark.parametrize("number", range(9))
def test_normalize_of_other_tensors(number):
    def work():
        result = BEHIND[1](list(other_tensors())[number])
        return (result.detach(), result.requires_grad)

    assert_equal(*both_ways(work))


def test_normalize_leaves_its_tensor_alone():
    lazy_images.install()
    tensor = functional.to_tensor(opened("large"))
    before = tensor.clone()
    assert BEHIND[1](tensor) is not tensor and torch.equal(tensor, before)


def test_after_remove_torchvision_is_as_before():
    to_tensor, call = functional.to_tensor, v1.Normalize.__call__
    lazy_images.install()
    opened("large")
    assert functional.to_tensor != to_tensor and v1.Normalize.__call__ is not call
    lazy_images.remove()
    assert functional.to_tensor is to_tensor and v1.Normalize.__call__ is call and "__call__" not in vars(v1.Normalize)
