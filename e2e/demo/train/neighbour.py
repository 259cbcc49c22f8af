#!/usr/bin/env python3
"""A trainer that computes on its CPU and reads no data: what it loses, it loses to its neighbours on the host.

    neighbour.py SECONDS

A step is a fixed piece of work, then a pause of 50 ms. Prints a JSON line `result`: `seconds_per_step`, the median over all steps of the work's wall time,
and `waiting_share`, the part of all that wall time in which the work had no core.
"""

import json
import statistics
import sys
import time

ROUNDS = 400_000  # about 20 ms


def work():
    value = 1
    for number in range(ROUNDS):
        value = (value * 31 + number) & 0xFFFF
    return value


def main():
    ends, steps, cpu_seconds = time.monotonic() + float(sys.argv[1]), [], 0.0
    while time.monotonic() < ends:
        began, cpu_began = time.monotonic(), time.process_time()
        work()
        cpu_seconds += time.process_time() - cpu_began
        steps.append(time.monotonic() - began)
        time.sleep(0.05)
    figures = {"steps": len(steps), "seconds_per_step": round(statistics.median(steps), 6), "waiting_share": round(max(0, 1 - cpu_seconds / sum(steps)), 4)}
    print(json.dumps({"event": "result", "time": round(time.time(), 3), **figures}), flush=True)


if __name__ == "__main__":
    main()
