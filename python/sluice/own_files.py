"""Image files and class numbers that a Dataset class of the user's reads, or one of torchvision's that native executors do not know by name.

A sample has to have one image, which comes from a file, becomes RGB and goes through transforms (sample_code.py). What it has beside may be numbers and
texts.
"""

from __future__ import annotations

import functools
import os
from typing import Any

from sluice.arrangement import Arrangement, parts_of
from sluice.failures import NotNative
from sluice.lowered import name_of
from sluice.sample_code import sample_of
from sluice.sample_values import Column, Known, Picture, Rows, Several, Value


class OwnFiles:
    """What there is of it in the data set's attributes when this is made. The same attributes give equal samples."""

    def __init__(self, dataset: Any) -> None:
        """Looks at one sample. Raises NotNative, with what the class does beside."""
        self._dataset = dataset
        self.transforms = _picture_of(sample_of(dataset, 1)).transforms

    @functools.cached_property
    def sample(self) -> Value:
        """What dataset[0] to the last one are. A second for a million of them. Raises NotNative."""
        return sample_of(self._dataset, _length(self._dataset))

    @functools.cached_property
    def samples(self) -> list[tuple[str, int]]:
        """Paths, and labels where a sample is (image, label). Raises NotNative."""
        paths = _picture_of(self.sample).paths
        return list(zip(paths, self._labels or [0] * len(paths), strict=True))

    @functools.cached_property
    def root(self) -> str:
        """The folder of all files."""
        parts = (path.rpartition("/") if type(path) is str else ("", "", "") for path, _ in self.samples)  # os.path.dirname takes ten times as long.
        return os.path.commonpath([os.path.abspath(folder) for folder in {folder or slash for folder, slash, _ in parts}])

    def arrangement(self, selection: list[int] | None) -> Arrangement | None:
        """None where a sample is (image, label). Raises NotNative."""
        return Arrangement(self.sample, selection) if self._labels is None else None

    @functools.cached_property
    def _labels(self) -> list[int] | None:
        return _labels_of(self.sample, len(_picture_of(self.sample).paths))


def _picture_of(sample: Value) -> Picture:
    pictures = [part for part in parts_of(sample) if isinstance(part, Picture)]
    if len(pictures) != 1:
        raise NotNative(f"its samples have {len(pictures)} images of files")
    if not pictures[0].is_rgb:
        raise NotNative("it does not convert the image to RGB before a transform")
    return pictures[0]


def _labels_of(sample: Value, count: int) -> list[int] | None:
    """Of pairs with numbers that torch's collation makes int64 of; else None."""
    if not isinstance(sample, Several) or len(sample.items) != 2 or not isinstance(sample.items[0], Picture):
        return None
    match sample.items[1]:
        case Column(values=values):
            pass
        case Known(value=label):
            values = [label] * count
        case Rows(are_numbers=True, tensor=tensor):
            values = tensor.tolist()
        case _:
            return None
    kinds = set(map(type, values))
    if not all(kind is int or name_of(kind) == "numpy.int64" for kind in kinds):
        return None
    return values if kinds <= {int} else list(map(int, values))


def _length(dataset: Any) -> int:
    try:
        count = len(dataset)
    except Exception as error:
        raise NotNative(f"its len() raises {type(error).__name__}") from None
    if count < 1:
        raise NotNative("it is empty")
    return count
