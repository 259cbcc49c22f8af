"""`sluice run [--] train.py args` and `python -m sluice train.py args`: the program as it is, with its loaders served by Sluice.

The process becomes `python train.py args`, with SLUICE_ATTACH=1 and the folder of our `sitecustomize` first on PYTHONPATH. So nothing of Sluice is in its
tracebacks, signals and exit status, and the Python processes that it starts are attached, too.
"""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_USAGE = """usage: sluice run [--] PROGRAM [ARGUMENT ...]

PROGRAM is a script (train.py), a module (-m package.train) or a command of the PATH (torchrun, accelerate).
It runs as without Sluice, but for the loaders of torch.utils.data, which Sluice serves.
  SLUICE=off       plain PyTorch
  SLUICE_REPORT=1  tells at the end who has made each loader's batches, and why
"""


def command(arguments: list[str]) -> list[str]:
    """What runs the program: Python, unless its name is that of no file and of a command."""
    program = arguments[0]
    found = None if program.startswith("-") or os.path.exists(program) else shutil.which(program)
    if found is not None:
        return [found, *arguments[1:]]
    return [sys.executable, *subprocess._args_from_interpreter_flags(), *arguments]


def environment() -> dict[str, str]:
    """Of the program: that of this process, and what attaches Sluice. The package's folder is named where only this process's path has it."""
    entries = [str(_PACKAGE / "start")]
    if str(_PACKAGE.parent) not in (os.path.realpath(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())):
        entries.append(str(_PACKAGE.parent))
    entries += [entry for entry in [os.environ.get("PYTHONPATH", "")] if entry]
    return {**os.environ, "SLUICE_ATTACH": "1", "PYTHONPATH": os.pathsep.join(entries)}


def main() -> None:
    arguments = sys.argv[1:]
    for word in ("run", "--"):
        if arguments[:1] == [word]:
            del arguments[0]
    if not arguments or arguments[0] in ("-h", "--help"):
        (sys.stdout if arguments else sys.stderr).write(_USAGE)
        sys.exit(0 if arguments else 2)
    if sys.flags.ignore_environment or sys.flags.no_site:
        sys.stderr.write("sluice: not attached: Python's options -I, -E and -S keep it from reading PYTHONPATH\n")
    line = command(arguments)
    os.execve(line[0], line, environment())


if __name__ == "__main__":
    main()
