"""What `sluice doctor` asks the machine: memory that processes share, CPUs, limits, forks, the folder of the cache."""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import socket
import sys
from pathlib import Path

from sluice.base.cpu_quota import cgroup_folders, usable_cores
from sluice.cache.source_cache import asks_for_cache, mistake_in
from sluice.explain.examination import Check, Place
from sluice.shipping.sealed_memory import SealedMemory

_MIB = 1 << 20
_DEFAULT_ARENA_BYTES = 512 * _MIB  # The feeder's own default.
_SHARED_MEMORY_MIB = 256  # Docker gives 64; a batch of 256 images of 224 x 224 takes 147.
_FILES = 1024


def shared_memory(place: Place) -> Check:
    """What batches travel in. Tries it: a sandbox may refuse the call."""
    try:
        if bytes(SealedMemory.of([b"sluice"]).view()) != b"sluice":
            return Check("shared memory", False, "sealed memory does not hold what was written to it", "use a kernel of Linux 5.10 or newer")
    except OSError as error:
        return Check("shared memory", False, f"memfd_create: {error.strerror}", "the sandbox of this container has to allow it (seccomp profile, gVisor)")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit != resource.RLIM_INFINITY and limit < _arena_bytes(place):
        return Check("shared memory", False, f"files may not be larger than {limit // _MIB} MiB, the batches need {_arena_bytes(place) // _MIB}",
                     "ulimit -f unlimited, or a smaller SLUICE_ARENA_BYTES")  # fmt: skip
    return Check("shared memory", True, f"memfd works, {_arena_bytes(place) // _MIB} MiB for batches")


def torchs_shared_memory(place: Place) -> Check:
    """/dev/shm: of loaders that stay with torch's own workers."""
    try:
        total_mib = shutil.disk_usage(place.root / "dev/shm").total // _MIB
    except OSError as error:
        return Check("/dev/shm", True, f"{error.strerror}", "loaders that stay with torch's own workers need it")
    way_out = "" if total_mib >= _SHARED_MEMORY_MIB else "loaders that stay with torch's own workers may need more: docker run --shm-size=1g"
    return Check("/dev/shm", True, f"{total_mib} MiB", way_out)


def cpus(place: Place) -> Check:
    cores = usable_cores(place.root)
    present = len(os.sched_getaffinity(0))
    finding = f"{cores:g} of {present} cores, by the cgroup's quota" if cores < present else f"{present} cores"
    return Check("CPUs", True, finding, "" if cores >= 1 else "less than a core makes few batches: raise the container's CPU limit")


def memory(place: Place) -> Check:
    """Of this process's cgroup and those above it; the batches' shared memory counts there, too."""
    limits = [limit for folder in cgroup_folders(place.root, "") if (limit := _bytes_of(folder / "memory.max")) is not None]
    limits += [limit for folder in cgroup_folders(place.root, "memory") if (limit := _bytes_of(folder / "memory.limit_in_bytes")) is not None]
    total = _memory_total(place.root)
    limit = min([*limits, total])
    finding = f"{limit // _MIB} MiB" + (", by the cgroup's limit" if limit < total else "")
    # In a pod the batches lie in the feeder's container, which has a limit of its own.
    if "SLUICE_FEEDER_SOCKET" not in place.environment and limit < 2 * _arena_bytes(place):
        return Check("memory", False, f"{finding}; batches may take {_arena_bytes(place) // _MIB} of them", "raise the limit, or set a smaller SLUICE_ARENA_BYTES")
    return Check("memory", True, finding)


def open_files(_: Place) -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return Check("open files", True, f"{soft} at most", "" if soft >= _FILES else f"ulimit -n {min(hard, 65536) if hard > 0 else 65536}: loaders with many workers need more")


def forks(place: Place) -> Check:
    """Workers like torch's, which make batches until an executor pays."""
    try:
        child = place.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    except OSError as error:
        return Check("processes", False, f"fork: {error.strerror}", "raise the limit of processes (pids of the container, ulimit -u)")
    method = multiprocessing.get_start_method(allow_none=True)
    if method in (None, "fork") and (method or place.python < (3, 14)):
        return Check("processes", True, "can be forked")
    way_out = "multiprocessing.set_start_method('fork') where the program allows it"
    return Check("processes", True, f"workers would be started by {method or 'forkserver'}: no forks make the first batches of Python pipelines", way_out)


def cache(place: Place) -> Check:
    """The feeder's, of source files: as SLUICE_CACHE_DIR, _BYTES, _SOCKET and _FORM say."""
    folder, text, path, form = (place.environment.get(f"SLUICE_CACHE_{name}", "") for name in ("DIR", "BYTES", "SOCKET", "FORM"))
    if not asks_for_cache(place.environment) and not form:
        return Check("cache", True, "none: neither SLUICE_CACHE_DIR nor SLUICE_CACHE_SOCKET is set")
    if mistake := mistake_in(place.environment):
        return Check("cache", False, *mistake)
    if path:
        return _nodes_cache(path)
    existing = next(parent for parent in (Path(folder).absolute(), *Path(folder).absolute().parents) if parent.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Check("cache", False, f"{existing} cannot be written to", "name a folder of yours: without it the feeder runs without the cache")
    return Check("cache", True, f"up to {int(text) // _MIB} MiB in {folder}", _what_the_cache_lacks(place, existing, int(text), form))


def _nodes_cache(path: str) -> Check:
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(path)
    except OSError as error:
        return Check("cache", False, f"{path}: {error.strerror or error}", f"start it: sluice cache --socket {path} --directory DIR --bytes N")
    return Check("cache", True, f"the node's, at {path}")


def _what_the_cache_lacks(place: Place, existing: Path, wanted_bytes: int, form: str) -> str:
    if form == "transcoded" and "avx2" not in _text(place.root / "proc/cpuinfo"):
        return "this processor has no AVX2: the cache keeps the files as they are"
    usage = shutil.disk_usage(existing)
    return "" if usage.free >= wanted_bytes else f"only {usage.free // _MIB} MiB are free there: the cache keeps what fits"


def _arena_bytes(place: Place) -> int:
    text = place.environment.get("SLUICE_ARENA_BYTES", "")
    return int(text) if text.isdigit() else _DEFAULT_ARENA_BYTES


def _memory_total(root: Path) -> int:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return sys.maxsize


def _bytes_of(file: Path) -> int | None:
    """None where there is no limit."""
    text = _text(file).strip()
    return int(text) if text.isdigit() else None


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
