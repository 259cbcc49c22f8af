"""Which PNG files decode late, and what is left of them then (test_lazy_images.py has what all formats share)."""

from __future__ import annotations

import io

import numpy
import pytest
from PIL import Image

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import FILES
from test_lazy_images import installed, native_calls, same  # noqa: F401

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)

PNG_KINDS = {"PNG": True, "PNG with alpha": True, "grey PNG": True, "interlaced PNG": True, "PNG with a profile": True, "rubbish behind a PNG": True,
             "palette": False, "16 bits": False, "bits": False, "grey PNG with alpha": False, "PNG with a chunk behind": False,
             "PNG with a transparent colour": False, "animated PNG": False}  # fmt: skip


@pytest.mark.parametrize("name", PNG_KINDS)
def test_usual_pngs_run_natively_and_others_do_not(native_calls, name):  # noqa: F811
    numpy.asarray(Image.open(io.BytesIO(FILES[name])).convert("RGB").crop((1, 2, 9, 9)))
    assert [made for _, made in native_calls] == [True] * PNG_KINDS[name]


@pytest.mark.parametrize("name", ["PNG", "PNG with a chunk behind", "interlaced PNG"])
def test_what_pillow_knows_of_a_png_once_it_is_loaded(name):
    same(FILES[name], lambda i: (i.load(), i.text, i.png, i.private_chunks, i.n_frames, i.is_animated, i.decoderconfig, i.tile)[1:])
