"""torchvision's blurs and changes of colour on lazy images: its own bytes, natively where they can be had so."""

from __future__ import annotations

import io

import pytest
import torch
import torchvision.transforms as v1
import torchvision.transforms.functional as functional
import torchvision.transforms.v2 as v2
from PIL import Image

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import FILES
from sluice.media import image_changes, lazy_images
from sluice.media.image_library import ImageLibrary
from test_lazy_transforms import NAMES, assert_equal, both_ways, opened

pytestmark = [pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER), pytest.mark.usefixtures("native_libraries", "one_torch_thread")]

CROPS = {1: v1.RandomResizedCrop(48), 2: v2.RandomResizedCrop(48)}


@pytest.fixture
def native_calls(monkeypatch):
    """The names of the library's functions that have been called."""
    calls = []
    for name in ("adjusted", "blurred"):

        def counted(library, *arguments, name=name, call=getattr(ImageLibrary, name)):
            calls.append(name)
            return call(library, *arguments)

        monkeypatch.setattr(ImageLibrary, name, counted)
    return calls


def several(transform, name):
    """Images of several draws, with all that can be seen of them."""
    images = [transform(opened(name)) for _ in range(4)]
    return [*images, [(isinstance(image, Image.Image), image.mode, image.size, image.format, str(image.info)) for image in images], torch.rand(1)]


TRANSFORMS = {
    "v1 SimCLR": v1.Compose([CROPS[1], v1.RandomApply([v1.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8), v1.RandomGrayscale(0.2), v1.GaussianBlur(23)]),
    "v2 SimCLR": v2.Compose([CROPS[2], v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8), v2.RandomGrayscale(0.2), v2.GaussianBlur(23)]),
    "v1 blurred twice": v1.Compose([CROPS[1], v1.GaussianBlur((3, 9), (0.1, 9.0)), v1.RandomHorizontalFlip(), v1.GaussianBlur(5, 0.4)]),
    "v2 wide blur": v2.Compose([CROPS[2], v2.GaussianBlur((47, 1), (0.01, 30.0))]),
    "v1 hardly blurred": v1.Compose([CROPS[1], v1.GaussianBlur(7, 1e-20)]),
    "v1 whole picture blurred": v1.GaussianBlur(3),
    "v1 window larger than the image": v1.GaussianBlur((3, 401)),
    **{f"v1 {name}": v1.Compose([CROPS[1], v1.ColorJitter(**{name: 0.5})]) for name in ("brightness", "contrast", "saturation", "hue")},
    "v1 grey": v1.Compose([CROPS[1], v1.RandomGrayscale(1.0), v1.ColorJitter(0.5), v1.Grayscale(3)]),
    "v2 grey": v2.Compose([CROPS[2], v2.RandomGrayscale(1.0), v2.GaussianBlur(3), v2.Grayscale(3)]),
    "v1 one channel": v1.Compose([CROPS[1], v1.Grayscale()]),
    "v1 strong colours": v1.ColorJitter(*[(0.0, 30.0)] * 3, 0.5),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_images_are_torchvisions(name):
    for file in NAMES:
        expected, found = both_ways(lambda file=file: several(TRANSFORMS[name], file))
        try:
            assert_equal(expected, found)
        except AssertionError as error:
            raise AssertionError(f"{file}: {error}") from None


def test_simclrs_changes_are_native(native_calls):
    lazy_images.install()
    for generation in (v1, v2):
        native_calls.clear()
        changes = [generation.ColorJitter(0.4, 0.4, 0.4, 0.1), generation.RandomGrayscale(1.0), generation.GaussianBlur(23)]
        image = generation.Compose(changes)(CROPS[1](opened("large")))
        assert native_calls == ["adjusted"] * 5 + ["blurred"]
        assert type(image) is lazy_images.LazyImage


def test_an_image_of_the_caller_stays_as_it_is():
    lazy_images.install()
    image = CROPS[1](opened("large"))
    before = image.tobytes()
    assert functional.adjust_hue(image, 0.25).tobytes() != before and v1.GaussianBlur(9)(image).tobytes() != before
    assert image.tobytes() == before


FACTORS = (0, 1, 0.0, 1.0, -0.5, 0.1, 1e9, float("nan"), float("inf"), torch.tensor(0.5), "bright")


@pytest.mark.parametrize("name", ["adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue"])
def test_any_factor_does_what_torchvision_does(name):
    for mode in ("RGB", "L", "CMYK", "RGBA"):
        for factor in FACTORS:
            assert_equal(*both_ways(lambda mode=mode, factor=factor: getattr(functional, name)(opened("large").convert(mode), factor)))


def test_the_info_of_an_image_with_transparency():
    def work():
        image = opened("large")
        image.info["transparency"] = (1, 2, 3)
        return [str(image.info) for image in (functional.adjust_saturation(image, 0.5), functional.adjust_brightness(image, 0.5))]

    assert_equal(*both_ways(work))


class Twice(v1.GaussianBlur):
    def forward(self, image):
        return super().forward(super().forward(image))


def hooked():
    transform = v1.GaussianBlur(5)
    transform.register_forward_hook(lambda module, inputs, output: functional.invert(output))
    return transform


@pytest.mark.parametrize("make", [lambda: Twice(5), hooked])
def test_a_blur_that_is_more_than_torchvisions(make):
    assert_equal(*both_ways(lambda: make()(opened("large"))))


def test_torchscript_compiles_the_transforms():
    def work():
        image = functional.pil_to_tensor(CROPS[1](opened("large")))
        return torch.jit.script(torch.nn.Sequential(v1.GaussianBlur(5, 1.0), v1.ColorJitter(0.5, 0.5, 0.5, 0.1)))(image)

    assert_equal(*both_ways(work))


def test_where_torch_adds_up_otherwise_torch_blurs(native_calls, monkeypatch):
    lazy_images.install()
    convolution = torch.nn.functional.conv2d
    monkeypatch.setattr(image_changes.functional, "conv2d", lambda *arguments, **options: torch.nextafter(convolution(*arguments, **options), torch.tensor(0.0)))
    v1.GaussianBlur(3)(opened("large"))
    assert native_calls == []


def test_shapes_beyond_the_proofs_kept_are_torchs(native_calls, monkeypatch):
    monkeypatch.setattr(image_changes, "_MOST_PROOFS", 1)
    lazy_images.install()
    blur = v1.GaussianBlur(3)
    for side in (20, 21, 20):
        blur(v1.Resize((side, side))(opened("large")))
    assert native_calls == ["blurred"] * 2


def test_a_blur_that_the_library_refuses_is_torchs(monkeypatch):
    monkeypatch.setattr(ImageLibrary, "blurred", lambda *arguments: None)
    assert_equal(*both_ways(lambda: several(TRANSFORMS["v1 SimCLR"], "large")))


def test_after_remove_torchvision_is_as_before():
    before = [v1.GaussianBlur.__call__, v2.GaussianBlur.__call__, functional.F_pil.adjust_hue]
    lazy_images.install()
    Image.open(io.BytesIO(FILES["large"]))
    installed = [v1.GaussianBlur.__call__, v2.GaussianBlur.__call__, functional.F_pil.adjust_hue]
    assert all(one is not other for one, other in zip(before, installed, strict=True))
    lazy_images.remove()
    assert [v1.GaussianBlur.__call__, v2.GaussianBlur.__call__, functional.F_pil.adjust_hue] == before
    assert "__call__" not in vars(v1.GaussianBlur) and "__call__" not in vars(v2.GaussianBlur)
