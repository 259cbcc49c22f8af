"""Which modules are the user's own: neither of Python, nor installed, nor Sluice's, nor the script itself."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

SCRIPT = ("__main__", "__mp_main__")  # What the script is called, the latter in a process that multiprocessing has spawned.
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_OWN = str(Path(__file__).resolve().parents[1])
_users: set[str] = set()   # The names of modules,
_others: set[str] = set()  # as far as it was asked of which kind they are.


def users_modules() -> Iterator[tuple[str, ModuleType]]:
    """Those that are imported, by name and in the order of their names."""
    # Of thousands, most are known to be none of the user's: those are left out without a line of Python for each.
    for name in sorted(sys.modules.keys() - _others):
        module = sys.modules.get(name)
        if module is not None and is_of_the_user(name):
            yield name, module


def globals_within_reach(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Those of these modules and their classes, and of what they import, as far as it is the user's; by their full names. Not those of the script."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in sys.modules or not is_of_the_user(name):
            continue
        seen.add(name)
        for key, value in list(vars(sys.modules[name]).items()):
            yield f"{name}.{key}", value
            if isinstance(value, ModuleType):
                waiting.append(value.__name__)
            elif isinstance(value, (type, FunctionType)):
                waiting.append(value.__module__)
            if isinstance(value, type) and value.__module__ == name:
                yield from ((f"{name}.{key}.{member}", inner) for member, inner in list(vars(value).items()))


def is_of_the_user(name: str) -> bool:
    """Whether the module of this name is, which has been imported. The script itself is none."""
    if name not in _users and name not in _others:
        (_users if _is_of_the_user(name, sys.modules.get(name)) else _others).add(name)
    return name in _users


def _is_of_the_user(name: str, module: Any) -> bool:
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    if name in SCRIPT or not isinstance(file, str):
        return False
    if _INSTALLED.intersection(file.split(os.sep)) or file.startswith((*_STANDARD, _OWN)):
        return False
    folders = [folder for folder in sys.path if folder and file.startswith(folder.rstrip(os.sep) + os.sep)]
    return not any(name.partition(".")[0] in _installed_in(folder) for folder in folders)


@functools.lru_cache(maxsize=256)
def _installed_in(folder: str) -> frozenset[str]:
    """The packages and modules that pip has put into a folder of the path, as `pip install --target` does: by their names there."""
    names = set()
    for distribution in importlib.metadata.distributions(path=[folder]):
        files = (distribution.read_text("RECORD") or "").splitlines()
        names |= {line.partition("/")[0].partition(",")[0].partition(".")[0] for line in files}
    return frozenset(names)
