"""Images and class numbers of a Dataset class of the user's, or of one of torchvision's that native executors do not know by name.

A sample has to have one image, or several of the same file or array, which goes through transforms (sample_code.py). What it has beside may be numbers and
texts.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

import torch

from sluice.lowering.arrangement import Arrangement, pictures_of
from sluice.lowering.lowered import name_of
from sluice.lowering.pictures import Picture, Views, require_rgb, views_of
from sluice.lowering.sample_code import sample_of
from sluice.lowering.sample_values import Column, Known, Rows, Several, Value
from sluice.shipping.failures import NotNative

if TYPE_CHECKING:
    import numpy


class OwnImages:
    """What there is of it in the data set's attributes when this is made. The same attributes give equal samples."""

    def __init__(self, dataset: Any) -> None:
        """Looks at one sample. Raises NotNative, with what the class does beside."""
        self._dataset = dataset
        self.views = views_of(pictures_of(sample_of(dataset, 1)))
        if self.views.only_rgb:
            require_rgb(self.views.pictures[0].opened.paths[0])

    @property
    def are_in_memory(self) -> bool:
        return self.views.pictures[0].opened.rows is not None

    @property
    def are_tensors(self) -> bool:
        """Whether torchvision decodes them, not Pillow."""
        return self.views.pictures[0].opened.are_tensors

    @functools.cached_property
    def sample(self) -> Value:
        """What dataset[0] to the last one are. A second for a million of them. Raises NotNative."""
        return sample_of(self._dataset, _length(self._dataset))

    @functools.cached_property
    def samples(self) -> list[tuple[str, int]]:
        """Paths, and labels where a sample is (image, label). Raises NotNative."""
        paths = self._found.pictures[0].opened.paths
        return list(zip(paths, self._labels or [0] * len(paths), strict=True))

    @functools.cached_property
    def pixels(self) -> numpy.ndarray:
        """Of images in memory: the data set's own, or copied from it, with the axes n, h, w, and c of coloured ones. Raises NotNative."""
        rows = self._found.pictures[0].opened.rows
        assert rows is not None
        container = rows.container.numpy() if isinstance(rows.container, torch.Tensor) else rows.container
        return container[: len(rows)] if rows.keys in (None, list(range(len(rows)))) else container[rows.keys]

    @property
    def labels(self) -> list[int]:
        """Of images in memory; 0 where a sample is not (image, label). Raises NotNative."""
        return self._labels or [0] * self._found.pictures[0].opened.count

    @functools.cached_property
    def root(self) -> str:
        """The folder of all files."""
        parts = (path.rpartition("/") if type(path) is str else ("", "", "") for path, _ in self.samples)  # os.path.dirname takes ten times as long.
        return os.path.commonpath([os.path.abspath(folder) for folder in {folder or slash for folder, slash, _ in parts}])

    def arrangement(self, selection: list[int] | None) -> Arrangement | None:
        """None where a sample is (image, label). Raises NotNative."""
        return Arrangement(self.sample, self._found.pictures, selection) if self._labels is None else None

    @functools.cached_property
    def _found(self) -> Views:
        return views_of(pictures_of(self.sample))

    @functools.cached_property
    def _labels(self) -> list[int] | None:
        return _labels_of(self.sample, self._found.pictures[0].opened.count)


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
