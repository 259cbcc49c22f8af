"""Where data sets are kept, and how one is made: once, completely or not at all.

A data set is a folder $SLUICE_CACHE/datasets/NAME. It is made under another name and renamed when it is complete, so a
folder that exists can be used, whatever interrupted an earlier attempt.
"""

import argparse
import contextlib
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

TOOLCHAIN = pathlib.Path(__file__).resolve().parents[2] / "toolchain"
sys.path.insert(0, str(TOOLCHAIN))
from cache_folder import cache_folder  # noqa: E402

UNPACK = TOOLCHAIN / "unpack.sh"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def packages(names: list[str]) -> pathlib.Path:
    """Unpacks the Debian packages that are not there yet; returns the folder that holds one folder a package."""
    root = cache_folder() / "packages"
    if not all((root / name).is_dir() for name in names):
        unpacked = subprocess.run([UNPACK, *names], env={**os.environ, "SLUICE_CACHE": str(cache_folder())}, stdout=sys.stderr, check=False)
        if unpacked.returncode:
            sys.exit(unpacked.returncode)  # it has said what is missing and the way out
    return root


@contextlib.contextmanager
def _locked(parent: pathlib.Path) -> Iterator[None]:
    handle = os.open(parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def make(parent: pathlib.Path, name: str, fill: Callable[[pathlib.Path], None]) -> pathlib.Path:
    """The folder parent/name, filled by `fill` if it does not exist. Two processes at once: the second one waits."""
    target, unfinished = parent / name, parent / f"{name}.unfinished"
    if target.is_dir():
        return target
    parent.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the clean-up below runs
    with _locked(parent):
        if target.is_dir():
            return target
        started = time.monotonic()
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        unfinished.mkdir()
        try:
            fill(unfinished)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    say(f"made {target} in {time.monotonic() - started:.1f} s")
    return target


def command(description: str, name: str, default_count: int, version: int, fill: Callable[[pathlib.Path, int], None]) -> None:
    """What each data set's script does when it is run: makes it, if need be, and prints its folder."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=default_count)
    options = parser.parse_args()
    os.nice(5)
    print(make(cache_folder() / "datasets", f"{name}-{options.count}-v{version}", lambda out: fill(out, options.count)))
