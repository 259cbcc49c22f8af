"""One feeder for all ranks of a host, started by whichever rank needs it first (docs/designs/shared-feeder.md).

They meet in a folder that has the launch's name. Its lock is held by a rank that looks for the feeder or starts it, and by a feeder that ends. Whatever is
odd about the folder, the lock or the start gives the rank a feeder of its own, and a line that says why.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from sluice.base.notices import log
from sluice.base.settings import Settings
from sluice.feeder.embedded import EmbeddedFeeder, feeder_arguments, last_words
from sluice.feeder.endpoint import FeederUnavailable
from sluice.feeder.launch import Launch
from sluice.feeder.process import STOP_SECONDS
from sluice.feeder.socket_folder import folder_for_sockets

_SWEPT_AFTER_SECONDS = 60.0


class SharedFeeder:
    """Used by one thread, the connection's. No call waits: as long as the feeder is not there, `address` says so, and the connection asks again."""

    def __init__(self, command: list[str], settings: Settings, launch: Launch, clock: Callable[[], float] = time.monotonic) -> None:
        self._command = command
        self._settings = settings
        self._launch = launch
        self._clock = clock
        name = f"sluice.{os.geteuid()}/{launch.name}"
        self._folder = folder_for_sockets(f"{name}/feeder.sock") / name
        self._lock: int | None = None  # The descriptor, while it is held. A POSIX lock: it ends with its process, and no fork has it.
        self._process: subprocess.Popen | None = None  # If it was started by this rank.
        self._was_there = False
        self._looking_since_seconds: float | None = None
        self._own: EmbeddedFeeder | None = None  # Once this rank has stepped aside.

    @property
    def name(self) -> str:
        return self._own.name if self._own is not None else "the feeder of this host's ranks"

    def address(self) -> str:
        """Raises FeederUnavailable while the feeder, or the lock, is not to be had."""
        if self._own is not None:
            return self._own.address()
        if self._looking_since_seconds is None:
            self._looking_since_seconds = self._clock()
        try:
            path = self._find_or_start()
        except FeederUnavailable as trouble:
            # The rest of the patience is for the feeder of its own.
            if self._clock() - self._looking_since_seconds < self._settings.start_patience_seconds / 2:
                raise
            return self._step_aside(trouble)
        except OSError as obstacle:
            return self._step_aside(obstacle)
        self._looking_since_seconds = None
        return path

    def close(self) -> None:
        """The feeder goes on for the other ranks, and ends with the last of them."""
        self._let_go()
        if self._process is not None and self._process.poll() is None:
            self._process.returncode = 0  # Popen would complain: it is meant to outlive this process.
        self._process = None
        if self._own is not None:
            self._own.close()

    @property
    def _socket(self) -> str:
        return str(self._folder / "feeder.sock")

    def _find_or_start(self) -> str:
        self._take_lock()
        if _listens(self._socket):
            self._was_there = True
            self._let_go()
            return self._socket
        if self._was_there or (self._process is not None and self._process.poll() is not None):
            status = "" if self._process is None or self._process.poll() is None else f" with status {self._process.returncode}"
            self._was_there, self._process = False, None
            self._let_go()
            raise FeederUnavailable(f"it ended{status}{last_words(self._folder)}")
        if self._process is None:
            self._start()
        raise FeederUnavailable("it is starting")

    def _take_lock(self) -> None:
        """The lock stays with this rank from the start of a feeder until that listens."""
        if self._lock is not None:
            return
        for folder in (self._folder.parent, self._folder):
            _make_private(folder)
        self._lock = _locked(self._folder)
        if self._lock is None:
            raise FeederUnavailable("another rank starts it, or it is about to end")

    def _let_go(self) -> None:
        """A feeder that does not listen yet ends: no other process knows of it."""
        if self._lock is None:
            return
        if self._process is not None and not _listens(self._socket):
            self._process.kill()
            self._process.wait(STOP_SECONDS)
            self._process = None
        os.close(self._lock)
        self._lock = None

    def _start(self) -> None:
        _sweep(self._folder)
        arguments = feeder_arguments(self._settings, self._folder)
        arguments += ["--ranks", str(self._launch.ranks), "--exit-without-clients", str(self._folder / "lock")]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._socket)
        with open(self._folder / "feeder.log", "wb") as log_file:
            # Its own session: what ends this rank, a signal to its group, is not for the feeder of the others.
            self._process = subprocess.Popen(
                [*self._command, *arguments], env=self._launch.environment, stdin=subprocess.DEVNULL, stderr=log_file, start_new_session=True
            )

    def _step_aside(self, obstacle: Exception) -> str:
        log.warning("this rank has a feeder of its own, and shares none with the host's other ranks: %s", obstacle)
        self._let_go()
        self._own = EmbeddedFeeder(self._command, self._settings)
        return self._own.address()


def _make_private(folder: Path) -> None:
    """Raises OSError if there is something in its place that others may write to, or have put there."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise OSError(f"{folder} is not a folder of this user alone")


def _locked(folder: Path) -> int | None:
    """The descriptor of the folder's lock, or None if another process has it. Who has the lock may remove it: then the file that was opened is not
    the one that is there now."""
    path = folder / "lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(path).st_ino:
            return descriptor
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except OSError:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(path)
        except BlockingIOError:  # So many wait already.
            return True
        except OSError:
            return False
        return True


def _sweep(own: Path) -> None:
    """Removes the folders of feeders that were killed. A young one may belong to a rank that is about to lock it. Not this one: closing a file ends
    every lock that this process has on it."""
    for folder in own.parent.iterdir():
        with contextlib.suppress(OSError):
            if folder == own or time.time() - os.lstat(folder).st_mtime < _SWEPT_AFTER_SECONDS:
                continue
            lock = _locked(folder)
            if lock is not None:
                if not _listens(str(folder / "feeder.sock")):
                    shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
