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


class Throttling:
    """The time for which the kernel has held back the process's cgroup, and what runs in it, as it had used up its quota. Not thread-safe."""

    def __init__(self, threads: int, root: Path = Path("/")) -> None:
        """`threads`: at most as many run in the cgroup, each of which the kernel counts by itself. Reads below `root`."""
        self._threads = max(1, min(threads, len(os.sched_getaffinity(0))))
        v2, v1 = cgroup_folders(root, "")[0], cgroup_folders(root, "cpu")[0]
        self._folder = v2 if _quota_v2(v2) is not None else v1 if _quota_v1(v1) is not None else None
        self._field, self._per_second = ("throttled_usec", 1e6) if self._folder == v2 else ("throttled_time", 1e9)
        self._last_seconds = self._total_seconds()

    def seconds_since_last(self) -> float:
        """Since the last call, or since this object was made; for one thread. 0 where there is no quota."""
        total = self._total_seconds()
        since, self._last_seconds = total - self._last_seconds, total
        return since / self._threads

    def _total_seconds(self) -> float:
        words = _words(self._folder / "cpu.stat") if self._folder is not None else []
        try:
            return int(words[words.index(self._field) + 1]) / self._per_second
        except (IndexError, ValueError):
            return 0.0


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
