"""qt_resources.py, against resource files put together here by the format's description."""

import struct
import zlib

import pytest

import qt_resources


def name(text: str) -> bytes:
    return struct.pack(">HI", len(text), 0) + text.encode("utf-16-be")


def resource_file(version: int, data: bytes, flags: int) -> bytes:
    """A root folder that holds the folder "pictures" that holds the file "a.jpg"."""
    time = b"" if version == 1 else bytes(8)
    names = name("") + name("pictures") + name("a.jpg")
    folder_name, file_name = len(name("")), len(name("")) + len(name("pictures"))
    tree = struct.pack(">IHII", 0, qt_resources.FOLDER, 1, 1) + time
    tree += struct.pack(">IHII", folder_name, qt_resources.FOLDER, 1, 2) + time
    tree += struct.pack(">IHHHI", file_name, flags, 0, 0, 0) + time
    payload = struct.pack(">I", len(data)) + data
    header = b"qres" + struct.pack(">4I", version, 20, 20 + len(tree), 20 + len(tree) + len(payload))
    return header + tree + payload + names


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_plain_file_is_found_under_its_path(version):
    assert list(qt_resources.read(resource_file(version, b"picture", 0))) == [qt_resources.Resource("/pictures/a.jpg", b"picture")]


def test_a_compressed_file_is_decompressed():
    packed = struct.pack(">I", 7) + zlib.compress(b"picture")
    (resource,) = qt_resources.read(resource_file(2, packed, qt_resources.COMPRESSED_BY_ZLIB))
    assert resource.data == b"picture"


def test_a_file_in_a_compression_python_lacks_is_left_out():
    assert list(qt_resources.read(resource_file(3, b"?", qt_resources.COMPRESSED_BY_ZSTD))) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x89PNG", "does not begin with 'qres'"),
        (b"qres" + struct.pack(">4I", 9, 20, 20, 20), "version 9"),
        (b"qres\x00", "truncated"),
        (resource_file(2, b"picture", 0)[:40], "truncated"),
    ],
)
def test_what_is_no_resource_file_is_refused(content, message):
    with pytest.raises(qt_resources.NotAResourceFile, match=message):
        list(qt_resources.read(content))
