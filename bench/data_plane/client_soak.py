#!/usr/bin/env python3
"""A training process at full rate for a long time: nothing that it or its feeder holds may grow.

usage: bench/data_plane/client_soak.py BUILD [--minutes 30] [--output FILE]     (make soak-client MINUTES=30)

Loaders are made and dropped, some in the middle of an epoch; data sets change between epochs; a data worker is started, drained and killed in turn.
Every twenty rounds the loop rests until the processes of dropped loaders have ended. Then this counts for the training process, for the feeder and for
the feeder's processes: memory, descriptors, memfds, threads and processes. Counts in the midst of the rounds would follow the machine's speed: on a
quiet one more loaders were dropped just before.
The medians of the last third of the counts are compared with those of the second; the first one warms up.
Prints a table and exits with 1 if anything has grown beyond its bound.
"""

import argparse
import contextlib
import gc
import json
import os
import pathlib
import statistics
import sys
import time

import numpy
import torch
from process_trees import own_bytes, process_tree
from remote_batches import feeder_for_workers, free_address, worker_at
from torch.utils.data import Dataset

import sluice.torch

# What may differ by chance from one third to the next: MiB, and numbers of things.
BOUNDS = {"memory_mebibytes": 12, "descriptors": 4, "memfds": 2, "threads": 3, "processes": 2}
ROUND_SECONDS = 3.0
ROUNDS_BETWEEN = 20
RESTING_SECONDS = 25.0  # The processes of a dropped loader end within 16 s.
FEWEST_COUNTS = 6


class Rows(Dataset):
    """Rows of an array that travels beside the pickle, and an attribute that changes with each epoch."""

    def __init__(self, samples, seed):
        self.rows = numpy.random.default_rng(seed).integers(0, 256, (samples, 2048), dtype=numpy.uint8)
        self.epoch = 0

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index].copy()), self.epoch


def use_loaders(number):
    """Makes loaders and drops them: to the end, in the middle of an epoch, and in turn with another one."""
    whole = Rows(256, number)
    loader = sluice.torch.DataLoader(whole, batch_size=16, num_workers=2, shuffle=True)
    for whole.epoch in range(3):
        batches = [epochs.tolist() for _, epochs in loader]
        if batches != [[whole.epoch] * 16] * 16:
            raise RuntimeError("a batch is not what its data set says")
    for _, _ in zip(range(3), sluice.torch.DataLoader(whole, batch_size=8, num_workers=2)):
        pass
    pair = [sluice.torch.DataLoader(Rows(96, number + place), batch_size=8, num_workers=2) for place in range(2)]
    for first, second in zip(*pair, strict=True):
        if len(first[0]) != len(second[0]):
            raise RuntimeError("two loaders in turn have lost a batch")


def links_of(folder):
    for descriptor in folder.iterdir():
        with contextlib.suppress(OSError):  # The one by which the folder was read.
            yield os.readlink(descriptor)


def held(pids):
    """What these processes hold together."""
    counts = dict.fromkeys(BOUNDS, 0)
    for pid in pids:
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            place = pathlib.Path(f"/proc/{pid}")
            counts["memory_mebibytes"] += own_bytes(place) / (1 << 20)
            links = list(links_of(place / "fd"))
            counts["descriptors"] += len(links)
            counts["memfds"] += sum(link.startswith("/memfd:") for link in links)
            counts["threads"] += len(list((place / "task").iterdir()))
            counts["processes"] += 1
    return counts


def one_round(number, build, worker_address):
    """A worker joins, and leaves: drained in even rounds, killed in odd ones."""
    ends = time.monotonic() + ROUND_SECONDS
    with worker_at(build, worker_address) as worker:
        passes = 0
        while time.monotonic() < ends or passes == 0:
            use_loaders(1000 * number + passes)
            passes += 1
        if number % 2:
            worker.kill()
    gc.collect()
    return passes


def medians(counts):
    return {name: {what: statistics.median(each[name][what] for each in counts) for what in BOUNDS} for name in counts[0]}


def soak(build, minutes):
    """What was held after each ROUNDS_BETWEEN rounds, by owner."""
    counts, rounds, ends = [], 0, time.monotonic() + 60 * minutes
    worker_address = free_address()
    with feeder_for_workers(build, worker_address) as feeder:
        while time.monotonic() < ends or len(counts) < FEWEST_COUNTS:
            passes = sum(one_round(number, build, worker_address) for number in range(rounds, rounds + ROUNDS_BETWEEN))
            rounds += ROUNDS_BETWEEN
            time.sleep(RESTING_SECONDS)
            below = [pid for pid in process_tree(feeder.pid) if pid != feeder.pid]
            counts.append({"trainer": held([os.getpid()]), "feeder": held([feeder.pid]), "executors": held(below)})
            print(f"round {rounds}: {passes} passes; {json.dumps(counts[-1])}", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--output", default="")
    options = parser.parse_args()
    os.environ["SLUICE_STEP_ASIDE"] = "off"  # Otherwise this process might make these short loops' batches.
    counts = soak(options.build, options.minutes)
    third = len(counts) // 3
    before, after = medians(counts[third : 2 * third]), medians(counts[2 * third :])
    rows, grown = [], False
    print(f"{len(counts)} counts: medians of the second third and of the last")
    for owner, figures in after.items():
        for what, value in figures.items():
            growth = value - before[owner][what]
            grown = grown or growth > BOUNDS[what]
            rows.append({"owner": owner, "what": what, "before": round(before[owner][what], 1), "after": round(value, 1), "bound": BOUNDS[what]})
            print(f"{owner:10} {what:18} {before[owner][what]:9.1f} {value:9.1f}  {'GROWN' if growth > BOUNDS[what] else 'flat'}")
    if options.output:
        result = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "minutes": options.minutes, "counts": len(counts), "rows": rows}
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
