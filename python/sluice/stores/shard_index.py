"""What lies where in a tar shard, by WebDataset's conventions, from its headers alone.

A sample is the regular files in a row that have the same key: the path up to the first dot of the base name. The rest is the extension, in lower
case. Python's tarfile reads the headers: ustar, GNU's and POSIX's long names and sizes. Only small members that hold a class number are read, too:
their number is part of the index. Nothing is extracted, so absolute paths and `..` are names like others.
"""

from __future__ import annotations

import os
import stat
import tarfile
from array import array
from dataclasses import dataclass, field
from typing import IO, Any, cast

import numpy

from sluice.stores.object_file import ObjectFile
from sluice.stores.object_reader import ObjectState, reader
from sluice.stores.object_urls import shown

INTEGERS = ("cls", "cls2", "index", "inx", "id")  # The last part of the extension.
_MOST_EXTENSIONS = 65_535
_MOST_DIGITS = 32
_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}
_BLOCK = tarfile.BLOCKSIZE


class ShardError(ValueError):
    """A shard, or a sample of one, that cannot be read. The message names the shard, and the member and its offset where there is one."""


@dataclass(frozen=True)
class ShardState:
    """What tells one content of a shard from another: its size, and its time of modification in nanoseconds. An object has its `etag` for that,
    and the digest of it in the place of a time."""

    nbytes: int
    modified_ns: int
    etag: str = field(default="", compare=False)

    @classmethod
    def of(cls, path: str, descriptor: int) -> ShardState:
        """Of an open shard. Raises ShardError if it is no regular file."""
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ShardError(f"{path} is no regular file")
        return cls(status.st_size, status.st_mtime_ns)

    @classmethod
    def of_object(cls, url: str) -> ShardState:
        """Raises ObjectError if it cannot be read."""
        state = reader().state(url)
        return cls(state.nbytes, state.digest(), state.etag)


@dataclass(frozen=True)
class ShardIndex:
    """Columns with an entry for each member: the number of its sample, of its extension, where its bytes lie, and its class number if
    `is_number`. `keys` of the samples, each ended by a NUL."""

    state: ShardState
    keys: bytes
    samples: int
    extensions: tuple[str, ...]
    sample: numpy.ndarray      # uint32
    extension: numpy.ndarray   # uint16
    offset: numpy.ndarray      # int64
    nbytes: numpy.ndarray      # int64
    number: numpy.ndarray      # int64
    is_number: numpy.ndarray   # uint8

    def members(self, extensions: tuple[str, ...]) -> tuple[numpy.ndarray, numpy.ndarray]:
        """For each sample the member that has the first of these extensions that the sample has, and which one that is; -1 for none."""
        member = numpy.full(self.samples, -1, numpy.int64)
        choice = numpy.full(self.samples, -1, numpy.int16)
        for place in reversed(range(len(extensions))):
            if extensions[place] in self.extensions:
                having = numpy.flatnonzero(self.extension == self.extensions.index(extensions[place]))
                member[self.sample[having]] = having
                choice[self.sample[having]] = place
        return member, choice

    def key(self, sample: int) -> str:
        return self.keys.split(b"\0")[sample].decode(errors="surrogateescape")


def open_shard(path: str) -> int:
    """A descriptor. A FIFO is not waited for."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def scan(path: str) -> ShardIndex:
    """Reads the headers. Raises ShardError, or OSError if the file cannot be read."""
    with open(path, "rb", buffering=0, opener=lambda name, _: open_shard(name)) as file:
        state = ShardState.of(path, file.fileno())
        index = _scan(path, file, state)
        if ShardState.of(path, file.fileno()) != state:
            raise ShardError(f"{path} changed while it was indexed")
        return index


def scan_object(url: str, state: ShardState) -> ShardIndex:
    """Raises ShardError, or ObjectError if the object cannot be read or has changed."""
    return _scan(shown(url), ObjectFile(reader(), url, ObjectState(state.nbytes, state.etag)), state)


def _scan(path: str, file: Any, state: ShardState) -> ShardIndex:
    _require_plain(path, file.read(2))
    file.seek(0)
    members = _Members(path, state.nbytes)
    try:
        end = _read_headers(_HeaderBytes(file), members)
        file.seek(end)
        if file.read(_BLOCK).strip(b"\0"):  # Behind a damaged header, tarfile sees the end of the shard.
            raise _Damaged(f"at offset {end} is no header")
    except (tarfile.TarError, ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, ShardError):
            raise
        raise ShardError(f"{path} is damaged behind {members.last_in_words()}: {error}") from None
    return members.index(state)


class _Damaged(ValueError):
    """The message says how, not where."""


class _HeaderBytes:
    """An open shard as tarfile sees it: no header, whatever it says of its own length, makes it read more than names need."""

    _MOST_BYTES = 1 << 20

    def __init__(self, file: Any) -> None:
        self._file = file
        self.tell = file.tell

    def read(self, count: int) -> bytes:
        if not 0 <= count <= self._MOST_BYTES:
            raise _Damaged(f"a name or a note of {count} bytes")
        return self._file.read(count)

    def seek(self, offset: int) -> None:
        if not 0 <= offset < 2**63:
            raise _Damaged(f"something at offset {offset}")
        self._file.seek(offset)


def _read_headers(file: _HeaderBytes, members: _Members) -> int:
    """Returns where the last member ends."""
    offset = -1
    opened: Any = tarfile.TarFile(fileobj=cast(IO[bytes], file))  # Its list of members is not in the documents.
    with opened as tar:
        while (member := tar.next()) is not None:
            if tar.offset <= offset:
                raise _Damaged("a member of negative length")
            offset = tar.offset
            tar.members.clear()  # It would keep them all.
            members.add(member, file)
        return tar.offset


def _require_plain(path: str, first: bytes) -> None:
    if first in _COMPRESSED:
        raise ShardError(f"{path} is compressed with {_COMPRESSED[first]}, so its samples can only be read one after the other: "
                         "unpack it first (images are compressed anyway)")


class _Members:
    """The columns, as they grow: 31 bytes a member."""

    def __init__(self, path: str, nbytes: int) -> None:
        self._path = path
        self._nbytes = nbytes
        self._keys: list[bytes] = []
        self._key: str | None = None
        self._of_sample: set[str] = set()
        self._extensions: dict[str, int] = {}
        self._columns = {name: array(code) for name, code in
                         (("sample", "I"), ("extension", "H"), ("offset", "q"), ("nbytes", "q"), ("number", "q"), ("is_number", "B"))}
        self._last: tarfile.TarInfo | None = None

    def last_in_words(self) -> str:
        return "its start" if self._last is None else _in_words(self._last)

    def add(self, member: tarfile.TarInfo, file: _HeaderBytes) -> None:
        if member.size < 0:
            raise _Damaged("a member of negative length")
        self._last = member
        if member.offset_data + member.size > self._nbytes:
            raise ShardError(f"{self._path} is truncated, or lies: {_in_words(member)} has {member.size} bytes, the shard {self._nbytes}")
        if member.issparse():
            raise ShardError(f"{self._path}: {_in_words(member)} is a sparse file: its bytes are not in one piece; write the shard without --sparse")
        if not member.isreg():
            return
        key, extension = split_name(member.name)
        if key is None:
            return
        if key != self._key:
            self._begin(key, member)
        if extension in self._of_sample:
            raise ShardError(f"{self._path}: {_in_words(member)} is the second with this key and extension in a row")
        self._of_sample.add(extension)
        number = _class_number(extension, member, file)
        if len(self._extensions) == _MOST_EXTENSIONS and extension not in self._extensions:
            raise ShardError(f"{self._path} has more than {_MOST_EXTENSIONS} different extensions: it is no shard of samples")
        entry = (len(self._keys) - 1, self._extensions.setdefault(extension, len(self._extensions)), member.offset_data, member.size,
                 number or 0, number is not None)
        for column, value in zip(self._columns.values(), entry, strict=True):
            column.append(value)

    def _begin(self, key: str, member: tarfile.TarInfo) -> None:
        if "\0" in key:
            raise ShardError(f"{self._path}: the name of {_in_words(member)} holds a NUL")
        self._key = key
        self._keys.append(key.encode(errors="surrogateescape"))
        self._of_sample = set()

    def index(self, state: ShardState) -> ShardIndex:
        columns = {name: numpy.array(column, column_type(name)) for name, column in self._columns.items()}
        return ShardIndex(state, b"".join(key + b"\0" for key in self._keys), len(self._keys), tuple(self._extensions), **columns)


def column_type(name: str) -> str:
    return {"sample": "<u4", "extension": "<u2", "is_number": "u1"}.get(name, "<i8")


def _in_words(member: tarfile.TarInfo) -> str:
    return f"{member.name!r} at offset {member.offset_data}"


def split_name(name: str) -> tuple[str | None, str]:
    """The key of a member's sample, None if it belongs to none, and its extension."""
    directory, slash, base = name.rpartition("/")
    first = name.partition("/")[0]
    if len(first) >= 4 and first.startswith("__") and first.endswith("__"):
        return None, ""  # WebDataset's own notes.
    stem, dot, extension = base.partition(".")
    if not dot:
        return None, ""
    if not stem and (not slash or "." in directory.rpartition("/")[2]):
        return None, ""  # `.x` has no key; that of `folder/.x` is `folder/`.
    return directory + slash + stem, extension.lower()


def _class_number(extension: str, member: tarfile.TarInfo, file: _HeaderBytes) -> int | None:
    """None for other members, and for those that hold no number: the reader of such a sample is told."""
    if extension.rpartition(".")[2] not in INTEGERS or member.size > _MOST_DIGITS:
        return None
    file.seek(member.offset_data)
    try:
        number = int(file.read(member.size))
    except ValueError:
        return None
    return number if -(2**63) <= number < 2**63 else None
