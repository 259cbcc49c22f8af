"""Finds and opens the native libraries that lie beside the feeder and are loaded by the user's interpreter."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

_PACKAGE = Path(__file__).resolve().parents[1]
_Library = TypeVar("_Library")


def library_paths(name: str, environment: Mapping[str, str] = os.environ) -> list[Path]:
    """Those that there are beside the feeder: of SLUICE_FEEDER_BINARY, of the bundle around this package or in it."""
    folders = [_PACKAGE.parent.parent / "lib", _PACKAGE / "bundle" / "lib"]
    if binary := environment.get("SLUICE_FEEDER_BINARY"):
        folders.insert(0, Path(binary).parent)
    return [folder / name for folder in folders if (folder / name).exists()]


def open_library(path: Path, version_function: str, version: int, mode: int = 0) -> ctypes.CDLL:
    """`mode`: of dlopen, beside what all need. Raises OSError if this process cannot use the library, or if it is of another version."""
    library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL | mode)
    try:
        found = getattr(library, version_function)()
    except AttributeError as error:
        raise OSError(f"{path}: {error}") from None
    if found != version:
        raise OSError(f"{path} is of version {found}, not {version}")
    return library


def first_usable(kind: Callable[[Path], _Library], paths: list[Path]) -> _Library | None:
    """None where there is none, or none for this machine's C library."""
    for path in paths:
        with contextlib.suppress(OSError):
            return kind(path)
    return None
