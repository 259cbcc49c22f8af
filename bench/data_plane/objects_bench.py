#!/usr/bin/env python3
"""Tar shards in an S3-like store against the same shards on the local disk: samples per second, in turns, in one run.

usage: bench/data_plane/objects_bench.py FOLDER [--images N] [--repetitions R] [--latency-ms L] [--workers W ...]

FOLDER holds photographs in the layout of ImageFolder. The store runs in a process of its own on the loopback, waits before each answer, and answers
one request of twenty with a 503. Both sides run the usual training recipe in the Python executor (SLUICE_LOWERING=off), which is the one that
reads objects. All bytes of an epoch are compared. A worker that waits for the store uses no processor, so more workers than cores hide the latency.
The median of the ratios is printed for each number of workers, and each repetition with its CPU-seconds, of which the store has a part. Exits 1 below the goal.
"""

import argparse
import hashlib
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from process_trees import tree_cpu_seconds
from training_data import photographs, shards_of, training_recipe

import sluice.torch
from sluice.shards import TarShards

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python/tests"))
from object_server import Store  # noqa: E402

BATCH = 64
LEAST_RATIO = 0.95


def serve(folder, latency_seconds, address):
    store = Store({f"/bucket/{path.name}": path.read_bytes() for path in folder.glob("*.tar")}, latency_seconds, lambda number: "503" if number % 20 == 7 else None)
    with store.serving() as found:
        address.send(found)
        address.recv()
        address.send((store.faults["503"], len(store.requests), store.most_in_flight))


def epoch(loader):
    """Samples and CPU-seconds per second, and a digest of all bytes."""
    torch.manual_seed(3)
    digest, samples = hashlib.sha256(), 0
    cpu_before, before = tree_cpu_seconds(), time.monotonic()
    for images, labels in loader:
        digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
        samples += len(labels)
    return samples / (time.monotonic() - before), tree_cpu_seconds() - cpu_before, digest.hexdigest()


def compare(files, objects, workers, repetitions):
    loaders = [sluice.torch.DataLoader(dataset, batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=True) for dataset in (files, objects)]
    for loader in loaders:
        epoch(loader)
    ratios = []
    for number in range(repetitions):
        (local, local_cpu, expected), (remote, remote_cpu, found) = map(epoch, loaders)
        assert expected == found, "wrong bytes"
        ratios.append(remote / local)
        print(f"{workers} workers, repetition {number}: files {local:.0f}/s, {local_cpu:.2f} CPU-s; objects {remote:.0f}/s, {remote_cpu:.2f} CPU-s", file=sys.stderr)
    return statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    options = parser.parse_args()
    os.environ.update(SLUICE_STEP_ASIDE="off", SLUICE_LOWERING="off")
    _, names = photographs(options.folder, options.images, training_recipe())
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        os.environ["XDG_CACHE_HOME"] = directory
        files = shards_of(names, folder)
        here, there = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, options.latency_ms / 1000, there))
        server.start()
        address = here.recv()
        objects = TarShards([f"{address}/bucket/{pathlib.Path(path).name}" for path in files.shards], training_recipe())
        ratios = {workers: compare(files, objects, workers, options.repetitions) for workers in options.workers}
        here.send("end")
        throttled, requests, most = here.recv()
        server.join()
    print(f"{requests} requests, {throttled} of them answered 503, at most {most} in flight; 0 wrong bytes; load average {os.getloadavg()[0]:.1f}")
    for workers, ratio in ratios.items():
        print(f"{workers} workers: objects at {ratio:.2f} of the files' throughput")
    return 0 if max(ratios.values()) >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
