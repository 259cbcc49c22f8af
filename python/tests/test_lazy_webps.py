"""Which WebP files are decoded natively, when, and what is left of them then (test_lazy_images.py has what all formats share)."""

from __future__ import annotations

import io

import numpy
import pytest
from PIL import Image
from PIL.WebPImagePlugin import WebPImageFile

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import DAMAGED, FILES
from test_lazy_images import installed, native_calls, pillow_alone, same  # noqa: F401

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)

WEBP_KINDS = {"WebP": True, "WebP with alpha": True, "lossless WebP": True, "lossless WebP with alpha": True, "WebP with a profile": True,
              "animated WebP": False}  # fmt: skip


@pytest.mark.parametrize("name", WEBP_KINDS)
def test_usual_webps_run_natively_and_others_do_not(native_calls, name):  # noqa: F811
    numpy.asarray(Image.open(io.BytesIO(FILES[name])).convert("RGB").crop((1, 2, 9, 9)))
    assert [made for _, made in native_calls] == [True] * WEBP_KINDS[name]


def test_a_webp_is_decoded_once_where_pillow_decodes_it(native_calls):  # noqa: F811
    opened = Image.open(io.BytesIO(FILES["large WebP"]))
    assert native_calls == []
    image = opened.convert("RGB")
    assert [made for _, made in native_calls] == [True]
    array = numpy.array(image.crop((10, 20, 200, 180)).resize((64, 64), 2).transpose(0))
    assert array.shape == (64, 64, 3) and len(native_calls) == 1
    numpy.array(image.crop((1, 2, 90, 80)))
    assert len(native_calls) == 1


def test_the_native_library_leaves_damage_and_rubbish_to_pillow(native_calls):  # noqa: F811
    Image.open(io.BytesIO(FILES["rubbish behind a WebP"])).convert("RGB")
    with pytest.raises(OSError, match="failed to read"):
        Image.open(io.BytesIO(DAMAGED["half of a WebP's pixels"])).convert("RGB")
    assert [made for _, made in native_calls] == [False, False]


@pytest.mark.parametrize("name", ["WebP", "WebP with alpha", "WebP with a profile", "animated WebP"])
def test_what_pillow_knows_of_a_webp_once_it_is_loaded(name):
    def known(image):
        image.convert("RGB")
        return image.n_frames, image.is_animated, image.tell(), image.tile, image.fp is None, image.convert("RGBA").tobytes()

    same(FILES[name], known)


def test_a_webp_is_what_it_was_when_it_was_opened():
    """Pillow has read all of it by then."""

    def of_a_changed_file(close):
        file = io.BytesIO(FILES["WebP"])
        image = Image.open(file)
        place = file.tell()
        file.seek(0)
        file.write(b"something else")
        if close:
            file.close()
        return place, image.convert("RGB").tobytes()

    for close in (False, True):
        with pillow_alone():
            expected = of_a_changed_file(close)
        assert of_a_changed_file(close) == expected


def test_a_webp_becomes_pillows_own():
    opened = Image.open(io.BytesIO(FILES["WebP"]))
    assert type(opened) is not WebPImageFile and isinstance(opened, WebPImageFile)
    opened.load()
    assert type(opened) is WebPImageFile and not [name for name in vars(opened) if "_sluice" in name]
