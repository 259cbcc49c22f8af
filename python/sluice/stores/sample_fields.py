"""The fields of samples in shards: where each lies, and what its bytes become, as WebDataset's decoders have it for these extensions."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, replace
from typing import Any

import numpy

from sluice.stores.shard_index import INTEGERS, ShardIndex

IMAGES = ("jpg", "jpeg", "png", "webp", "jpe", "jfif", "bmp", "gif", "tif", "tiff", "ppm", "pgm", "pbm", "jp2", "tga")
_NONE = 255
_MOST_CHOICES = 254


@dataclass(frozen=True)
class Column:
    """One field of all samples. `choice`: which of `extensions`, _NONE for none. `number`: for class numbers, where `is_number`; empty for a field
    without any. `nbytes` stops at what 32 bits hold: no sample may be so long."""

    extensions: tuple[str, ...]
    choice: numpy.ndarray     # uint8
    offset: numpy.ndarray     # int64
    nbytes: numpy.ndarray     # uint32
    number: numpy.ndarray     # int64
    is_number: numpy.ndarray  # uint8

    def extension(self, sample: int) -> str | None:
        choice = self.choice[sample]
        return None if choice == _NONE else self.extensions[choice]

    def number_of(self, sample: int) -> int | None:
        return int(self.number[sample]) if len(self.is_number) and self.is_number[sample] else None

    def of(self, samples: Any) -> Column:
        """Of some of the samples."""
        some = {name: getattr(self, name)[samples] for name in ("choice", "offset", "nbytes")}
        numbers = {name: getattr(self, name)[samples] for name in ("number", "is_number")} if len(self.is_number) else {}
        return replace(self, **some, **numbers)


@dataclass(frozen=True)
class Keys:
    """The keys of all samples: their bytes, one behind the other, and where each ends."""

    text: numpy.ndarray  # uint8
    ends: numpy.ndarray  # int64

    def key(self, sample: int) -> str:
        begin = self.ends[sample - 1] if sample else 0
        return self.text[begin : self.ends[sample]].tobytes().decode(errors="surrogateescape")


def read_keys(index: ShardIndex) -> Keys:
    text = numpy.frombuffer(index.keys, "u1")
    ends = numpy.flatnonzero(text == 0)
    return Keys(text[text != 0], ends - numpy.arange(len(ends)))


def read_column(index: ShardIndex, extensions: tuple[str, ...]) -> Column:
    """Raises ValueError if there are too many extensions."""
    if len(extensions) > _MOST_CHOICES:
        raise ValueError(f"a field has {len(extensions)} extensions, more than {_MOST_CHOICES}")
    member, choice = index.members(extensions)
    there = member >= 0
    member[~there] = 0
    columns = {"offset": index.offset, "nbytes": numpy.minimum(index.nbytes, 2**32 - 1), "number": index.number, "is_number": index.is_number}
    made = {name: numpy.where(there, values[member], 0) if len(values) else numpy.zeros(len(member), values.dtype) for name, values in columns.items()}
    if not any(extension.rpartition(".")[2] in INTEGERS for extension in extensions):
        made["number"], made["is_number"] = made["number"][:0], made["is_number"][:0]
    return Column(extensions, numpy.where(there, choice, _NONE).astype("u1"), made["offset"], made["nbytes"].astype("<u4"), made["number"],
                  made["is_number"].astype("u1"))


def joined_keys(parts: list[Keys]) -> Keys:
    """Of the samples of all shards."""
    begins = numpy.cumsum([0, *(len(part.text) for part in parts[:-1])])
    ends = numpy.concatenate([part.ends + begin for part, begin in zip(parts, begins, strict=True)])
    return Keys(numpy.concatenate([part.text for part in parts]), ends)


def joined(parts: list[Column]) -> Column:
    """Of the samples of all shards."""
    names = ("choice", "offset", "nbytes", "number", "is_number")
    return Column(parts[0].extensions, *(numpy.concatenate([getattr(part, name) for part in parts]) for name in names))


def decode(extension: str, data: bytes) -> Any:
    """Never unpickles: such members stay bytes. Raises what the decoder raises."""
    last = extension.rpartition(".")[2]
    if last in IMAGES:
        from PIL import Image

        return Image.open(io.BytesIO(data)).convert("RGB")
    if last in INTEGERS:
        return int(data)
    if last in ("txt", "text", "transcript"):
        return data.decode()
    if last in ("json", "jsn"):
        return json.loads(data)
    if last == "npy":
        return numpy.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return data
