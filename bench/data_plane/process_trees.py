"""CPU time and memory of processes and their descendants. Of a process that ends meanwhile, its parent has the time."""

import contextlib
import ctypes
import os
import pathlib
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
END_SECONDS = 30
READINGS = 20


def adopt_orphans():
    """From now on a descendant whose parent has ended stays in this process's tree."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def children_of(pid):
    """Of all its threads. The children of one that ends meanwhile are another one's, which may have been read before: so all are read again."""
    for _ in range(READINGS):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
            return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return []  # It has ended itself.


def process_tree(pid):
    yield pid
    for child in children_of(pid):
        yield from process_tree(child)


def end_descendants():
    """Returns when they have ended, with those that adopt_orphans() leaves to this process, or after END_SECONDS."""
    deadline = time.monotonic() + END_SECONDS
    while (others := list(process_tree(os.getpid()))[1:]) and time.monotonic() < deadline:
        for pid in others:  # parents first: they start no others
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def of_tree(read):
    """The sum of what `read` finds in the folder of each process in /proc."""
    total = 0
    for pid in process_tree(os.getpid()):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            total += read(pathlib.Path(f"/proc/{pid}"))
    return total


def _times(process):
    """utime, stime, cutime, cstime: in ticks."""
    return [int(field) for field in (process / "stat").read_text().rpartition(")")[2].split()[11:15]]


def cpu_ticks(process):
    return sum(_times(process))


def own_cpu_seconds(pid):
    """Of this process alone."""
    return sum(_times(pathlib.Path(f"/proc/{pid}"))[:2]) / os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds():
    """Of this process and its descendants, with those that have ended: the executors of the loader before may end in this one's epoch."""
    return of_tree(cpu_ticks) / os.sysconf("SC_CLK_TCK")


def pss_kib(process):
    lines = (process / "smaps_rollup").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def own_bytes(process):
    """Of its memory that is no file's; each page counts once."""
    lines = [line.split() for line in (process / "smaps_rollup").read_text().splitlines()]
    return sum(1024 * int(line[1]) for line in lines if line[0] in ("Pss_Anon:", "Pss_Shmem:"))


def tree_pss_mib():
    """Memory of this process and its descendants; pages that several of them share count once."""
    return of_tree(pss_kib) / 1024
