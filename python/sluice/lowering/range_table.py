"""The samples of shards as native executors get them (protocols.md, section 5): the place of each image within its shard, and its class number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy

from sluice.lowering.file_table import TableOfFiles
from sluice.lowering.image_formats import FORMATS, KNOWN, by_format
from sluice.shipping.failures import NotNative
from sluice.stores.object_urls import access, is_url
from sluice.stores.sample_fields import Column

_MOST_BYTES = 2**32 - 1


class RangeTable(TableOfFiles):
    """Places and labels. Immutable."""

    def __init__(self, dataset: Any, selection: list[int] | None) -> None:
        """Of the samples of a TarShards, or of those that `selection` lists. Raises NotNative for samples that native executors would treat
        differently."""
        self._origin = dataset.columns, dataset.states, dataset.shards, selection
        samples = numpy.arange(len(dataset)) if selection is None else _within(selection, len(dataset))
        if len(dataset.columns) != 2 or not all(isinstance(column, Column) for column in dataset.columns):
            raise NotNative(f"the fields are {len(dataset.columns)}, not an image and a class number")
        images, labels = (column.of(samples) for column in dataset.columns)
        _require_images(images)
        _require_numbers(labels, len(samples))
        self.count = len(samples)
        self._extensions = {name: int((images.choice == choice).sum()) for choice, name in enumerate(images.extensions)}
        shards = numpy.searchsorted(dataset.ends, samples, "right")
        self._files = len(dataset.shards)
        self._holds_objects = any(map(is_url, dataset.shards))
        self.blob = b"".join([
            labels.number.astype("<i8").tobytes(),
            images.offset.astype("<u8").tobytes(),
            numpy.array([state.nbytes for state in dataset.states], "<u8").tobytes(),
            numpy.array([state.modified_ns for state in dataset.states], "<i8").tobytes(),
            images.nbytes.astype("<u4").tobytes(),
            shards.astype("<u4").tobytes(),
            _names(dataset.shards),
            "".join(state.etag + "\0" for state in dataset.states).encode("latin-1") if self._holds_objects else b"",
        ])  # fmt: skip

    @property
    def source(self) -> dict[str, Any]:
        """Of a specification. With objects it holds secrets: what this process would ask their store with now."""
        counts = {"files": self._files, "samples": self.count}
        return {"kind": "object_ranges", **counts, "environment": access()} if self._holds_objects else {"kind": "file_ranges", **counts}

    def paths(self, keys: Iterable[int]) -> list[str]:
        """None: a range says of which state of its file it is, and executors read no other state."""
        return []

    def formats(self) -> dict[str, int]:
        return by_format(lambda extension: self._extensions.get(extension, 0))

    def is_of(self, dataset: Any, selection: list[int] | None) -> bool:
        """Whether a new table would be equal. The columns of a data set never change."""
        columns, states, shards, known_selection = self._origin
        return dataset.columns is columns and dataset.states is states and dataset.shards is shards and known_selection == selection


def _within(selection: list[int], count: int) -> numpy.ndarray:
    samples = numpy.array(selection, "i8") if all(-count <= index < count for index in selection) else None
    if samples is None:
        raise NotNative("a Subset's indices are not integers within its dataset")
    return numpy.where(samples < 0, samples + count, samples)


def _require_images(images: Column) -> None:
    for choice in numpy.unique(images.choice).tolist():
        if choice >= len(images.extensions):
            raise NotNative(f"sample {_first(images.choice == choice)} has no image")
        if images.extensions[choice] not in FORMATS:
            raise NotNative(f"sample {_first(images.choice == choice)} is not a {KNOWN} file by its name, but .{images.extensions[choice]}")
    if (images.nbytes == _MOST_BYTES).any():
        raise NotNative(f"sample {_first(images.nbytes == _MOST_BYTES)} has 4 GiB or more")


def _require_numbers(labels: Column, count: int) -> None:
    if len(labels.is_number) != count:
        raise NotNative(f"the second field, {';'.join(labels.extensions)}, is no class number")
    if not labels.is_number.all():
        raise NotNative(f"sample {_first(labels.is_number == 0)} has no class number of 64 bits")


def _first(found: numpy.ndarray) -> int:
    return int(numpy.flatnonzero(found)[0])


def _names(paths: tuple[str, ...]) -> bytes:
    try:
        return "".join(path + "\0" for path in paths).encode()
    except UnicodeEncodeError:
        raise NotNative("the path of a shard is not valid UTF-8") from None
