"""Whether a batch was made of what its process had in memory already: then it is the same at any later time.

The kernel counts what a process and its ended children read by system calls: of files, pipes and devices, not of sockets. Python tells of each file that
it maps and each connection that it makes. What libraries map by themselves the kernel lists. What they open and keep is found by its number. Not found:
a library that maps a file, or asks a server, within one batch and leaves nothing behind.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

_COUNT = b"rchar: "
_FIRST_BYTES = 64

_reads_for_good = False  # This process, or one that it was forked from.


def listen() -> None:
    """From now on what this process maps or connects to is noticed. Once a process, before the user's code runs; forks of it listen, too."""
    sys.addaudithook(_notice)
    _known_data.update(_mapped_data())


class MemoryOnly:
    """Of one process, which has listened. Not thread-safe: one batch at a time."""

    def __init__(self) -> None:
        self._batches = 0
        self._first_free = _lowest_free()
        self._expected: int | None = None  # How many bytes it has read if it reads no more.

    def begin(self) -> None:
        """A batch is going to be made."""
        self._expected = _read_bytes(and_this_one=True)

    def holds(self) -> bool:
        """Whether it was made of memory only; False where that cannot be told."""
        global _reads_for_good
        has_read = self._expected is None or _read_bytes() != self._expected
        self._batches += 1
        # The list of mappings is long: a look takes a millisecond.
        if not has_read and not _reads_for_good and self._batches & (self._batches - 1) == 0:
            _reads_for_good = not _mapped_data() <= _known_data
        return not (has_read or _reads_for_good or _lowest_free() > self._first_free or threading.active_count() > 1)


def _notice(event: str, arguments: tuple[Any, ...]) -> None:
    global _reads_for_good
    if event == "socket.connect" or (event == "mmap.__new__" and _has_a_name(arguments[0])):
        _reads_for_good = True


def _has_a_name(descriptor: int) -> bool:
    try:
        return os.fstat(descriptor).st_nlink > 0
    except (OSError, OverflowError):  # Memory without a file.
        return False


def _read_bytes(and_this_one: bool = False) -> int | None:
    """By system calls so far; None if the kernel does not tell. Telling reads some, too."""
    try:
        descriptor = os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        line = os.read(descriptor, _FIRST_BYTES)
    finally:
        os.close(descriptor)
    if not line.startswith(_COUNT):
        return None
    return int(line[len(_COUNT) : line.index(b"\n")]) + (len(line) if and_this_one else 0)


def _lowest_free() -> int:
    """The number that the next descriptor gets: it rises by what is opened and kept."""
    descriptor = os.open("/", os.O_PATH | os.O_CLOEXEC)
    os.close(descriptor)
    return descriptor


def _mapped_data() -> set[str]:
    """The files that are mapped, but for those that hold code, and those without a name: memory."""
    with open("/proc/self/maps") as maps:
        fields = [line.rstrip("\n").split(maxsplit=5) for line in maps]
    mapped = [(field[1], field[5]) for field in fields if len(field) == 6 and field[5].startswith("/") and not field[5].endswith(" (deleted)")]
    return {path for _, path in mapped} - {path for permissions, path in mapped if "x" in permissions}


_known_data: set[str] = set()
