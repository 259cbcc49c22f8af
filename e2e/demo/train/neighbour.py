#!/usr/bin/env python3
"""A trainer that computes on its CPU and reads no data: what it loses, it loses to its neighbours on the host.

    neighbour.py SECONDS

A step is a fixed piece of work, then a pause of 50 ms. Prints a JSON line `result`: `seconds_per_step`, the median over all steps of the work's wall time,
and `waiting_share`, the part of all that wall time in which the work was ready to run and other processes had the cores. A core that is slow, or that a
hypervisor has taken away, is in the first figure only. `waiting_share` is null where the kernel does not tell (CONFIG_SCHED_INFO). `machine_busy_share`
is the part of the time in which the machine's processors ran anything.
"""

import json
import math
import statistics
import sys
import time
from pathlib import Path

ROUNDS = 400_000  # about 20 ms


def work():
    value = 1
    for number in range(ROUNDS):
        value = (value * 31 + number) & 0xFFFF
    return value


def waited_seconds():
    """For a core, since the process began; NaN where the kernel does not tell."""
    try:
        return int(Path("/proc/self/schedstat").read_text().split()[1]) * 1e-9
    except OSError:
        return math.nan


def processor_ticks():
    """Of all processors since the machine started: (idle, all)."""
    ticks = [int(number) for number in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def main():
    idle_before, all_before = processor_ticks()
    ends, steps, waited = time.monotonic() + float(sys.argv[1]), [], 0.0
    while time.monotonic() < ends:
        began, waited_before = time.monotonic(), waited_seconds()
        work()
        waited += waited_seconds() - waited_before
        steps.append(time.monotonic() - began)
        time.sleep(0.05)
    share = None if math.isnan(waited) else round(waited / sum(steps), 4)
    idle, ticks = (after - before for after, before in zip(processor_ticks(), (idle_before, all_before)))
    figures = {"steps": len(steps), "seconds_per_step": round(statistics.median(steps), 6), "waiting_share": share}
    figures["machine_busy_share"] = round(1 - idle / max(ticks, 1), 3)
    print(json.dumps({"event": "result", "time": round(time.time(), 3), **figures}), flush=True)


if __name__ == "__main__":
    main()
