"""Images that a data set holds in memory, as native executors get them (protocols.md, section 5): labels and pixels.

A loader keeps its table. An epoch compares the data set with it, byte by byte, as a program may change either in place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from sluice.lowering.lowered import MAX_SIDE_PIXELS, Lowered, name_of
from sluice.lowering.own_images import OwnImages
from sluice.shipping.failures import NotNative
from sluice.shipping.framing import MOST_BLOB_BYTES

_HEADER_BYTES = 1 << 20  # At most, of the specification before the table.
_PIECE_BYTES = 1 << 18  # Stays in the processor's cache.


@dataclass(frozen=True)
class _Kind:
    """Of a data set: the module of its class, its labels' name, and the axes of `data` behind the first. `as_they_are`: the labels are handed out so,
    and not as int() of them."""

    module: str
    labels: str
    axes: str
    as_they_are: bool = False


_CIFAR = _Kind("cifar", "targets", "hwc", as_they_are=True)
_MNIST = _Kind("mnist", "targets", "hw")
_KINDS = {"CIFAR10": _CIFAR, "CIFAR100": _CIFAR, "MNIST": _MNIST, "FashionMNIST": _MNIST, "KMNIST": _MNIST, "EMNIST": _MNIST,
          "SVHN": _Kind("svhn", "labels", "chw"), "STL10": _Kind("stl10", "labels", "chw"), "USPS": _Kind("usps", "targets", "hw")}


def module_of(dataset: Any) -> Any:
    """torchvision's module whose class this data set in memory is of; None if it is of no such class."""
    kind = _KINDS.get(type(dataset).__name__)
    module = sys.modules.get(f"torchvision.datasets.{kind.module}") if kind is not None else None
    return module if module is not None and type(dataset) is getattr(module, type(dataset).__name__, None) else None


def lowered_images(dataset: Any) -> Lowered:
    """What the first transform gets. REQUIRES: module_of(dataset), or OwnImages in memory. Raises NotNative for images that are not of the type that the class documents."""
    _, height, width, channels = _images(dataset).shape
    return Lowered(ops=[], size=(height, width), channels=channels)


class PixelTable:
    """Pixels and labels. Once they have been sent they are what they were then, whatever becomes of the data set."""

    reads_files = False

    def __init__(self, dataset: Any, selection: list[int] | None) -> None:
        """Of all images, or of those that `selection` lists. REQUIRES: as lowered_images. Raises NotNative for images and labels that native
        executors would treat differently, and for more than they take."""
        images, labels = _images(dataset), _labels(dataset)
        chosen = _within(selection, len(images))
        self.count = len(images) if chosen is None else len(chosen)
        _, self.height, self.width, self.channels = images.shape
        pixel_bytes = self.count * self.height * self.width * self.channels
        if 8 * self.count + pixel_bytes > MOST_BLOB_BYTES - _HEADER_BYTES:
            raise NotNative(f"the images have {pixel_bytes / 1e6:.0f} MB in memory, more than a native pipeline may have ({MOST_BLOB_BYTES >> 20} MiB)")
        self._axes = _axes(images)
        self._selection = selection
        self._labels = _chosen(labels, chosen).astype("<i8")
        own = _in_memory(images, self._axes)
        self._pixels = own if chosen is None and own.flags.c_contiguous else self._copied(own.shape[1:], images, chosen)

    def _copied(self, shape: tuple[int, ...], images: numpy.ndarray, chosen: numpy.ndarray | None) -> numpy.ndarray:
        pixels = numpy.empty((self.count, *shape), numpy.uint8)
        for at, piece in self._pieces(images, chosen):
            pixels[at : at + len(piece)] = piece
        return pixels

    @property
    def parts(self) -> list[bytes | memoryview]:
        """Its bytes. Until they have been sent, the pixels may be the data set's own memory: a copy of their own would take as long as sending them."""
        return [self._labels.tobytes(), self._pixels.reshape(-1).data]

    def was_sent(self, table: memoryview) -> None:
        """The bytes of the parts lie there from now on, in memory that executors share."""
        pixels = numpy.frombuffer(table, numpy.uint8)[8 * self.count :]
        self._pixels = pixels.reshape(self._pixels.shape)

    @property
    def source(self) -> dict[str, Any]:
        """Of a specification."""
        return {"kind": "pixels", "samples": self.count, "height": self.height, "width": self.width, "channels": self.channels, "axes": self._axes}

    def paths(self, keys: Iterable[int]) -> list[str]:
        """None: no file is read."""
        return []

    def formats(self) -> dict[str, int]:
        """None: there are no files."""
        return {}

    def in_words(self) -> str:
        return f"{self.count:,} {'grey ' if self.channels == 1 else ''}images of {self.height}x{self.width} in memory"

    def is_of(self, dataset: Any, selection: list[int] | None) -> bool:
        """Whether a new table would be equal: tens of milliseconds for 150 MB."""
        if self._selection != selection:
            return False
        try:
            images, labels = _images(dataset), _labels(dataset)
            chosen = _within(selection, len(images))
        except NotNative:
            return False
        count = len(images) if chosen is None else len(chosen)
        if (count, *images.shape[1:]) != (self.count, self.height, self.width, self.channels) or _axes(images) != self._axes:
            return False
        if not numpy.array_equal(self._labels, _chosen(labels, chosen)):
            return False
        return all(numpy.array_equal(self._pixels[at : at + len(piece)], piece) for at, piece in self._pieces(images, chosen))

    def _pieces(self, images: numpy.ndarray, chosen: numpy.ndarray | None) -> Iterable[tuple[int, numpy.ndarray]]:
        """The samples' pixels some at a time, their axes as the table has them; before each piece the number of its first sample."""
        images = _in_memory(images, self._axes)
        shape = images.shape[1:]
        rows = images.reshape(len(images), -1) if images.flags.c_contiguous else None
        step = max(1, _PIECE_BYTES // (self.height * self.width * self.channels))
        for at in range(0, self.count, step):
            if chosen is None:
                yield at, images[at : at + step]
            elif rows is not None:  # Of which numpy takes each in one go.
                yield at, rows.take(chosen[at : at + step], 0).reshape(-1, *shape)
            else:
                yield at, images[chosen[at : at + step]]


def _images(dataset: Any) -> numpy.ndarray:
    """The data set's own memory, its axes in the order n, h, w, c."""
    if isinstance(dataset, OwnImages):
        return dataset.pixels[..., None] if dataset.pixels.ndim == 3 else dataset.pixels
    kind, data = _KINDS[type(dataset).__name__], dataset.data
    is_tensor = kind is _MNIST
    fits = type(data) is torch.Tensor and data.device.type == "cpu" and data.layout is torch.strided if is_tensor else type(data) is numpy.ndarray
    if not fits or data.dtype != (torch.uint8 if is_tensor else numpy.uint8):
        raise NotNative(f"its data is {_type_in_words(data)}, not {'a tensor' if is_tensor else 'an array'} of uint8")
    images = data.numpy() if is_tensor else data
    axes, shape = kind.axes, images.shape[1:]
    if len(shape) != len(axes) or ("c" in axes and shape[axes.index("c")] != 3) or not all(0 < side <= MAX_SIDE_PIXELS for side in shape):
        raise NotNative(f"its data has the shape {tuple(images.shape)}, not that of its images")
    return images[..., None] if "c" not in axes else images.transpose(0, *(1 + axes.index(axis) for axis in "hwc"))


def _labels(dataset: Any) -> numpy.ndarray:
    """Those of all images. As default_collate has them, they are int64."""
    if isinstance(dataset, OwnImages):
        return numpy.array(dataset.labels, numpy.int64)
    kind, count = _KINDS[type(dataset).__name__], len(dataset.data)
    labels = getattr(dataset, kind.labels)
    if type(labels) is list:
        if not set(map(type, labels)) <= {int}:
            raise NotNative(f"its {kind.labels} are not all of the type int")
        try:
            numbers = numpy.array(labels, numpy.int64)
        except OverflowError:
            raise NotNative(f"its {kind.labels} are not all ints of 64 bits") from None
    else:
        numbers = labels.numpy() if type(labels) is torch.Tensor and labels.device.type == "cpu" and not labels.requires_grad else labels
        is_int64 = type(numbers) is numpy.ndarray and numbers.ndim == 1 and numbers.dtype == numpy.int64
        is_whole = type(numbers) is numpy.ndarray and numbers.ndim == 1 and numbers.dtype.kind in "iu" and numpy.can_cast(numbers.dtype, numpy.int64)
        if not is_int64 and (kind.as_they_are or not is_whole):
            raise NotNative(f"its {kind.labels} are {_type_in_words(labels)}, not whole numbers")
    if len(numbers) < count:
        raise NotNative(f"it has {len(numbers)} {kind.labels} for {count} images")
    return numbers[:count]


def _type_in_words(value: Any) -> str:
    return f"{name_of(type(value))}{f' of {value.dtype}' if hasattr(value, 'dtype') else ''}"


def _within(selection: list[int] | None, count: int) -> numpy.ndarray | None:
    if selection is None:
        return None
    if any(not -count <= index < count for index in selection):
        raise NotNative("a Subset's indices are not integers within its dataset")
    return numpy.array(selection, numpy.int64)


def _chosen(labels: numpy.ndarray, chosen: numpy.ndarray | None) -> numpy.ndarray:
    return labels if chosen is None else labels[chosen]


def _axes(images: numpy.ndarray) -> str:
    """In the order of memory, so that making and comparing a table is reading it from one end to the other."""
    steps = [abs(step) if side > 1 else 0 for step, side in zip(images.strides[1:], images.shape[1:], strict=True)]
    return "".join(sorted("hwc", key=lambda axis: -steps["hwc".index(axis)]))


def _in_memory(images: numpy.ndarray, axes: str) -> numpy.ndarray:
    return images.transpose(0, *(1 + "hwc".index(axis) for axis in axes))
