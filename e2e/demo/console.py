"""How the demo speaks: timed steps, failures with a way out, and a table that is rewritten in place on a terminal."""

import contextlib
import subprocess
import sys
import time


class DemoError(Exception):
    """A failure that a person can act on."""

    def __init__(self, what, way_out):
        super().__init__(what)
        self.way_out = way_out


class Console:
    """Writes lines and one live block below them. Not thread-safe."""

    BLOCK_SECONDS = 5.0  # between two blocks where the output is no terminal

    def __init__(self, stream=sys.stdout, clock=time.monotonic):
        self._stream, self._clock, self._started = stream, clock, clock()
        self._terminal = stream.isatty()
        self._block_lines = 0
        self._last_block = -self.BLOCK_SECONDS

    def say(self, text):
        self._clear_block()
        for line in text.split("\n"):
            print(f"[{self._clock() - self._started:7.1f} s] {line}", file=self._stream)
        self._stream.flush()

    def plain(self, text):
        self._clear_block()
        print(text, file=self._stream, flush=True)

    def block(self, lines):
        """Shows `lines` in place of the last block; without a terminal, one block every few seconds."""
        if not self._terminal:
            if self._clock() - self._last_block < self.BLOCK_SECONDS:
                return
            self._last_block = self._clock()
        self._clear_block()
        print("\n".join(lines), file=self._stream, flush=True)
        self._block_lines = len(lines) if self._terminal else 0

    def keep_block(self):
        """What was shown last stays; the next block comes below it, and at once."""
        self._block_lines = 0
        self._last_block = -self.BLOCK_SECONDS

    @contextlib.contextmanager
    def step(self, what):
        """Says what is done, and at the end how long it took."""
        began = self._clock()
        self.say(what + " ...")
        yield
        self.say(f"{what}: {self._clock() - began:.1f} s")

    def _clear_block(self):
        if self._block_lines:
            self._stream.write(f"\x1b[{self._block_lines}A\x1b[J")
            self._block_lines = 0


def run(command, way_out, capture="", environment=None, input_text=None, timeout_seconds=3600):
    """Runs a command. `capture`: "" shows its output as it comes, "stdout" returns what is written there and shows the
    rest, "all" returns both.

    Raises DemoError with its last lines when it fails. On an interrupt the command is ended and waited for: it cleans up
    what it made before this program does.
    """
    process = subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE if input_text is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE if capture else None, stderr=subprocess.STDOUT if capture == "all" else None,
    )  # fmt: skip
    try:
        output, _ = process.communicate(input_text, timeout=timeout_seconds)
    except BaseException:
        process.terminate()
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    if process.returncode != 0:
        words = command if isinstance(command, str) else " ".join(str(word) for word in command[:6])
        lines = "\n".join("    " + line for line in (output or "").strip().split("\n")[-20:])
        raise DemoError(f"`{words}` failed (exit status {process.returncode})" + (f"\n{lines}" if output else ""), way_out)
    return output or ""
