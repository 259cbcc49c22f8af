"""What is shown of a decoded image: a crop, a resize of it, a crop of that, a mirror. The native library runs such a plan in one
pass (GeometryPlan in src/pipeline/geometry.h)."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

MOST_PIXELS = 1 << 26  # kSluiceImagePixelsMax
_BILINEAR, _BICUBIC = 2, 3  # PIL's numbers
_FIRST_PILLOW_OF_ALL_SHAPES = 13
_LEAST_STRIP_RATIO = 50


class ImagePlan(NamedTuple):
    """SluiceImagePlan, field by field; lengths in pixels. The window is of the resized image. `pillow`: its major version."""

    image_height: int
    image_width: int
    source_top: int
    source_left: int
    source_height: int
    source_width: int
    resized_height: int
    resized_width: int
    window_top: int
    window_left: int
    window_height: int
    window_width: int
    flip: int
    interpolation: int
    pillow: int

    @staticmethod
    def of_all(size: tuple[int, int], pillow: int) -> ImagePlan:
        width, height = size
        return ImagePlan(height, width, 0, 0, height, width, height, width, 0, 0, height, width, 0, _BILINEAR, pillow)

    def size(self) -> tuple[int, int]:
        """Of what is shown, as PIL has it: width and height."""
        return self.window_width, self.window_height

    def shows_all(self) -> bool:
        return self == ImagePlan.of_all((self.image_width, self.image_height), self.pillow)

    def is_resized(self) -> bool:
        return (self.source_height, self.source_width) != (self.resized_height, self.resized_width)

    # Each returns the plan with one more operation, or None if it has no plan that gives Pillow's bytes, or Pillow may refuse it.

    def cropped(self, box: Any) -> ImagePlan | None:
        """By the box (left, top, right, bottom)."""
        numbers = _whole_numbers(box, 4)
        if numbers is None:
            return None
        left, top, right, bottom = numbers
        width, height = self.size()
        if not (0 <= left < right <= width and 0 <= top < bottom <= height):
            return None
        if self.flip:
            left, right = width - right, width - left
        shown = {"window_height": bottom - top, "window_width": right - left}
        if self.is_resized():
            return self._replace(window_top=self.window_top + top, window_left=self.window_left + left, **shown)
        return self._replace(
            source_top=self.source_top + top,
            source_left=self.source_left + left,
            source_height=bottom - top,
            source_width=right - left,
            resized_height=bottom - top,
            resized_width=right - left,
            **shown,
        )

    def resized(self, size: Any, resample: Any) -> ImagePlan | None:
        """To (width, height). Only one resize, and before a mirror: the rounding of its weights knows left from right."""
        numbers = _whole_numbers(size, 2)
        if numbers is None or not (resample is None or isinstance(resample, int) and resample in (_BILINEAR, _BICUBIC)):
            return None
        width, height = numbers
        if (width, height) == self.size():
            return self
        if min(width, height) <= 0 or width * height > MOST_PIXELS or self.is_resized() or self.flip:
            return None
        if self.pillow < _FIRST_PILLOW_OF_ALL_SHAPES and self.source_height >= _LEAST_STRIP_RATIO * self.source_width:
            return None  # Some of these Pillows resize narrow strips in another order.
        return self._replace(
            resized_height=height,
            resized_width=width,
            window_height=height,
            window_width=width,
            interpolation=_BICUBIC if resample is None else int(resample),
        )

    def mirrored(self) -> ImagePlan:
        """Left and right."""
        return self._replace(flip=1 - self.flip)


def _whole_numbers(values: Any, count: int) -> list[int] | None:
    if not isinstance(values, (tuple, list)) or len(values) != count:
        return None
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        return None
