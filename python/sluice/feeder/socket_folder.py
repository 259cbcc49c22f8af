"""Where a feeder's socket lies. The kernel takes socket paths of 107 bytes, and batch systems give each job a temporary folder with a long name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_LONGEST_SOCKET_PATH_BYTES = 107
_SHORT_FOLDER = Path("/tmp")


def folder_for_sockets(longest_name: str) -> Path:
    """The temporary folder, or /tmp where a socket with this relative name would have too long a path in it. Processes with one TMPDIR get one folder."""
    folder = Path(tempfile.gettempdir())
    return folder if len(os.fsencode(folder / longest_name)) <= _LONGEST_SOCKET_PATH_BYTES else _SHORT_FOLDER
