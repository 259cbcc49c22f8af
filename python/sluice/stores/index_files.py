"""The index of a shard, made once: kept beside it, or else among the user's cached files, or else nowhere.

`train-000000.tar.sluice-index` holds the columns of `shard_index.py` behind a head that says for which size and time of modification of the shard
they are right. A file that fits neither the shard nor its own sum is made anew. It appears by a rename, so any number of processes may make it at
once and read it meanwhile. WebDataset and DALI's `.idx` say nothing of the shard's state, so a shard that is replaced would be read wrongly.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import struct
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy

from sluice.base.notices import say_once
from sluice.stores.object_urls import is_url, lasting, shown
from sluice.stores.shard_index import ShardIndex, ShardState, column_type, open_shard, scan, scan_object

_SUFFIX = ".sluice-index"
_MAGIC = b"sluice1\n"
_HEAD = struct.Struct("<8sQqQQQQI4x")  # magic; size, modification of the shard; members, samples; bytes of keys, extensions; sum of what follows
_COLUMNS = ("sample", "extension", "offset", "nbytes", "number", "is_number")


def index_of(path: str) -> ShardIndex:
    """The index of a shard, given by its absolute path or its URL. Raises ShardError, or OSError if the shard cannot be read."""
    if is_url(path):
        return _index_of_object(path)
    descriptor = open_shard(path)
    try:
        state = ShardState.of(path, descriptor)
    finally:
        os.close(descriptor)
    places = [path + _SUFFIX, _cached_place(path)]
    for place in places:
        with contextlib.suppress(OSError, ValueError):
            return _decode(Path(place).read_bytes(), state)
    index = scan(path)
    for place in places:
        if _write(place, _encode(index), stat.S_IMODE(os.stat(path).st_mode) & 0o666):
            return index
    say_once(logging.WARNING, f"the index of {path} cannot be kept, neither beside it nor in {os.path.dirname(places[1])}: each start reads all headers again")
    return index


def _index_of_object(url: str) -> ShardIndex:
    """Kept among the user's cached files: a reader of a bucket need not be allowed to write to it."""
    state = ShardState.of_object(url)
    place = _cached_place(lasting(url))
    with contextlib.suppress(OSError, ValueError):
        return replace(_decode(Path(place).read_bytes(), state), state=state)
    index = scan_object(url, state)
    if not _write(place, _encode(index), 0o600):
        say_once(logging.WARNING, f"the index of {shown(url)} cannot be kept in {os.path.dirname(place)}: each start reads all headers again")
    return index


def _cached_place(path: str) -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "sluice", "shards", hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest() + _SUFFIX)


def _encode(index: ShardIndex) -> bytes:
    extensions = json.dumps(index.extensions).encode()
    body = b"".join([*(getattr(index, name).tobytes() for name in _COLUMNS), index.keys, extensions])
    return _HEAD.pack(_MAGIC, index.state.nbytes, index.state.modified_ns, len(index.sample), index.samples, len(index.keys), len(extensions),
                      zlib.crc32(body)) + body


def _decode(data: bytes, state: ShardState) -> ShardIndex:
    """Raises ValueError for what is not the index of a shard in this state. What is returned names only bytes of that shard."""
    if len(data) < _HEAD.size:
        raise ValueError("cut off")
    magic, nbytes, modified_ns, members, samples, keys_bytes, extensions_bytes, crc = _HEAD.unpack_from(data)
    if magic != _MAGIC or ShardState(nbytes, modified_ns) != state or zlib.crc32(memoryview(data)[_HEAD.size :]) != crc:
        raise ValueError("of another shard or version, or damaged")
    sizes = [members * numpy.dtype(column_type(name)).itemsize for name in _COLUMNS]
    if len(data) != _HEAD.size + sum(sizes) + keys_bytes + extensions_bytes:
        raise ValueError("damaged")
    at, columns = _HEAD.size, {}
    for name, size in zip(_COLUMNS, sizes, strict=True):
        columns[name] = numpy.frombuffer(data, column_type(name), members, at)
        at += size
    index = ShardIndex(state, data[at : at + keys_bytes], samples, tuple(json.loads(data[at + keys_bytes :])), **columns)
    _require_consistent(index)
    return index


def _require_consistent(index: ShardIndex) -> None:
    """Raises ValueError. Others may have written the file."""
    fits = (
        index.keys.count(0) == index.samples
        and all(isinstance(extension, str) for extension in index.extensions)
        and (index.sample < index.samples).all()
        and (index.extension < len(index.extensions)).all()
        and (index.offset >= 0).all()
        and (index.nbytes >= 0).all()
        and (index.offset <= index.state.nbytes).all()
        and (index.nbytes <= index.state.nbytes - index.offset).all()
    )
    if not fits:
        raise ValueError("damaged")


def _write(place: str, data: bytes, mode: int) -> bool:
    """Whether it could be written. Who may read the shard may read its index."""
    made = ""
    try:
        directory = os.path.dirname(place)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, suffix=_SUFFIX, delete=False) as file:
            made = file.name
            file.write(data)
        os.chmod(made, mode)
        os.replace(made, place)
        return True
    except OSError:
        with contextlib.suppress(OSError):
            if made:
                os.unlink(made)
        return False

