"""How many cores this process may use: as the feeder counts them (src/executor/cgroup.h)."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores(root: Path = Path("/")) -> float:
    """The tightest of the cgroup's quotas, or the CPUs of the affinity mask if there is none. Reads below `root`."""
    cpus = float(len(os.sched_getaffinity(0)))
    quotas = [quota for folder in cgroup_folders(root, "") if (quota := _quota_v2(folder)) is not None]
    quotas = quotas or [quota for folder in cgroup_folders(root, "cpu") if (quota := _quota_v1(folder)) is not None]
    return min([cpus, *quotas])


def threads_for(cores: float) -> int:
    """At least 1: a quarter of a core runs one thread, 1.5 cores run two."""
    return max(1, math.ceil(cores - 0.01))


def cgroup_folders(root: Path, controller: str) -> list[Path]:
    """Of the process's cgroup, and of those above it. `controller`: of a hierarchy of version 1; "" means version 2."""
    own = Path("/")
    for line in _words(root / "proc/self/cgroup", "\n"):
        _, names, path = (line.split(":", 2) + ["", ""])[:3]
        if controller in names.split(",") if controller else line.startswith("0:") and not names:
            own = Path(path)
    base = root / "sys/fs/cgroup" / controller
    return [base / folder.relative_to("/") for folder in (own, *own.parents)]


def _quota_v2(folder: Path) -> float | None:
    words = _words(folder / "cpu.max")
    try:
        return float(words[0]) / float(words[1])
    except (IndexError, ValueError, ZeroDivisionError):
        return None  # No such file, or "max".


def _quota_v1(folder: Path) -> float | None:
    try:
        quota, period = (float(_words(folder / f"cpu.cfs_{name}_us")[0]) for name in ("quota", "period"))
        return quota / period if quota > 0 else None
    except (IndexError, ValueError, ZeroDivisionError):
        return None


def _words(file: Path, separator: str | None = None) -> list[str]:
    try:
        return file.read_text().split(separator)
    except (OSError, UnicodeDecodeError):
        return []
