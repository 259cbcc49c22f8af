"""PNG files of every kind, natively decoded, against Pillow's own: the same bytes, or none. Beside torch_conformance_test.py, whose
program it runs."""

import io
import pathlib
import struct
import sys
import zlib

import pytest
import torchvision.transforms as transforms
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "testing"))
from png_files import GREY, GREY_ALPHA, KINDS, PALETTE, RGB, RGB_ALPHA, around, chunk, png, rows_of  # noqa: E402
from torch_conformance_test import PIPELINES, assert_left_to_pillow, compare, picture  # noqa: E402

SIZES = [(1, 1), (2, 3), (3, 2), (7, 8), (8, 7), (9, 16), (33, 33), (64, 1), (1, 64), (150, 101)]
DECODE = [{"op": "decode_rgb"}]
WORDS = b"words\0\0" + zlib.compress(b"x" * 1000)


def resized(size):
    """Every sample of a pipeline has one size: that of the file, which is no resize."""
    return [*DECODE, {"op": "center_crop", "size": [size[1], size[0]]}]


def assert_same(tmp_path, files, size):
    names = []
    for number, file in enumerate(files):
        names.append(f"{number}.png")
        (tmp_path / names[-1]).write_bytes(file)
    compare(tmp_path, tmp_path, names, resized(size), transforms.PILToTensor())


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_every_kind_has_pillows_bytes(tmp_path, size, interlaced):
    assert_same(tmp_path, [png(size, colour, depth, interlaced, seed) for colour, depth in KINDS for seed in range(3)], size)


def test_what_pillow_writes_has_pillows_bytes(tmp_path):
    size, files = (131, 97), []
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        for options in ({}, {"compress_level": 0}, {"optimize": True}, {"dpi": (72, 72), "icc_profile": b"profile" * 400}):
            file = io.BytesIO()
            picture(*size, len(files)).convert(mode).save(file, "PNG", **options)
            files.append(file.getvalue())
    for colours in (2, 5, 16, 200):
        file = io.BytesIO()
        picture(*size, colours).quantize(colours).save(file, "PNG", transparency=1)
        files.append(file.getvalue())
    assert_same(tmp_path, files, size)


TRANSPARENCY = {
    "grey": (GREY, 8, struct.pack(">H", 7)),
    "grey of more than it has": (GREY, 8, struct.pack(">H", 7000)),
    "a bit": (GREY, 1, struct.pack(">H", 1)),
    "colour": (RGB, 8, struct.pack(">HHH", 7, 8, 9)),
    "colour of 16 bits": (RGB, 16, struct.pack(">HHH", 7000, 8, 60000)),
    "one of a palette": (PALETTE, 8, b"\xff\xff\0\xff"),
    "several of a palette": (PALETTE, 8, bytes(range(256))),
    "some of a small palette": (PALETTE, 2, b"\x10\x20"),
}
METADATA = {
    "gamma and the like": [chunk(b"gAMA", bytes(4)), chunk(b"sRGB", b"\0"), chunk(b"cHRM", bytes(32)), chunk(b"pHYs", bytes(9))],
    "an orientation": [chunk(b"eXIf", b"MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0")],
    "text": [chunk(b"tEXt", b"a\0b"), chunk(b"zTXt", WORDS), chunk(b"iTXt", b"words\0\1\0\0\0" + zlib.compress(b"y" * 99)), chunk(b"iTXt", b"a\0\0\0\0\0c")],
    "a profile": [chunk(b"iCCP", WORDS)],
    "ancillary chunks without a use": [chunk(b"prVt", b"x"), chunk(b"tIME", bytes(7)), chunk(b"bKGD", bytes(6)), chunk(b"sBIT", b"\5\5\5")],
}


@pytest.mark.filterwarnings("ignore:Palette images with Transparency")
@pytest.mark.parametrize("name", TRANSPARENCY)
def test_transparency_is_dropped(tmp_path, name):
    colour, depth, data = TRANSPARENCY[name]
    assert_same(tmp_path, [png((20, 15), colour, depth, before=[chunk(b"tRNS", data)])], (20, 15))


@pytest.mark.parametrize("name", METADATA)
def test_metadata_change_nothing(tmp_path, name):
    files = [png((20, 15), before=METADATA[name]), png((20, 15), behind=METADATA[name]), png((20, 15), GREY_ALPHA, before=METADATA[name], chunk_bytes=99)]
    assert_same(tmp_path, [*files, png((20, 15)) + b"rubbish"], (20, 15))


SIZE = (40, 30)
STREAM = zlib.compress(rows_of(SIZE, RGB, 8))


def checksum_changed(file, name):
    at = file.index(name) - 4
    end = at + 12 + struct.unpack_from(">I", file, at)[0]
    return file[: end - 1] + bytes([file[end - 1] ^ 1]) + file[end:]


# What a native pipeline leaves to Pillow, and what that says of it: an error, or nothing if it takes the file.
LEFT_TO_PILLOW = {
    "16 bits of grey": (png(SIZE, GREY, 16), None),
    "a palette without the colours": (png(SIZE, PALETTE, colours=9), None),
    "an animation": (png(SIZE, before=[chunk(b"acTL", struct.pack(">II", 1, 0))]), None),
    "more rows than it says": (around(SIZE, RGB, 8, zlib.compress(rows_of((40, 31), RGB, 8))), None),
    "a wrong checksum of a text": (checksum_changed(png(SIZE, before=[chunk(b"tEXt", b"a\0b")]), b"tEXt"), "cannot identify"),
    "a wrong checksum of the header": (checksum_changed(png(SIZE), b"IHDR"), "cannot identify"),
    "fewer rows than it says": (around(SIZE, RGB, 8, zlib.compress(rows_of((40, 29), RGB, 8))), None),
    "a filter that there is not": (around(SIZE, RGB, 8, zlib.compress(b"\7" + rows_of(SIZE, RGB, 8)[1:])), "."),
    "a changed byte": (around(SIZE, RGB, 8, STREAM[:600] + bytes([STREAM[600] ^ 9]) + STREAM[601:]), "."),
    "a stream that ends early": (around(SIZE, RGB, 8, STREAM[:-900]), "truncated"),
    "a file that ends early": (png(SIZE)[:-700], "truncated"),
    "a short gamma": (png(SIZE, before=[chunk(b"gAMA", b"")]), "."),
    "a text too long": (png(SIZE, before=[chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(2 << 20)))]), "(?i)too large"),
}


@pytest.mark.parametrize("name", LEFT_TO_PILLOW)
def test_what_pillow_has_to_decide_is_left_to_it(tmp_path, name):
    assert_left_to_pillow(tmp_path / "0.png", *LEFT_TO_PILLOW[name])


def test_a_wrong_checksum_of_rows_concerns_nobody(tmp_path):
    assert_same(tmp_path, [checksum_changed(png(SIZE), b"IDAT")], SIZE)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_give_pillows_bytes_in_a_mixed_folder(tmp_path, name):
    names = []
    for number, (width, height) in enumerate([(500, 375), (64, 48), (225, 224), (9, 8)]):
        image = picture(width, height, number)
        for mode, format in [("RGB", "PNG"), ("RGBA", "PNG"), ("P", "PNG"), ("L", "PNG"), ("RGB", "JPEG")]:
            names.append(f"{width}-{mode}.{format.lower()}")
            image.convert(mode).save(tmp_path / names[-1], format)
    names.append("a PNG by another name.jpg")
    (tmp_path / names[-1]).write_bytes(png((99, 77), RGB_ALPHA, 16, True))
    for first_seed in (1, 500):
        compare(tmp_path, tmp_path, names, *PIPELINES[name], first_seed)
