"""Commands that run beside others, and are waited for where their result is needed."""

import os
import shlex
import signal
import subprocess
import tempfile

from console import DemoError


class Background:
    """Commands one after another, until one fails. Leaving the `with` block ends what still runs.

    With `gives_way` they take the processor time that the foreground leaves over.
    """

    def __init__(self, commands, way_out, gives_way=False):
        self._script = " && ".join(shlex.join(map(str, command)) for command in commands)
        self._niceness, self._way_out = 10 if gives_way else 0, way_out

    def __enter__(self):
        self._log = tempfile.TemporaryFile("w+")
        # A group of its own, which can be ended whole; not a session of its own, between which niceness counts for nothing.
        self._process = subprocess.Popen(["nice", "-n", str(self._niceness), "sh", "-c", self._script], stdin=subprocess.DEVNULL, stdout=self._log,
                                         stderr=subprocess.STDOUT, process_group=0)  # fmt: skip
        return self

    def wait(self):
        """Raises DemoError with the command's last lines when it fails."""
        if self._process.wait() == 0:
            return
        self._log.seek(0)
        lines = "\n".join("    " + line for line in self._log.read().strip().split("\n")[-20:])
        raise DemoError(f"`{self._script}` failed (exit status {self._process.returncode})\n{lines}", self._way_out)

    def __exit__(self, *_):
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
        self._log.close()
