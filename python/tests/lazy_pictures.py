"""JPEG, PNG and WebP files of every kind, for images opened both ways: by Pillow alone and lazily."""

from __future__ import annotations

import io
import struct
import zlib

import numpy
from PIL import Image
from PIL.PngImagePlugin import PngInfo


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    """Waves and noise that depend on the size alone."""
    generator = numpy.random.default_rng(width * 1000 + height)
    y, x = numpy.mgrid[0:height, 0:width]
    waves = numpy.stack([numpy.sin(x / 7 + c) + numpy.cos(y / (5 + c)) for c in range(3)], axis=2) * 50 + 128
    pixels = (waves + generator.normal(0, 15, waves.shape)).clip(0, 255).astype("uint8")
    return Image.fromarray(pixels).convert(mode)


def jpeg(width: int, height: int, mode: str = "RGB", **options) -> bytes:
    file = io.BytesIO()
    picture(width, height, mode).save(file, "JPEG", **{"quality": 90, **options})
    return file.getvalue()


def oriented(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return jpeg(61, 44, exif=exif)


def other_format(name: str, mode: str) -> bytes:
    file = io.BytesIO()
    picture(33, 27).convert(mode).save(file, name)
    return file.getvalue()


def sixteen_bits(width: int, height: int) -> bytes:
    """Older Pillows convert no picture to this mode."""
    file = io.BytesIO()
    Image.new("I;16", (width, height), 700).save(file, "PNG")
    return file.getvalue()


def png(width: int, height: int, mode: str = "RGB", behind: bool = False, **options) -> bytes:
    """With a text before the rows, or an unknown chunk behind them."""
    words = PngInfo()
    words.add(b"prVt" if behind else b"tEXt", b"words\0of a text", after_idat=behind)
    file = io.BytesIO()
    picture(width, height, mode).save(file, "PNG", pnginfo=words, **options)
    return file.getvalue()


def webp(width: int, height: int, mode: str = "RGB", **options) -> bytes:
    image = picture(width, height, "RGB")
    if mode == "RGBA":
        image.putalpha(picture(width, height, "L"))
    file = io.BytesIO()
    image.save(file, "WEBP", **options)
    return file.getvalue()


def half_of_webp(file: bytes) -> bytes:
    """With right lengths, so that only decoding shows that the rest is missing. `file`: of one chunk."""
    data = file[20 : 20 + len(file) // 4 * 2]
    return b"RIFF" + struct.pack("<I", 12 + len(data)) + file[8:16] + struct.pack("<I", len(data)) + data


def interlaced(width: int, height: int) -> bytes:
    """Of one colour."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = b""
    for top, left, down, right in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        rows += (b"\0" + b"\x10\x80\xf0" * len(range(left, width, right))) * len(range(top, height, down))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


FILES = {
    **{f"{width}x{height}": jpeg(width, height) for width in (48, 49, 50, 63) for height in (37, 38, 64)},
    "4:4:4": jpeg(57, 43, subsampling=0),
    "4:2:2": jpeg(57, 43, subsampling=1),
    "one pixel": jpeg(1, 1),
    "one column": jpeg(1, 90),
    "one row": jpeg(90, 1),
    "grey": jpeg(51, 40, "L"),
    "CMYK": jpeg(51, 40, "CMYK"),
    "progressive": jpeg(70, 55, progressive=True),
    "restart markers": jpeg(70, 55, restart_marker_rows=1),
    "coarse": jpeg(70, 55, quality=3),
    "large": jpeg(301, 223),
    "orientation 1": oriented(1),
    "orientation 6": oriented(6),
    "orientation 3": oriented(3),
    "ICC profile and comment": jpeg(40, 30, icc_profile=b"profile" * 9, comment=b"words"),
    "rubbish behind the end": jpeg(40, 30) + b"rubbish" * 20,
    "much rubbish behind the end": jpeg(40, 30) + b"rubbish" * 30000,
    "PNG": png(63, 38),
    "PNG with alpha": png(50, 37, "RGBA"),
    "large PNG": png(301, 223),
    "grey PNG": png(51, 40, "L"),
    "grey PNG with alpha": png(51, 40, "LA"),
    "interlaced PNG": interlaced(41, 39),
    "PNG with a chunk behind": png(40, 33, behind=True),
    "PNG with a transparent colour": png(40, 33, transparency=(1, 2, 3)),
    "PNG with a profile": png(40, 33, icc_profile=b"profile" * 9, dpi=(72, 72)),
    "rubbish behind a PNG": png(40, 30) + b"rubbish" * 20,
    "animated PNG": png(40, 30, save_all=True, append_images=[picture(40, 30), picture(30, 40).resize((40, 30))]),
    "bits": png(51, 40, "1"),
    "palette": other_format("PNG", "P"),
    "GIF": other_format("GIF", "P"),
    "WebP": webp(63, 38),
    "WebP with alpha": webp(50, 37, "RGBA"),
    "large WebP": webp(301, 223),
    "lossless WebP": webp(41, 39, lossless=True),
    "lossless WebP with alpha": webp(41, 39, "RGBA", lossless=True),
    "WebP with a profile": webp(40, 33, icc_profile=b"profile" * 9, exif=b"Exif\0\0words"),
    "rubbish behind a WebP": webp(40, 30) + b"rubbish" * 20,
    "animated WebP": webp(40, 30, save_all=True, append_images=[picture(40, 30), picture(30, 40).resize((40, 30))]),
    "16 bits": sixteen_bits(33, 27),
}

_WHOLE = jpeg(120, 90)
_PNG = png(120, 90)
_MIDDLE = len(_PNG) // 2
_WEBP = webp(120, 90, lossless=True)
DAMAGED = {
    "cut off": _WHOLE[: len(_WHOLE) // 2],
    "cut off before the last marker": _WHOLE[:-2],
    "cut off inside the header": _WHOLE[:120],
    "cut off, with an end": _WHOLE[: len(_WHOLE) // 2] + b"\xff\xd9",
    "a hole in the data": _WHOLE[:1500] + _WHOLE[1700:],
    "bytes changed": _WHOLE[:1500] + bytes(byte ^ 0x5A for byte in _WHOLE[1500:1510]) + _WHOLE[1510:],
    "no table": _WHOLE.replace(b"\xff\xc4", b"\xff\xe5"),
    "no image": b"\xff\xd8\xff\xd9",
    "PNG cut off": _PNG[:_MIDDLE],
    "PNG without its end": _PNG[:-12],
    "PNG cut off inside the header": _PNG[:30],
    "PNG with bytes changed": _PNG[:_MIDDLE] + bytes(byte ^ 0x5A for byte in _PNG[_MIDDLE : _MIDDLE + 9]) + _PNG[_MIDDLE + 9 :],
    "PNG with another checksum": _PNG[:-13] + bytes([_PNG[-13] ^ 1]) + _PNG[-12:],
    "PNG with another name of its rows": _PNG.replace(b"IDAT", b"IDOT"),
    "WebP cut off": _WEBP[: len(_WEBP) // 2],
    "WebP cut off inside the header": _WEBP[:20],
    "half of a WebP's pixels": half_of_webp(_WEBP),
    "text": b"not an image at all",
    "empty": b"",
}
# Of those, files that fail as truncated, or as damaged at the call that decodes.
CUT_OFF = ("cut off", "cut off before the last marker", "cut off inside the header", "PNG cut off", "PNG with bytes changed", "half of a WebP's pixels")
