"""The native library that makes and changes the pixels of lazy images (src/pipeline/image_library.h). Calls release the interpreter's lock."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

from sluice.media.image_plan import ImagePlan
from sluice.media.native_library import first_usable, library_paths, open_library

_NAME = "libsluice_images.so"
_VERSION = 3
_BYTES_BEHIND_PIXELS = 32


class _Plan(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ImagePlan._fields]


class _Blur(ctypes.Structure):
    _fields_ = [*[(name, ctypes.c_int32) for name in ("height", "width", "rows", "columns")], ("weights", ctypes.c_void_p)]


class ImageLibrary:
    """Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Raises OSError if this process cannot use the library at `path`."""
        # Another libjpeg may be loaded, with the same names of functions: the library must find its own first.
        library = open_library(path, "sluice_image_library_version", _VERSION, getattr(os, "RTLD_DEEPBIND", 0))
        self._make_pixels = library.sluice_image_pixels
        self._make_pixels.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(_Plan), ctypes.c_char_p, ctypes.c_size_t]
        self._make_part = library.sluice_image_part
        self._make_part.argtypes = self._make_pixels.argtypes
        self._make_tensor = library.sluice_image_tensor
        self._make_tensor.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p]
        self._make_tensor.restype = None
        self._make_normalized = library.sluice_image_normalize
        self._make_normalized.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_void_p] * 3]
        self._make_normalized.restype = None
        self._make_blurred = library.sluice_image_blur
        self._make_blurred.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Blur), ctypes.c_char_p]
        self._make_blur_sums = library.sluice_image_blur_sums
        self._make_blur_sums.argtypes = [ctypes.c_char_p, ctypes.POINTER(_Blur), ctypes.c_void_p]
        self._make_adjusted = library.sluice_image_adjust
        self._make_adjusted.argtypes = [ctypes.c_int32, ctypes.c_float, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]

    def pixels(self, file: bytes, plan: ImagePlan) -> bytes | None:
        """RGB pixels in rows; None for a file or plan that Pillow itself must see to."""
        pixels = bytes(plan.window_height * plan.window_width * 3)  # It is not shared yet, so it may be written.
        done = self._make_pixels(file, len(file), _Plan(*plan), pixels, len(pixels)) == 0
        return pixels if done else None

    def decoded(self, file: bytes, plan: ImagePlan) -> bytes | None:
        """All pixels of the file, for part(); None for a file that Pillow itself must see to. `plan`: of all pixels."""
        nbytes = plan.image_height * plan.image_width * 3
        image = bytes(nbytes + _BYTES_BEHIND_PIXELS)  # It is not shared yet, so it may be written.
        return image if self._make_pixels(file, len(file), _Plan(*plan), image, nbytes) == 0 else None

    def part(self, image: bytes, plan: ImagePlan) -> bytes | None:
        """RGB pixels in rows, of what decoded() gave; None for a plan that Pillow itself must see to."""
        pixels = bytes(plan.window_height * plan.window_width * 3)  # It is not shared yet, so it may be written.
        return pixels if self._make_part(image, len(image), _Plan(*plan), pixels, len(pixels)) == 0 else None

    def tensor(self, pixels: bytes, tensor_address: int) -> None:
        """Writes [3][n] floats for n RGB pixels: each byte divided by 255."""
        self._make_tensor(pixels, len(pixels) // 3, tensor_address)

    def normalize(self, tensor_address: int, plane: int, mean_address: int, deviation_address: int, normalized_address: int) -> None:
        """Writes [3][plane] floats: those of the tensor, less the channel's mean, divided by its deviation."""
        self._make_normalized(tensor_address, plane, mean_address, deviation_address, normalized_address)

    def blurred(self, pixels: bytes, size: tuple[int, int], window: tuple[int, int], weights_address: int) -> bytes | None:
        """RGB pixels of a (width, height), blurred by a window of (rows, columns); None where only torch can."""
        blurred = bytes(len(pixels))  # It is not shared yet, so it may be written.
        width, height = size
        done = self._make_blurred(pixels, _Blur(height, width, *window, weights_address), blurred) == 0
        return blurred if done else None

    def blur_sums(self, pixels: bytes, size: tuple[int, int], window: tuple[int, int], weights_address: int, sums_address: int) -> bool:
        """Writes [height][width][3] floats: the sums that a blur rounds. False where only torch can."""
        width, height = size
        return self._make_blur_sums(pixels, _Blur(height, width, *window, weights_address), sums_address) == 0

    def adjusted(self, change: int, factor: float, pixels: bytes) -> bytes | None:
        """RGB pixels with another brightness (0), contrast (1), saturation (2) or hue (3); None for a factor that is none of it."""
        adjusted = bytes(len(pixels))
        done = self._make_adjusted(change, factor, pixels, len(pixels) // 3, adjusted) == 0
        return adjusted if done else None


def image_library_paths(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Those that there are beside the feeder."""
    return library_paths(_NAME, environment)


def find_image_library() -> ImageLibrary | None:
    """None where there is none, or none for this machine's C library: images are then decoded by Pillow."""
    return first_usable(ImageLibrary, image_library_paths())
