"""A Python that has done its imports and forks for each program. A program is a process with its own arguments, folder, variables and output, and does
not spend the seconds that torch's imports take. Where the start of a process is the subject of a test, `test_run.run` starts a command.

Its forks are a tree: each further import is a process of its own, so that no program finds modules imported that it did not ask for.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import NoReturn

SECONDS = 300  # That a program may take.
_PACKAGE = Path(__file__).resolve().parent.parent
_PR_SET_PDEATHSIG = 1


class WarmPython:
    """Programs run one after the other. Not thread-safe."""

    def __init__(self) -> None:
        self._orders, theirs = Pipe()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def run(self, program: list, *, cwd: Path, imports: tuple[str, ...] = (), attached: bool = False, ranks: int = 0,
            **variables: str) -> tuple[int, str, str]:  # fmt: skip
        """Status, output and errors of a script with its arguments. `imports`: what it would import beside torch, in this order. `attached`: as
        under `sluice run`. `ranks`: that many processes, as torchrun starts them. A variable that is "" is not set."""
        environment = {name: value for name, value in {**os.environ, **variables}.items() if value}
        modules = ["torch", *imports, *(["sluice.attached"] if attached else [])]
        with tempfile.TemporaryDirectory() as folder:
            out, errors = Path(folder, "out"), Path(folder, "errors")
            self._orders.send({"imports": modules, "program": list(map(str, program)), "folder": str(cwd), "environment": environment, "attached": attached,
                               "ranks": ranks, "out": str(out), "errors": str(errors)})  # fmt: skip
            if not self._orders.poll(SECONDS):
                self._process.kill()
                raise TimeoutError(f"{program} has not ended: {errors.read_text()}")
            return self._orders.recv(), out.read_text(), errors.read_text()

    def stop(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._orders.send(None)
        self._process.wait(SECONDS)


def _serve(orders: Connection, done: int = 0) -> dict:
    """Returns in the forks alone, with what each has to run. `done`: of how many modules this process has the imports."""
    further: dict[str, Connection] = {}
    while True:
        order = orders.recv()
        if order is None:
            for others in further.values():
                others.send(None)
                os.wait()
            os._exit(0)
        if len(order["imports"]) == done:
            fork = os.fork()
            if fork == 0:
                _end_with_the_parent()
                return order
            orders.send(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))
            continue
        module = order["imports"][done]
        if module not in further:
            further[module], theirs = Pipe()
            if os.fork() == 0:
                _end_with_the_parent()
                os.environ.update(order["environment"])  # Libraries read theirs when they are imported.
                importlib.import_module(module)
                gc.freeze()  # A collection would copy the memory that forks share.
                return _serve(theirs, done + 1)
            theirs.close()
        further[module].send(order)
        orders.send(further[module].recv())


def _end_with_the_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(order: dict) -> NoReturn:
    """This process goes on, and ends, as `python PROGRAM`."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for descriptor, name in ((1, "out"), (2, "errors")):
        file = os.open(order[name], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tempfile.tempdir = None  # Of another TMPDIR.
    script = order["program"][0]
    sys.argv = order["program"]
    given = [entry for entry in order["environment"].get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [str(Path(script).resolve().parent), *given, *(entry for entry in sys.path[1:] if entry not in given)]
    if order["attached"]:
        from sluice.__main__ import environment

        os.environ.update(environment())
        runpy.run_path(str(_PACKAGE / "sluice" / "start" / "sitecustomize.py"))
    if order["ranks"]:
        _divide(order["ranks"])
    main = types.ModuleType("__main__")
    main.__file__ = script
    sys.modules["__main__"] = main
    status = _status_of(lambda: exec(compile(Path(script).read_bytes(), script, "exec"), vars(main)))
    # As multiprocessing ends its forks. Python would take all modules apart, and so copy the memory that they share: 1.3 CPU-seconds.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _divide(ranks: int) -> None:
    """Returns in each rank. The process that has forked them ends when all have."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address, port = probe.getsockname()
    os.environ.update(MASTER_ADDR=address, MASTER_PORT=str(port), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks))
    for rank in range(ranks):
        if os.fork() == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            return
    os._exit(max(os.wait()[1] != 0 for _ in range(ranks)))


def _status_of(program: Callable[[], None]) -> int:
    try:
        program()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    _become(_serve(Connection(int(sys.argv[1]))))
