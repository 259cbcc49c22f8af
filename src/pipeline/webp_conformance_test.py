"""WebP files of every kind, natively decoded, against Pillow's own: the same bytes, or none. Beside torch_conformance_test.py, whose
program it runs. Pillow brings its own libwebp, of another version than the native one."""

import io
import pathlib
import struct
import sys

import pytest
import torchvision.transforms as transforms
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "testing"))
from png_files import KINDS as PNG_KINDS  # noqa: E402
from png_files import png  # noqa: E402
from torch_conformance_test import PIPELINES, assert_left_to_pillow, compare, failures, picture  # noqa: E402

SIZES = [(1, 1), (2, 3), (3, 2), (7, 8), (8, 7), (15, 16), (17, 17), (33, 33), (64, 1), (1, 64), (150, 101), (501, 374)]
KINDS = {
    "lossy": [{"quality": quality, "method": method} for quality in (0, 30, 80, 100) for method in (0, 4)],
    "lossy with alpha": [{"quality": 60, "alpha_quality": quality} for quality in (0, 50, 100)],
    "lossless": [{"lossless": True, "quality": quality, "exact": True} for quality in (0, 50, 100)],
    "near palettes": [{"lossless": True, "colours": colours} for colours in (1, 2, 4, 16, 200)],
    "grey": [{"quality": 70}, {"lossless": True}],
    "metadata": [{"quality": 70, "icc_profile": b"profile" * 99, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\1\1\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0", "xmp": b"<x/>"}],
}
MODES = {"lossy with alpha": "RGBA", "grey": "L"}


def webp(size, seed=1, mode="RGB", colours=None, transparent=False, **options):
    """A picture as Pillow writes it, in few colours, or with alpha of all grades."""
    image = picture(*size, seed)
    if colours is not None:
        image = image.quantize(colours)
    image = image.convert(mode)
    if "A" in mode or transparent:
        image.putalpha(picture(*size, seed + 1).convert("L").point(lambda value: 0 if value < 90 else value))
    file = io.BytesIO()
    image.save(file, "WEBP", **options)
    return file.getvalue()


def assert_same(tmp_path, files, size):
    names = []
    for number, file in enumerate(files):
        names.append(f"{number}.webp")
        (tmp_path / names[-1]).write_bytes(file)
    ops = [{"op": "decode_rgb"}, {"op": "center_crop", "size": [size[1], size[0]]}]
    compare(tmp_path, tmp_path, names, ops, transforms.PILToTensor())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_every_kind_has_pillows_bytes(tmp_path, size, kind):
    files = [webp(size, seed, MODES.get(kind, "RGB"), **options) for options in KINDS[kind] for seed in (1, 7)]
    if kind == "lossless":
        files += [webp(size, transparent=True, **options) for options in KINDS[kind]]
    assert_same(tmp_path, files, size)


SIZE = (40, 30)
LOSSY, LOSSLESS, ALPHA = webp(SIZE), webp(SIZE, lossless=True), webp(SIZE, mode="RGBA")


def chunks_of(file):
    chunks, at = [], 12
    while at < len(file):
        end = at + 8 + struct.unpack_from("<I", file, at + 4)[0]
        chunks.append((file[at : at + 4], file[at + 8 : end]))
        at = end + end % 2
    return chunks


def webp_of(chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def features(width, height, flags=0):
    return b"VP8X", struct.pack("<I", flags) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]


def shortened(file, chunk, share=0.5):
    chunks = chunks_of(file)
    name, data = chunks[chunk]
    return webp_of([*chunks[:chunk], (name, data[: int(len(data) * share)]), *chunks[chunk + 1 :]])


def animated(frames):
    file = io.BytesIO()
    picture(*SIZE, 1).save(file, "WEBP", save_all=True, append_images=[picture(*SIZE, seed) for seed in frames])
    return file.getvalue()


def test_metadata_in_any_place_change_nothing(tmp_path):
    files = []
    for file in (LOSSY, LOSSLESS, ALPHA):
        chunks = chunks_of(file)
        first, image = (chunks[0], chunks[1:]) if chunks[0][0] == b"VP8X" else (features(*SIZE), chunks)
        files.append(webp_of([first, (b"EXIF", b"x"), (b"XMP ", b"yy"), *image, (b"ICCP", b"profile"), (b"ICCP", b"again")]))
    assert_same(tmp_path, files, SIZE)


# What a native pipeline leaves to Pillow, and what that says of it: an error, or nothing if it takes the file.
LEFT_TO_PILLOW = {
    "an animation": (animated([2, 3]), None),
    "an animation of one frame": (webp_of([features(*SIZE, 2), (b"ANIM", bytes(6)), (b"ANMF", bytes(6) + features(*SIZE)[1][4:] + bytes(4) + webp_of(chunks_of(LOSSY))[12:])]), None),
    "an unknown chunk": (webp_of([features(*SIZE), (b"abcd", b"x"), *chunks_of(LOSSY)]), None),
    "rubbish behind it": (LOSSY + b"rubbish", None),
    "alpha that is not announced": (webp_of([features(*SIZE), *chunks_of(ALPHA)[1:]]), None),
    "cut off": (LOSSY[:-50], "."),
    "a lossless image cut off": (LOSSLESS[:-50], "."),
    "its header alone": (LOSSY[:30], "."),
    "another size than it says": (webp_of([features(41, 30), *chunks_of(LOSSY)]), "."),
    "half of a lossy image": (shortened(LOSSY, 0), "failed to read"),
    "half of a lossless image": (shortened(LOSSLESS, 0), "failed to read"),
    "half of an alpha plane": (shortened(ALPHA, 1, 0.1), "failed to read"),
    "lossless zeros": (webp_of([(b"VP8L", chunks_of(LOSSLESS)[0][1][:9] + b"\xff" * 200)]), "failed to read"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_TO_PILLOW)
def test_what_pillow_has_to_decide_is_left_to_it(tmp_path, name):
    assert_left_to_pillow(tmp_path / "0.webp", *LEFT_TO_PILLOW[name])


def damaged_files():
    """With a byte changed behind the headers of the image, and of its alpha."""
    for file in (LOSSY, LOSSLESS, ALPHA):
        chunks = chunks_of(file)
        for number, (name, data) in enumerate(chunks):
            for at in range(10, len(data), max(1, len(data) // 25)):
                yield webp_of([*chunks[:number], (name, data[:at] + bytes([data[at] ^ 0x24]) + data[at + 1 :]), *chunks[number + 1 :]])


def test_changed_bytes_give_pillows_pixels_or_none(tmp_path):
    """Images have no checksum, so most damage is only another picture."""
    pictures, refused = [], []
    for file in damaged_files():
        try:
            Image.open(io.BytesIO(file)).convert("RGB")
            pictures.append(file)
        except OSError:
            refused.append(f"{len(refused)} refused.webp")
            (tmp_path / refused[-1]).write_bytes(file)
    assert len(pictures) > 20 and refused
    assert_same(tmp_path, pictures, SIZE)
    assert len(failures(tmp_path, refused, [{"op": "decode_rgb"}, {"op": "center_crop", "size": [8]}])) == len(refused)


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_give_pillows_bytes_in_a_mixed_folder(tmp_path, name):
    names = []
    for number, (width, height) in enumerate([(500, 375), (64, 48), (225, 224), (9, 8)]):
        image = picture(width, height, number)
        for mode, form in [("RGB", "WEBP"), ("RGBA", "WEBP"), ("L", "WEBP"), ("RGB", "PNG"), ("RGB", "JPEG")]:
            names.append(f"{width}-{mode}.{form.lower()}")
            image.convert(mode).save(tmp_path / names[-1], form)
    names.append("a WebP by another name.jpg")
    (tmp_path / names[-1]).write_bytes(webp((99, 77), lossless=True))
    for first_seed in (1, 500):
        compare(tmp_path, tmp_path, names, *PIPELINES[name], first_seed)


def test_only_rgb_takes_no_image_that_pillow_opens_in_another_mode(tmp_path):
    """And each that it opens as RGB."""
    files = [png((20, 10), colour, depth, interlaced) for colour, depth in PNG_KINDS for interlaced in (False, True)]
    files += [webp((20, 10), 1, MODES.get(kind, "RGB"), **options) for kind in KINDS for options in KINDS[kind]]
    files += [webp((20, 10), transparent=True, lossless=lossless) for lossless in (False, True)]
    for mode in ("L", "RGB", "CMYK"):
        file = io.BytesIO()
        picture(20, 10, 1).convert(mode).save(file, "JPEG", progressive=mode == "L")
        files.append(file.getvalue())
    modes, refused = [], []
    ops = [{"op": "decode_rgb", "only_rgb": True}, {"op": "center_crop", "size": [8]}]
    for number, file in enumerate(files):
        modes.append(Image.open(io.BytesIO(file)).mode)
        (tmp_path / f"{number}.png").write_bytes(file)
        refused.append(bool(failures(tmp_path, [f"{number}.png"], ops, fails=None)))
    assert refused == [mode != "RGB" for mode in modes]
    assert {"L", "P", "1", "LA", "RGBA", "CMYK", "RGB"} <= set(modes)
