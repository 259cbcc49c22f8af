"""How the C library keeps memory in a process that makes batches.

It gives a large block back to the kernel as soon as it is freed. An executor asks for the like again with the next sample, and
the kernel clears and maps every page anew: up to a quarter of the time that an image takes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os

# <malloc.h>
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BLOCK_BYTES = 32 << 20
_MOST_KEPT_BYTES = 128 << 20


def keep_freed_memory() -> None:
    """From now on this process keeps up to 128 MB of what it has freed, in blocks of up to 32 MB. Does nothing under another C
    library, or where the user has set a threshold."""
    if "MALLOC_MMAP_THRESHOLD_" in os.environ or "MALLOC_TRIM_THRESHOLD_" in os.environ:
        return
    with contextlib.suppress(AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BLOCK_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _MOST_KEPT_BYTES)
