#!/usr/bin/env python3
"""Tar shards in an S3-like store against the same shards on the local disk: samples per second, in turns, in one run.

usage: bench/data_plane/objects_bench.py FOLDER [--images N] [--repetitions R] [--latency-ms L] [--workers W ...] [--executors E ...]

FOLDER holds photographs in the layout of ImageFolder. The store runs in a process of its own on the loopback, waits before each answer, and answers
one request of twenty with a 503. It has the last processor for itself, and everything else has the others, so that its work is not taken for the
loader's. Both sides run the usual training recipe, in native executors and in Python ones. All bytes of an epoch are compared before and after the
timed epochs. Three medians are printed for each number of workers: of throughput once latency is hidden, which is behind an epoch's first batch and
has the goal; of whole epochs; and of CPU-seconds. A last row says what native executors with a cache of source files ask the store for in their
second and third epoch. Exits 1 below the goal.
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
from paced_store import PacedStore
from process_trees import adopt_orphans, tree_cpu_seconds
from training_data import photographs, shards_of, training_recipe

import sluice.torch
from sluice.shards import TarShards

BATCH = 64
LEAST_RATIO = 0.95
ONE_OF = 20  # requests is answered 503


def serve(folder, latency_seconds, processor, connection):
    os.sched_setaffinity(0, [processor])
    PacedStore({f"/bucket/{path.name}": path.read_bytes() for path in folder.glob("*.tar")}, latency_seconds, ONE_OF).serve(connection)


def epoch(loader):
    """Samples per second behind the first batch and of the whole, and CPU-seconds."""
    torch.manual_seed(3)
    cpu_before, before = tree_cpu_seconds(), time.monotonic()
    batches = iter(loader)
    first = len(next(batches)[1])
    begun = time.monotonic()
    others = sum(len(labels) for _, labels in batches)
    end = time.monotonic()
    return others / (end - begun), (first + others) / (end - before), tree_cpu_seconds() - cpu_before


def digest(loader):
    """Of all bytes of an epoch."""
    torch.manual_seed(3)
    found = hashlib.sha256()
    for images, labels in loader:
        found.update(images.numpy().tobytes() + labels.numpy().tobytes())
    return found.hexdigest()


def loader_of(shards, workers):
    return sluice.torch.DataLoader(TarShards(shards, training_recipe()), batch_size=BATCH, shuffle=True, num_workers=workers, persistent_workers=True)


def compare(executor, files, objects, workers, repetitions, result):
    """In a process of its own, which has its own feeder: the feeder's time counts."""
    adopt_orphans()
    os.environ["SLUICE_LOWERING"] = "on" if executor == "native" else "off"
    loaders = [loader_of(shards, workers) for shards in (files, objects)]
    require_equal(loaders)
    ratios = []
    for number in range(repetitions):
        local, remote = map(epoch, loaders)
        ratios.append([ours / theirs for ours, theirs in zip(remote, local, strict=True)])
        told = [f"{name} {steady:.0f}/s behind the first batch, {whole:.0f}/s in all, {cpu:.2f} CPU-s" for name, (steady, whole, cpu) in (("files", local), ("objects", remote))]
        print(f"{executor}, {workers} workers, repetition {number}: {'; '.join(told)}", file=sys.stderr)
    require_equal(loaders)
    assert all(loader.explain().startswith(f"executor: {executor}") for loader in loaders)
    result.put([statistics.median(each) for each in zip(*ratios, strict=True)])


def require_equal(loaders):
    expected, found = map(digest, loaders)
    assert expected == found, "wrong bytes"


def fill_cache(files, objects, workers, folder, connection, result):
    """The store's requests of three epochs, the first of which fills the cache."""
    os.environ.update(SLUICE_LOWERING="on", SLUICE_CACHE_DIR=folder, SLUICE_CACHE_BYTES=str(1 << 34))
    local, cached, counts = loader_of(files, workers), loader_of(objects, workers), []
    for _ in range(3):
        before = requests_of(connection)
        require_equal([local, cached])
        counts.append(requests_of(connection) - before)
    result.put(counts)


def requests_of(connection):
    connection.send("how many")
    return connection.recv()[0]


def in_own_process(target, *arguments):
    context = multiprocessing.get_context("spawn")
    result = context.SimpleQueue()
    process = context.Process(target=target, args=(*arguments, result))
    process.start()
    process.join()
    assert process.exitcode == 0
    return result.get()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--executors", nargs="+", default=["native", "python"], choices=["native", "python"])
    options = parser.parse_args()
    os.environ.update(SLUICE_STEP_ASIDE="off", SLUICE_AHEAD="off")
    *others, last = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, others or [last])
    _, names = photographs(options.folder, options.images, training_recipe())
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        os.environ["XDG_CACHE_HOME"] = directory
        files = list(shards_of(names, folder).shards)
        here, there = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, options.latency_ms / 1000, last, there))
        server.start()
        address = here.recv()
        objects = [f"{address}/bucket/{pathlib.Path(path).name}" for path in files]
        rows = [(executor, workers) for executor in options.executors for workers in options.workers]
        ratios = {row: in_own_process(compare, row[0], files, objects, row[1], options.repetitions) for row in rows}
        cached = in_own_process(fill_cache, files, objects, options.workers[0], os.path.join(directory, "cache"), here)
        here.send("how many")
        requests, throttled, most = here.recv()
        here.send("end")
        server.join()
    print(f"{requests} requests, {throttled} of them answered 503, at most {most} in flight; 0 wrong bytes; load average {os.getloadavg()[0]:.1f}")
    for (executor, workers), (steady, whole, cpu) in ratios.items():
        print(f"{executor}, {workers} workers: objects at {steady:.2f} of the files' throughput behind the first batch, {whole:.2f} of whole epochs, for {cpu:.2f} of their CPU-seconds")
    print(f"with a cache: {cached[0]}, {cached[1]} and {cached[2]} requests in the first three epochs")
    return 0 if all(max(ratios[row][0] for row in rows if row[0] == executor) >= LEAST_RATIO for executor in options.executors) else 1


if __name__ == "__main__":
    sys.exit(main())
