"""What `sluice doctor` looks at: a check for each thing that a loader of Sluice needs, with what was seen and the way out.

Each check is a function of a `Place`, which tests replace in part. A check never raises: what it cannot find out is a finding.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from sluice.base.settings import VARIABLES, SettingError, Settings, is_on

_OLDEST_PYTHON = (3, 10)
_OLDEST_TORCH = (2, 2)
_START = Path(__file__).resolve().parents[1] / "start"


@dataclass(frozen=True)
class Check:
    """`passed`: Sluice works as far as this goes. `way_out`: what to do, also where something is missing that not everybody needs."""

    name: str
    passed: bool
    finding: str
    way_out: str = ""


def _version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Place:
    """This process and its machine. `root`: of the folders proc, sys and dev. `version_of`: of an installed package, or None."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    root: Path = Path("/")
    python: tuple[int, int] = sys.version_info[:2]
    version_of: Callable[[str], str | None] = _version_of
    imported: Callable[[str], ModuleType] = importlib.import_module
    modules: Collection[str] = field(default_factory=lambda: frozenset(sys.modules))
    fork: Callable[[], int] = os.fork


def python(place: Place) -> Check:
    found = ".".join(map(str, place.python))
    if place.python < _OLDEST_PYTHON:
        return Check("Python", False, f"{found}, {sys.executable}", "use Python 3.10 or newer")
    return Check("Python", True, f"{found}, {sys.executable}")


def torch(place: Place) -> Check:
    """Imports it: an installation whose libraries do not fit shows there only."""
    try:
        place.imported("torch")
    except Exception as error:  # Whatever its libraries raise.
        return Check("PyTorch", False, f"cannot be imported: {type(error).__name__}: {error}", "install PyTorch 2.2 or newer: pip install torch")
    version = place.version_of("torch") or "of an unknown version"
    if _numbers(version) < _OLDEST_TORCH:
        return Check("PyTorch", False, version, "Sluice needs PyTorch 2.2 or newer")
    return Check("PyTorch", True, version)


def packages(place: Place) -> list[Check]:
    """Those without which pipelines of images, or pipelines in Python, are not what they could be."""
    checks = []
    for package, needed_for in {"cloudpickle": "pipelines in Python", "numpy": "batches of arrays"}.items():
        version = place.version_of(package)
        checks.append(Check(package, version is not None, version or f"missing: {needed_for} need it", "" if version else f"pip install {package}"))
    torchvision, pillow = place.version_of("torchvision"), place.version_of("pillow")
    if place.version_of("pillow-simd") is not None:
        finding, way_out = "pillow-simd", "its resize rounds in its own way, native images have Pillow's bytes: pip install pillow in its place"
    else:
        finding = f"torchvision {torchvision or 'missing'}, Pillow {pillow or 'missing'}"
        way_out = "" if torchvision and pillow else "only data sets of images need them: pip install torchvision pillow"
    return [*checks, Check("images", True, finding, way_out)]


def settings(place: Place) -> Check:
    """The values of the variables that Python reads. The feeder reads the rest: see `cache`."""
    try:
        found = Settings.from_environment(place.environment)
    except SettingError as error:
        return Check("settings", False, str(error), "until then all loaders are torch's")
    if not found.enabled:
        return Check("settings", True, "SLUICE=off: all loaders are torch's", "unset SLUICE")
    named = sorted(name for name in place.environment if name.startswith("SLUICE_") and name in VARIABLES)
    return Check("settings", True, ", ".join(f"{name}={place.environment[name]}" for name in named) or "none: the defaults hold")


def names_of_settings(place: Place) -> Check:
    """A misspelt variable changes nothing, and no message says so."""
    unknown = sorted(name for name in place.environment if name.startswith("SLUICE") and name not in VARIABLES)
    if not unknown:
        return Check("names of settings", True, "all known")
    likely = {name: difflib.get_close_matches(name, VARIABLES, 1) for name in unknown}
    meant = [f"{name}: do you mean {matches[0]}?" for name, matches in likely.items() if matches]
    return Check("names of settings", False, "unknown: " + ", ".join(unknown), " ".join(meant) or "python/README.md lists them")


def attached(place: Place) -> Check:
    """Whether programs that run unedited are served where this process was started."""
    try:
        wanted, enabled = is_on(place.environment, "SLUICE_ATTACH", "off"), is_on(place.environment, "SLUICE")
    except SettingError as error:
        return Check("attached", False, str(error), "until then nothing is attached")
    if not wanted:
        return Check("attached", True, "loaders of sluice.torch are served; `sluice run train.py` serves those of torch's class, too")
    if not enabled:
        return Check("attached", True, "no: SLUICE=off", "unset SLUICE")
    if "sluice.attach" in place.modules:
        return Check("attached", True, "loaders of torch's class are served")
    way_out = f"use `sluice run`, or put {_START} first on PYTHONPATH; another sitecustomize.py before it takes its place"
    return Check("attached", False, "SLUICE_ATTACH is on, but this Python has not run Sluice's sitecustomize.py", way_out)


def _numbers(version: str) -> tuple[int, ...]:
    """Of "2.15.0+cpu": (2, 15, 0). What is no number ends it."""
    numbers = []
    for part in version.split("+")[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)
