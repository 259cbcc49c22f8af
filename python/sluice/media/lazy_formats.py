"""How an image that Pillow has opened is taken over: whether its file may be read at once and decoded late, and what Pillow's load() would have
left behind. A JPEG, a PNG or a WebP.

A file that Pillow may refuse is left to it, at the call where it does. So what lies behind the header is looked through first.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from PIL import Image, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

from sluice.media.image_plan import MOST_PIXELS

_MOST_FILE_BYTES = 64 << 20
_CHUNK_BYTES = 65536  # In which Pillow reads a JPEG.
_READ_BYTES = 1 << 20
_END_OF_IMAGE = b"\xff\xd9"
_JPEG_RAW_MODES = {"RGB": "RGB", "L": "L", "CMYK": "CMYK;I"}
_PNG_MODES = ("RGB", "RGBA", "L")  # With eight bits, and without a palette.
_PRIVATE = "_WebPImageFile__"
_NO_FRAME = -1

Made = TypeVar("Made")


@dataclass(frozen=True)
class Format:
    """`factory`: what opens such files in Pillow. `is_usual`: whether an image is as it was opened, and of a kind that the native library
    decodes. `read`: the file's bytes, from which Pillow's load() has read what it reads; None where it may refuse them. `leave`: does what load() does
    beside decoding. `is_read_at_open`: Pillow has all bytes from then on, whatever becomes of the file. What is damaged in them shows only when
    they are decoded, which is to happen where Pillow does it."""

    name: str
    plain_class: type
    factory: Callable[..., Any]
    is_usual: Callable[[Any], bool]
    read: Callable[[Any], bytes | None]
    leave: Callable[[Any], None]
    is_read_at_open: bool = False

    def keep_file(self, image: Any) -> None:
        """To be called of an image that was just opened."""
        if self.is_read_at_open:
            end = image.fp.tell()
            image._sluice_file = _whole_file(image.fp)
            image.fp.seek(end)

    def take_file(self, image: Any, made_of: Callable[[bytes], Made | None]) -> Made | None:
        """What is made of the image's file, which then is closed where load() closes it; None if only Pillow may read it, or nothing is made."""
        width, height = image.size
        limit = MOST_PIXELS if Image.MAX_IMAGE_PIXELS is None else min(MOST_PIXELS, Image.MAX_IMAGE_PIXELS)
        if image.fp is None or width * height > limit or not self.is_usual(image):
            return None
        file = self.read(image)
        made = None if file is None else made_of(file)
        if made is None:
            return None
        image.tile, image.map, image.readonly = [], None, 0
        self.leave(image)
        if image._exclusive_fp and image._close_exclusive_fp_after_loading:
            image.fp.close()
        image.fp = None
        return made


def _whole_file(opened: Any) -> bytes | None:
    """None if there is too much of it."""
    opened.seek(0)
    file = opened.read(_READ_BYTES)
    while part := opened.read(_READ_BYTES):
        file += part
        if len(file) > _MOST_FILE_BYTES:
            return None
    return file


def _read_to(end_of: Callable[[Any, bytes], int | None]) -> Callable[[Any], bytes | None]:
    """Reads a file, of which load() reads as many bytes as `end_of` says; None where it may refuse them."""

    def read(image: Any) -> bytes | None:
        file = _whole_file(image.fp)
        end = None if file is None else end_of(image, file)
        if end is None:
            return None
        image.fp.seek(end)
        return file

    return read


def _is_usual_jpeg(image: Any) -> bool:
    width, height = image.size
    return image.tile == [("jpeg", (0, 0, width, height), 0, (_JPEG_RAW_MODES.get(image.mode), ""))] and image.decoderconfig == ()


def _end_of_jpeg(image: Any, file: bytes) -> int | None:
    """None if Pillow would not read all bytes and find the image's end there."""
    end = file.rfind(_END_OF_IMAGE, max(0, len(file) - _CHUNK_BYTES))
    return len(file) if end >= 0 and (end + 1) // _CHUNK_BYTES == (len(file) - 1) // _CHUNK_BYTES else None


def _is_usual_png(image: Any) -> bool:
    if len(image.tile) != 1:
        return False
    decoder, extents, _, raw_mode = image.tile[0]
    is_known = decoder == "zip" and extents == (0, 0, *image.size) and image.mode in _PNG_MODES and raw_mode == image.mode
    return is_known and image.decoderconfig == () and image.png is not None and image.png.im_n_frames is None


def _end_of_png(image: Any, file: bytes) -> int | None:
    """None unless the chunks of rows have their checksums, and nothing but the end behind them. Pillow compares none of these checksums, but it
    refuses rows that are damaged."""
    rows = memoryview(file)
    at = image.tile[0][2] - 8
    while (name := file[at + 4 : at + 8]) == b"IDAT":
        end = at + 8 + int.from_bytes(file[at : at + 4], "big")
        if zlib.crc32(rows[at + 4 : end]) != int.from_bytes(file[end : end + 4], "big"):
            return None
        at = end + 4
    return at + 8 if name == b"IEND" else None


def _leave_png(image: Any) -> None:
    if image.info.get("interlace"):
        image.decoderconfig = (*image.decoderconfig, 1)
    image._text = image.png.im_text
    image.png.close()
    image.png = None


def _is_usual_webp(image: Any) -> bool:
    """Not an animation, and not read yet."""
    return image.tile == [] and image.n_frames == 1 and getattr(image, f"{_PRIVATE}loaded", None) == _NO_FRAME


def _leave_webp(image: Any) -> None:
    image.info["timestamp"] = image.info["duration"] = 0
    for name, value in (("loaded", 0), ("physical_frame", 1)):
        setattr(image, _PRIVATE + name, value)
    del image._sluice_file


JPEG = Format("JPEG", JpegImagePlugin.JpegImageFile, JpegImagePlugin.jpeg_factory, _is_usual_jpeg, _read_to(_end_of_jpeg), lambda image: None)
PNG = Format("PNG", PngImagePlugin.PngImageFile, PngImagePlugin.PngImageFile, _is_usual_png, _read_to(_end_of_png), _leave_png)
WEBP = Format("WEBP", WebPImagePlugin.WebPImageFile, WebPImagePlugin.WebPImageFile, _is_usual_webp, lambda image: image._sluice_file, _leave_webp, True)
