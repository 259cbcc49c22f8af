"""The fake feeder behind the command line of the real one."""

from __future__ import annotations

import argparse
import os
import select
import shutil
import signal
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)]

from fake_feeder import Faults, _serve  # noqa: E402


class _NoControl:
    """A pipe on which nothing is ever said."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--socket", "--threads", "--arena-bytes", "--metrics-address", "--python-path", "--ranks", "--exit-with", "--detach",
                   "--exit-without-clients"):
        parser.add_argument(option)
    for switch in ("--insecure", "--threads-by-loaders"):
        parser.add_argument(switch, action="store_true")
    arguments = parser.parse_args()
    if os.environ.get("FAKE_FEEDER_FAILS"):
        sys.exit("the fake feeder was told to fail")
    if arguments.detach:
        _leave_starter(int(arguments.detach))
        threading.Thread(target=_end_with, args=(os.pidfd_open(int(arguments.exit_with)),), daemon=True).start()
    lock = arguments.exit_without_clients
    _serve(arguments.socket, _NoControl(), Faults(), lambda: lock is not None and _has_removed(Path(lock).parent))


def _leave_starter(descriptor: int) -> None:
    if (successor := os.fork()) > 0:
        os.write(descriptor, b"%d\n" % successor)
        os._exit(0)
    os.close(descriptor)


def _end_with(starter: int) -> None:
    poll = select.poll()
    poll.register(starter, select.POLLIN)
    poll.poll()
    os.kill(os.getpid(), signal.SIGKILL)


def _has_removed(folder: Path) -> bool:
    """As the real one does; but one that does not get the lock waits for a client to come."""
    from sluice.feeder.shared import _locked  # It imports torch.

    if _locked(folder) is None:
        return False
    shutil.rmtree(folder)
    return True


if __name__ == "__main__":
    main()
