"""A feeder that this process has started, and that is no child of it: `os.wait()` in a user's script waits for the script's own children only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import IO

from sluice.feeder.endpoint import FeederBroken
from sluice.feeder.programs import program_environment

START_SECONDS = 30.0  # Until it has left this process: milliseconds, unless its libraries come from a slow disk.
STOP_SECONDS = 3.0
_LOOK_SECONDS = 0.02
_ANSWER_BYTES = 32


class FeederProcess:
    """Not thread-safe."""

    def __init__(self, command: list[str], log_file: IO[bytes]) -> None:
        """Raises FeederBroken if it cannot be started."""
        told, tells = os.pipe()
        try:
            # Its own session: Ctrl-C in a terminal is for the training script, which ends the feeder in good order.
            first = subprocess.Popen(
                [*command, "--exit-with", str(os.getpid()), "--detach", str(tells)], env=program_environment(os.environ), stdin=subprocess.DEVNULL,
                stderr=log_file, start_new_session=True, pass_fds=(tells,),
            )  # fmt: skip
        except OSError as error:
            os.close(told)
            raise FeederBroken(f"{command[0]} cannot be started: {error.strerror}") from None
        finally:
            os.close(tells)
        with open(told, "rb", buffering=0) as answers:
            try:
                status = first.wait(START_SECONDS)  # 0 also where the script has waited for it, or ignores the ends of children.
                answer = answers.read(_ANSWER_BYTES) if status == 0 and _is_readable(told, 0) else b""
            except subprocess.TimeoutExpired:
                first.kill()
                status, answer = first.wait(), b""
        if not answer:
            raise FeederBroken(f"it ended with status {status}")
        self.pid = int(answer)
        try:
            self._descriptor: int | None = os.pidfd_open(self.pid)
        except OSError:  # It has ended, or the kernel is older than 5.3.
            self._descriptor = None

    def has_ended(self) -> bool:
        return self._ends_within(0)

    def stop(self) -> None:
        """Ends it, if it has not ended yet."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.has_ended():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, number)
                self._ends_within(STOP_SECONDS)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _ends_within(self, seconds: float) -> bool:
        if self._descriptor is not None:
            ended = _is_readable(self._descriptor, seconds)
        else:
            until_seconds = time.monotonic() + seconds
            while not (ended := not _is_there(self.pid)) and time.monotonic() < until_seconds:
                time.sleep(_LOOK_SECONDS)
        if ended:
            with contextlib.suppress(ChildProcessError):  # It is a child where this process adopts those that lose their parent, as a container's first one.
                os.waitpid(self.pid, os.WNOHANG)
        return ended


def _is_readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
