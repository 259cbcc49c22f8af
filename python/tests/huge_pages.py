"""Forks of a process with large pages: a fork copies the table of its parent's pages, and with torch that is 100,000 entries and 20 ms of a CPU.

Of huge pages it copies 500 times fewer entries. What a fork then writes to is copied as before, in small pages.
"""

import ctypes

_BYTES = 2 << 20  # Of a huge page, where small ones have 4 KiB.
_COLLAPSE = 25  # MADV_COLLAPSE, of Linux 6.1.


def gather() -> None:
    """This process's heap, into huge pages as far as it fills them. An older kernel refuses, and all stays as it is."""
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for first, end in _heap():
        first, end = -(-first // _BYTES) * _BYTES, end // _BYTES * _BYTES
        if first < end:
            advise(first, end - first, _COLLAPSE)


def _heap() -> list[tuple[int, int]]:
    """Where the memory lies that is of no file."""
    with open("/proc/self/maps") as file:
        mappings = [line.split() for line in file]
    return [tuple(int(bound, 16) for bound in mapping[0].split("-")) for mapping in mappings if mapping[1] == "rw-p" and mapping[5:] in ([], ["[heap]"])]
