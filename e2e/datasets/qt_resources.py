"""Reads Qt's compiled resource files (.rcc), in which gcompris ships its pictures.

Layout (Qt's own reader, QResource, and its compiler, rcc, define it): a header "qres" with format version and the
offsets of tree, data and names; the tree is an array of nodes, a folder naming the range of its children, a file the
offset of its data; names are UTF-16. All numbers are big-endian.
"""

import dataclasses
import struct
import zlib
from collections.abc import Iterator

COMPRESSED_BY_ZLIB = 1
FOLDER = 2
COMPRESSED_BY_ZSTD = 4


class NotAResourceFile(ValueError):
    pass


@dataclasses.dataclass(frozen=True)
class Resource:
    path: str
    data: bytes


class _Reader:
    def __init__(self, content: bytes) -> None:
        if content[:4] != b"qres":
            raise NotAResourceFile("does not begin with 'qres'")
        self._content = content
        version, self._tree, self._data, self._names = struct.unpack_from(">4I", content, 4)
        if version not in (1, 2, 3):
            raise NotAResourceFile(f"format version {version} is not known")
        # From version 2 on a node ends with the time of its last change.
        self._node_bytes = 14 if version == 1 else 22

    def files(self, node: int = 0, path: str = "") -> Iterator[Resource]:
        offset = self._tree + node * self._node_bytes
        name_offset, flags = struct.unpack_from(">IH", self._content, offset)
        path = f"{path}/{self._name(name_offset)}" if node else ""
        if flags & FOLDER:
            count, first = struct.unpack_from(">II", self._content, offset + 6)
            for child in range(first, first + count):
                yield from self.files(child, path)
        elif not flags & COMPRESSED_BY_ZSTD:  # Python 3.11 cannot read those; pictures are not compressed again
            yield Resource(path, self._file(struct.unpack_from(">I", self._content, offset + 10)[0], flags))

    def _name(self, offset: int) -> str:
        length = struct.unpack_from(">H", self._content, self._names + offset)[0]
        begin = self._names + offset + 6  # a hash of four bytes stands between
        return self._content[begin : begin + 2 * length].decode("utf-16-be")

    def _file(self, offset: int, flags: int) -> bytes:
        begin = self._data + offset + 4
        data = self._content[begin : begin + struct.unpack_from(">I", self._content, begin - 4)[0]]
        return zlib.decompress(data[4:]) if flags & COMPRESSED_BY_ZLIB else data


def read(content: bytes) -> Iterator[Resource]:
    """The files of a .rcc file, in the order of its tree. Raises NotAResourceFile."""
    try:
        yield from _Reader(content).files()
    except struct.error as error:
        raise NotAResourceFile(f"truncated: {error}") from error
