"""How long a thread was ready to run and had no CPU: others had it, or its cgroup had used up its quota."""

from __future__ import annotations


def queued_seconds() -> float | None:
    """Of the calling thread, since it began. None where the kernel does not count."""
    try:
        with open("/proc/thread-self/schedstat") as file:
            _, queued_nanoseconds, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return queued_nanoseconds / 1e9 if turns > 0 else None  # A thread that runs has had a turn, unless the kernel does not count.
