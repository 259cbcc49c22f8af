"""Ends a command that hangs: one that uses more processor time than it may, or none and writes nothing for long.

A limit of wall time would also end one that only waits for the processor, on a machine that is slow or has other work.
"""

import contextlib
import os
import pathlib
import signal
import time

STILL_SECONDS = 900  # neither processor time nor output
LOOK_SECONDS = 2
POLL_SECONDS = 0.05


def family(pid):
    """A process and all that it started and still runs: processor seconds by process, those of its ended children included."""
    ticks, parents = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                fields = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                parents[int(entry)], ticks[int(entry)] = int(fields[1]), sum(int(field) for field in fields[11:15])

    def is_below(process):
        while process not in (pid, 0):
            process = parents.get(process, 0)
        return process == pid

    return {process: spent / os.sysconf("SC_CLK_TCK") for process, spent in ticks.items() if is_below(process)}


def kill(process):
    for member in family(process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()


def wait_for(process, log, cpu_seconds):
    """The exit status of a process, or why it was ended (it used too much processor time, or did nothing for too long), and the
    processor seconds that it and its ended children used."""
    seen, seen_at = None, time.monotonic()
    while not has_ended(process, LOOK_SECONDS):
        spent = sum(family(process.pid).values())
        if (progress := (spent, log.stat().st_size)) != seen:
            seen, seen_at = progress, time.monotonic()
        if spent > cpu_seconds:
            reason = f"none after {spent:.0f} CPU-seconds"
        elif time.monotonic() - seen_at > STILL_SECONDS:
            reason = f"none, and nothing done for {STILL_SECONDS} s"
        else:
            continue
        kill(process)
        return reason, spent
    spent = family(process.pid)[process.pid]
    return process.wait(), spent


def has_ended(process, seconds):
    """Waits at most so long. The process stays a zombie until its `wait`: /proc tells what it has used."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return True
        time.sleep(POLL_SECONDS)
    return False
