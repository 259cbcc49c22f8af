"""`sluice run [--] train.py args` and `python -m sluice train.py args`: the program as it is, with its loaders served by Sluice. `sluice explain
train.py args` does the same and tells at the end where the time of its loaders went. `sluice doctor` says whether all of it works here. `sluice cache` is the cache
that the programs of a machine share.

The process becomes `python train.py args`, with SLUICE_ATTACH=1 and the folder of our `sitecustomize` first on PYTHONPATH. So nothing of Sluice is in its
tracebacks, signals and exit status, and the Python processes that it starts are attached, too.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_USAGE = """usage: sluice run [--] PROGRAM [ARGUMENT ...]
       sluice explain [--] PROGRAM [ARGUMENT ...]
       sluice doctor [-o json]
       sluice cache --directory DIR --bytes N [--socket PATH] [--memory-bytes N]

PROGRAM is a script (train.py), a module (-m package.train) or a command of the PATH (torchrun, accelerate).
It runs as without Sluice, but for the loaders of torch.utils.data, which Sluice serves. `explain` tells of each loader, when the program
has ended or was interrupted, what its batches have cost and what would make the loop wait less. `doctor` says what of Sluice works on this
machine and in this environment; its exit status is 1 if a check fails. `cache` keeps source files on the disk for all programs that are
told of its socket by SLUICE_CACHE_SOCKET; `sluice cache --help` has its options.
  SLUICE=off       plain PyTorch
  SLUICE_REPORT=1  tells at the end who has made each loader's batches, and why
"""


def command(arguments: list[str]) -> list[str]:
    """What runs the program: Python, unless its name is that of no file and of a command."""
    program = arguments[0]
    found = None if program.startswith("-") or os.path.exists(program) else shutil.which(program)
    if found is not None:
        return [found, *arguments[1:]]
    own_flags: Callable[[], list[str]] = vars(subprocess)["_args_from_interpreter_flags"]  # As multiprocessing does it.
    return [sys.executable, *own_flags(), *arguments]


def environment(explains: bool = False) -> dict[str, str]:
    """The program's: that of this process, and what attaches Sluice and has it explain. The package's folder is named where only this process's
    path has it."""
    entries = [str(_PACKAGE / "start")]
    if str(_PACKAGE.parent) not in (os.path.realpath(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())):
        entries.append(str(_PACKAGE.parent))
    entries += [entry for entry in [os.environ.get("PYTHONPATH", "")] if entry]
    explain = {"SLUICE_EXPLAIN": "1"} if explains else {}
    return {**os.environ, **explain, "SLUICE_ATTACH": "1", "PYTHONPATH": os.pathsep.join(entries)}


def cache(arguments: list[str]) -> int:
    """Becomes the program sluice-cache; returns where there is none."""
    from sluice.base.settings import Settings
    from sluice.feeder.programs import node_cache_command, program_environment

    line = node_cache_command(Settings.from_environment())
    if line is None:
        sys.stderr.write("sluice: there is no sluice-cache beside the feeder: install a wheel that `make wheel` has built\n")
        return 1
    os.execve(line[0], [*line, *arguments], program_environment(os.environ))


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["doctor"]:
        from sluice.explain.doctor import main as doctor

        sys.exit(doctor(arguments[1:]))
    if arguments[:1] == ["cache"]:
        sys.exit(cache(arguments[1:]))
    explains = arguments[:1] == ["explain"]
    if explains or arguments[:1] == ["run"]:
        del arguments[0]
    if arguments[:1] == ["--"]:
        del arguments[0]
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(_USAGE)
        sys.exit(0 if arguments else 2)
    if sys.flags.ignore_environment or sys.flags.no_site:
        sys.stderr.write("sluice: not attached: Python's options -I, -E and -S keep it from reading PYTHONPATH\n")
    line = command(arguments)
    os.execve(line[0], line, environment(explains))


if __name__ == "__main__":
    main()
