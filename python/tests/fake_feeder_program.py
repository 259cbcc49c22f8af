"""The fake feeder behind the command line of the real one."""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import signal
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

from fake_feeder import Faults, _serve  # noqa: E402

_PR_SET_PDEATHSIG = 1


class _NoControl:
    """A pipe on which nothing is ever said."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--socket", "--threads", "--arena-bytes", "--metrics-address", "--python-path", "--ranks", "--exit-with-parent",
                   "--exit-without-clients"):
        parser.add_argument(option)
    for switch in ("--insecure", "--threads-by-loaders"):
        parser.add_argument(switch, action="store_true")
    arguments = parser.parse_args()
    if os.environ.get("FAKE_FEEDER_FAILS"):
        sys.exit("the fake feeder was told to fail")
    if arguments.exit_with_parent:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    lock = arguments.exit_without_clients
    _serve(arguments.socket, _NoControl(), Faults(), lambda: lock is not None and _has_removed(Path(lock).parent))


def _has_removed(folder: Path) -> bool:
    """As the real one does; but one that does not get the lock waits for a client to come."""
    from sluice.shared_feeder import _locked  # It imports torch.

    if _locked(folder) is None:
        return False
    shutil.rmtree(folder)
    return True


if __name__ == "__main__":
    main()
