"""The files of an image folder as native executors get them (protocols.md, section 5).

A table of a million files takes a second to make. So a loader keeps its table, and an epoch only looks whether the folder
still lists the very same files.
"""

from __future__ import annotations

import os
import struct
from array import array
from collections.abc import Iterable
from typing import Any

from sluice.lowering.image_formats import KNOWN, NAMES, by_format, in_words
from sluice.shipping.failures import NotNative


class TableOfFiles:
    """What tables of files and of ranges of files have in common: few bytes, `blob`, and samples that executors read."""

    reads_files = True
    blob: bytes

    def formats(self) -> dict[str, int]:
        """How many samples have each format, by their names."""
        raise NotImplementedError

    def in_words(self) -> str:
        return in_words(self.formats())

    @property
    def parts(self) -> list[bytes | memoryview]:
        """Its bytes."""
        return [self.blob]

    def was_sent(self, table: memoryview) -> None:
        """Its bytes lie there, too. They are few, and stay where they are."""


class FileTable(TableOfFiles):
    """Paths and labels. Immutable."""

    def __init__(self, folder: Any, selection: list[int] | None) -> None:
        """Of an ImageFolder's samples, or of those that `selection` lists. Raises NotNative for files that native executors
        would treat differently."""
        self.root = os.path.abspath(folder.root)
        samples = list(folder.samples)
        chosen = samples if selection is None else [samples[index] for index in _within(selection, folder)]
        self.count = len(chosen)
        self.source = {"kind": "image_files", "root": self.root, "files": self.count}
        self.blob, self._names_bytes = _encode(self.root, chosen)
        self._origin = folder.root, os.getcwd(), selection
        self._samples = samples if all(type(entry) is tuple for entry in samples) else None  # A list could change unseen.
        self._chosen = chosen

    def paths(self, keys: Iterable[int]) -> list[str]:
        """Of the files that these samples are read from."""
        return [os.path.abspath(self._chosen[key][0]) for key in keys]

    def formats(self) -> dict[str, int]:
        names = self.blob[len(self.blob) - self._names_bytes :].lower()
        return by_format(lambda extension: names.count(f".{extension}\0".encode()))

    def is_of(self, folder: Any, selection: list[int] | None) -> bool:
        """Whether a new table would be equal. Cheap where the folder holds the same tuples as before: milliseconds for a
        million."""
        same_origin = self._origin == (folder.root, os.getcwd(), selection)
        return same_origin and self._samples is not None and self._samples == folder.samples


def _within(selection: list[int], folder: Any) -> list[int]:
    if any(not -len(folder.samples) <= index < len(folder.samples) for index in selection):
        raise NotNative("a Subset's indices are not integers within its dataset")
    return selection


def _encode(root: str, samples: list) -> tuple[bytes, int]:
    """The table, and how many of its last bytes are the files' names."""
    directories = _Directories(root)
    runs, labels, names = array("I"), array("q"), []
    last = None
    for number, entry in enumerate(samples):
        if type(entry) not in (tuple, list) or len(entry) != 2:
            raise NotNative(f"sample {number} is no pair (path, label)")
        path, label = entry
        if type(path) is not str:
            raise NotNative(f"the path of sample {number} is a {type(path).__name__}, not a str")
        directory, slash, name = path.rpartition("/")
        if not name.lower().endswith(NAMES):
            raise NotNative(f"{name} is not a {KNOWN} file by its name")
        if type(label) is not int or not -(2**63) <= label < 2**63:
            raise NotNative(f"the label of sample {number} is {label!r}, not an int of 64 bits")
        if directory != last:
            runs.extend((directories.number(directory or slash, path), number))
            last = directory
        labels.append(label)
        names.append(name)
    parts = [labels.tobytes(), runs.tobytes(), _ended(directories.texts()), _ended(names)]
    return b"".join((struct.pack("<QQQ", len(runs) // 2, len(parts[2]), len(parts[3])), *parts)), len(parts[3])


class _Directories:
    """Numbered in the order of their first files."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._prefix = root.rstrip("/") + "/"
        self._known: dict[str, int] = {}   # As the samples write them.
        self._numbers: dict[str, int] = {}  # Relative to the root.

    def number(self, directory: str, path: str) -> int:
        number = self._known.get(directory)
        if number is None:
            absolute = os.path.abspath(directory)
            if absolute != self._root and not absolute.startswith(self._prefix):
                raise NotNative(f"{path} is not inside the folder {self._root}")
            relative = absolute[len(self._prefix) :]
            number = self._known[directory] = self._numbers.setdefault(relative, len(self._numbers))
        return number

    def texts(self) -> list[str]:
        return list(self._numbers)


def _ended(texts: list[str]) -> bytes:
    """The texts, each ended by a NUL."""
    try:
        joined = "".join(text + "\0" for text in texts).encode()
    except UnicodeEncodeError:
        raise NotNative("a file name is not valid UTF-8") from None
    if joined.count(0) != len(texts):
        raise NotNative("a file name holds a NUL")
    return joined
