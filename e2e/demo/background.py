"""A command that runs beside others, and is waited for where its result is needed."""

import os
import signal
import subprocess
import tempfile

from console import DemoError


class Background:
    """Gives way to what runs in the foreground. Leaving the `with` block ends the command, if it still runs."""

    def __init__(self, command, way_out):
        self._command, self._way_out = [str(word) for word in command], way_out

    def __enter__(self):
        self._log = tempfile.TemporaryFile("w+")
        # A group of its own, which can be ended whole; not a session of its own, between which niceness counts for nothing.
        self._process = subprocess.Popen(["nice", "-n", "10", *self._command], stdin=subprocess.DEVNULL, stdout=self._log,
                                         stderr=subprocess.STDOUT, process_group=0)  # fmt: skip
        return self

    def wait(self):
        """Raises DemoError with the command's last lines when it fails."""
        if self._process.wait() == 0:
            return
        self._log.seek(0)
        lines = "\n".join("    " + line for line in self._log.read().strip().split("\n")[-20:])
        raise DemoError(f"`{' '.join(self._command)}` failed (exit status {self._process.returncode})\n{lines}", self._way_out)

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
        self._log.close()
