"""A feeder of the process's own, where no cluster has put one beside it: a laptop, a notebook, a test.

It runs from the package's bundle, through the bundle's own loader, so that nothing of the host's C++ libraries matters. Its
socket is in a private temporary directory. It dies with this process, however this process ends.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from pathlib import Path

from sluice.base.settings import Settings
from sluice.feeder.endpoint import FeederBroken
from sluice.feeder.process import FeederProcess
from sluice.feeder.socket_folder import folder_for_sockets

_PACKAGE = Path(__file__).resolve().parents[1]
_LOG_TAIL_BYTES = 2000
_DIRECTORY_PREFIX = "sluice-"
_RANDOM_LETTERS = 8  # That mkdtemp adds.
_SWEPT_AFTER_SECONDS = 60.0


def feeder_arguments(settings: Settings, directory: Path) -> list[str]:
    """Of a feeder whose socket is in this directory."""
    arguments = ["--socket", str(directory / "feeder.sock"), "--threads", str(settings.threads)]
    if settings.threads == 0:
        arguments.append("--threads-by-loaders")
    if settings.arena_bytes is not None:
        arguments += ["--arena-bytes", str(settings.arena_bytes)]
    return [*arguments, "--metrics-address", "none", "--insecure", "--python-path", str(_PACKAGE.parent)]


def last_words(directory: Path) -> str:
    """Of the feeder that logged there last, to be added to a sentence."""
    try:
        with open(directory / "feeder.log", "rb") as log_file:
            size = log_file.seek(0, os.SEEK_END)
            log_file.seek(max(0, size - _LOG_TAIL_BYTES))
            text = log_file.read().decode(errors="replace").strip()
    except OSError:
        text = ""
    return f"; its last words: {text}" if text else ""


class EmbeddedFeeder:
    """Starts the feeder when the connection first wants it, and again if it has died. Used by one thread, the connection's."""

    name = "the feeder of this process"

    def __init__(self, command: list[str], settings: Settings) -> None:
        self._command = command
        self._settings = settings
        self._directory: Path | None = None
        self._process: FeederProcess | None = None

    @property
    def pid(self) -> int | None:
        """Of the running feeder."""
        return self._process.pid if self._process is not None else None

    def address(self) -> str:
        """Raises FeederBroken if the feeder cannot be started or has just ended; the next call starts another."""
        if self._process is not None and self._directory is not None and self._process.has_ended():
            self._process.stop()
            self._process = None
            raise FeederBroken(f"it has ended{last_words(self._directory)}")
        if self._directory is None:
            temporary = folder_for_sockets(f"{_DIRECTORY_PREFIX}{_RANDOM_LETTERS * '_'}/feeder.sock")
            _sweep(temporary)
            self._directory = Path(tempfile.mkdtemp(prefix=_DIRECTORY_PREFIX, dir=temporary))
        if self._process is None:
            self._process = self._start(self._directory)
        return str(self._directory / "feeder.sock")

    def close(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def _start(self, directory: Path) -> FeederProcess:
        (directory / "feeder.sock").unlink(missing_ok=True)
        with open(directory / "feeder.log", "wb") as log_file:
            try:
                return FeederProcess([*self._command, *feeder_arguments(self._settings, directory)], log_file)
            except FeederBroken as error:
                raise FeederBroken(f"{error}{last_words(directory)}") from None


def _sweep(temporary: Path) -> None:
    """Removes the directories of processes that were killed and could not. Their sockets refuse connections, which holds in every PID namespace. A
    directory without a socket, or a young one, may belong to a feeder that is just starting."""
    for directory in temporary.glob(_DIRECTORY_PREFIX + "*"):
        try:
            if time.time() - directory.stat().st_mtime < _SWEPT_AFTER_SECONDS or directory.stat().st_uid != os.getuid():
                continue
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                probe.connect(str(directory / "feeder.sock"))
        except ConnectionRefusedError:
            shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            pass
