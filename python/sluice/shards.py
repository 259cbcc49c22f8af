"""WebDataset's tar shards as a map-style data set: `dataset[17]` reads one sample, and no other.

    from sluice.shards import TarShards
    dataset = TarShards("data/train-{000000..000099}.tar", transform=train_transform)

Any loader takes it, and any sampler. It needs no feeder. Under sluice.torch.DataLoader a data set of JPEG, PNG and WebP files with class numbers is native where its
transform is. The shards are indexed once (`index_files.py`). 1.28 million samples of an image and a class take 45 MB, which all processes of a host
share. A shard is opened for each sample, so that a change of it is seen, and no descriptor stays open: any start method of processes will do.
"""

from __future__ import annotations

import operator
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

import numpy
from torch.utils.data import Dataset

from sluice.stores.index_files import index_of
from sluice.stores.object_reader import ObjectError, ObjectState, Range, reader
from sluice.stores.object_urls import is_url, shown
from sluice.stores.sample_fields import IMAGES, Column, Keys, decode, joined, joined_keys, read_column, read_keys
from sluice.stores.shard_index import ShardError, ShardState, open_shard
from sluice.stores.shard_paths import shard_paths

__all__ = ["IMAGE", "KEY", "ObjectError", "ShardError", "TarShards"]

IMAGE = ";".join(IMAGES)
KEY = "__key__"
MOST_SAMPLE_BYTES = 1 << 30  # As native executors have it: more is a mistake in the data set, not a sample.
_THREADS = 16  # They wait for a file system, or a store.

Read = Callable[[int, int], bytes]


class TarShards(Dataset[tuple[Any, ...]]):
    """Samples in the order of the shards, each a tuple of its `fields`.

    `shards`: a folder (its *.tar, sorted), a pattern with braces, URLs of objects (stores/object_urls.py), or a list of these. `fields`: each a list of extensions between semicolons, of which the
    first that a sample has is taken, or KEY. Images become RGB images of Pillow, class numbers int, text str, JSON and .npy what they hold, and
    everything else stays bytes. `transform` is for the first field, `target_transform` for the second.
    """

    def __init__(self, shards: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], transform: Callable[[Any], Any] | None = None,
                 target_transform: Callable[[Any], Any] | None = None, fields: Iterable[str] = (IMAGE, "cls")) -> None:
        """Raises ValueError for what names no shards or fields, ShardError or OSError for a shard that cannot be indexed."""
        self.fields = _checked(fields)
        self.transform = transform
        self.target_transform = target_transform
        self.shards = tuple(shard_paths(shards))
        wanted = [() if field == KEY else tuple(field.lower().split(";")) for field in self.fields]

        def columns_of(path: str) -> tuple[ShardState, int, list[Any]]:
            index = index_of(path)
            return index.state, index.samples, [read_column(index, extensions) if extensions else read_keys(index) for extensions in wanted]

        with ThreadPoolExecutor(min(_THREADS, len(self.shards))) as threads:
            found = list(threads.map(columns_of, self.shards))
        self.states = tuple(state for state, _, _ in found)
        self._holds_objects = any(map(is_url, self.shards))
        self.ends = numpy.cumsum([samples for _, samples, _ in found])
        self.columns = tuple((joined if extensions else joined_keys)([columns[place] for _, _, columns in found])
                             for place, extensions in enumerate(wanted))

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        number = operator.index(index)
        sample = number + len(self) if number < 0 else number
        if not 0 <= sample < len(self):
            raise IndexError(f"sample {number} of {len(self)}")
        values = list(self._values(sample))
        for place, transform in enumerate((self.transform, self.target_transform)):
            if transform is not None and place < len(values):
                try:
                    values[place] = transform(values[place])
                except Exception:
                    self._require_sound(sample)
                    raise
        return tuple(values)

    def shard_of(self, sample: int) -> int:
        """The number of the shard that holds a sample."""
        return bisect_right(self.ends, sample)

    def _require_sound(self, sample: int) -> None:
        """Raises ShardError if not the transform is to blame but the sample: where images decode late, they do so in the transform."""
        self._values(sample, decode=lambda extension, data: getattr(decode(extension, data), "load", bool)())

    def _values(self, sample: int, decode: Callable[[str, bytes], Any] = decode) -> list[Any]:
        shard = self.shard_of(sample)
        with _opened(self.shards[shard], self.states[shard]) as read:
            return [self._value(field, column, sample, shard, read, decode) for field, column in zip(self.fields, self.columns, strict=True)]

    def read_ahead(self, samples: Iterable[int]) -> None:
        """Begins to read the samples of the next batch where they lie in an object store: many requests at a time, so that a batch waits about
        as long as a sample. For files this does nothing. Whatever is no sample is left for `__getitem__`."""
        if self._holds_objects:
            reader().read_ahead(chain.from_iterable(self._ranges(sample) for sample in samples))

    def _ranges(self, number: Any) -> Iterator[Range]:
        if not isinstance(number, int) or not -len(self) <= number < len(self):
            return
        sample = number % len(self)
        url, state = self.shards[shard := self.shard_of(sample)], self.states[shard]
        for column in self.columns if is_url(url) else ():
            if isinstance(column, Column) and column.extension(sample) is not None and column.number_of(sample) is None:
                if column.nbytes[sample] <= MOST_SAMPLE_BYTES:
                    yield _range(url, state, int(column.offset[sample]), int(column.nbytes[sample]))

    def _value(self, field: str, column: Column | Keys, sample: int, shard: int, read: Read, decode: Callable[[str, bytes], Any]) -> Any:
        if isinstance(column, Keys):
            return column.key(sample)
        extension = column.extension(sample)
        if extension is None:
            raise ShardError(f"{shown(self.shards[shard])}: sample {self._key(sample, shard)!r} has none of {field}")
        number = column.number_of(sample)
        if number is not None:
            return number
        offset, nbytes = int(column.offset[sample]), int(column.nbytes[sample])
        try:
            if nbytes > MOST_SAMPLE_BYTES:
                raise ShardError(f"has {nbytes} bytes, more than the {MOST_SAMPLE_BYTES} that a sample may have")
            return decode(extension, read(offset, nbytes))
        except (MemoryError, ObjectError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # The machine's affair, not the sample's.
            raise ShardError(f"{shown(self.shards[shard])}: {self._key(sample, shard)}.{extension} at offset {offset}: {error}") from error

    def _key(self, sample: int, shard: int) -> str:
        first = 0 if shard == 0 else int(self.ends[shard - 1])
        return index_of(self.shards[shard]).key(sample - first)


def _checked(fields: Iterable[str]) -> tuple[str, ...]:
    fields = (fields,) if isinstance(fields, str) else tuple(fields)
    if not fields or not all(isinstance(field, str) and all(field.split(";")) for field in fields):
        raise ValueError(f"fields are extensions such as 'jpg;png' or 'cls', or KEY, not {fields!r}")
    return fields


@contextmanager
def _opened(path: str, state: ShardState) -> Iterator[Read]:
    """A function that reads so many bytes at an offset. Raises ShardError if the shard is in another state."""
    if is_url(path):
        yield lambda offset, nbytes: reader().read(_range(path, state, offset, nbytes))
        return
    descriptor = open_shard(path)
    try:
        if ShardState.of(path, descriptor) != state:
            raise ShardError(f"{path} has changed since its index was made: make the data set anew")
        yield partial(_read, descriptor)
    finally:
        os.close(descriptor)


def _range(url: str, state: ShardState, offset: int, nbytes: int) -> Range:
    return Range(url, ObjectState(state.nbytes, state.etag), offset, nbytes)


def _read(descriptor: int, offset: int, nbytes: int) -> bytes:
    data = os.pread(descriptor, nbytes, offset)
    while len(data) < nbytes:
        more = os.pread(descriptor, nbytes - len(data), offset + len(data))
        if not more:
            raise ShardError("the shard shrank while it was read")
        data += more
    return data
