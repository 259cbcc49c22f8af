"""Bytes that no process can change any more, in memory that processes share: a sealed memfd.

A pipeline may be as large as its data set. It is written once and then travels as a descriptor: every process that has it maps the same memory.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from collections.abc import Iterable

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class SealedMemory:
    """Thread-safe: immutable. Its descriptor is open as long as it lives."""

    def __init__(self, descriptor: int) -> None:
        """Takes the descriptor of sealed memory over from the caller."""
        self.descriptor = descriptor
        self.nbytes = os.fstat(descriptor).st_size
        weakref.finalize(self, os.close, descriptor).atexit = False

    @classmethod
    def of(cls, parts: Iterable[bytes | memoryview]) -> SealedMemory:
        """The parts, one behind the other. Raises OSError."""
        descriptor = os.memfd_create("sluice-pipeline", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            for part in parts:
                left = memoryview(part)
                while left:
                    left = left[os.write(descriptor, left) :]
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor)

    def view(self) -> memoryview:
        """The bytes, to be read. All views of all processes are the same memory."""
        return self._mapped(prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)  # Older kernels refuse MAP_SHARED.

    def private(self) -> memoryview:
        """The bytes, to be written: a page that is written to becomes this view's own."""
        return self._mapped(access=mmap.ACCESS_COPY)

    def _mapped(self, **how: int) -> memoryview:
        return memoryview(mmap.mmap(self.descriptor, self.nbytes, **how) if self.nbytes else b"")
