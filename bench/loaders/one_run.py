#!/usr/bin/env python3
"""One peer on one workload, in a process of its own: what it costs in the middle of a loop over batches. loaders_bench.py starts this.

usage: one_run.py PEER WORKLOAD FOLDER PARAGRAPHS SCRATCH OUTPUT     writes the figures into OUTPUT, as JSON
       one_run.py PEER WORKLOAD FOLDER PARAGRAPHS SCRATCH            makes the files that the peer reads instead of the photographs
"""

import importlib.metadata
import json
import os
import pathlib
import sys
import time
import zlib

from peers import registry
from process_trees import adopt_orphans, end_descendants, tree_cpu_seconds, tree_pss_mib
from workloads import IMAGE_SIDE, TOKENS, WORKLOADS, Work


def first_field(batch):
    return batch[0] if isinstance(batch, (tuple, list)) else batch


def described(field):
    """Element type and layout of a batch: what a loader delivers is seen, not believed."""
    shape = tuple(int(side) for side in field.shape)
    layouts = {(3, IMAGE_SIDE, IMAGE_SIDE): "CHW", (IMAGE_SIDE, IMAGE_SIDE, 3): "HWC", (TOKENS,): "tokens"}
    if shape[1:] not in layouts:
        raise RuntimeError(f"a batch of shape {shape}")
    kind = str(getattr(field.dtype, "name", field.dtype)).removeprefix("torch.")
    return f"{kind} {layouts[shape[1:]]}", shape[0]


def checksum(field):
    import numpy

    array = field.numpy() if hasattr(field, "numpy") else numpy.asarray(field)
    return zlib.crc32(numpy.ascontiguousarray(array))


def measured(make_batches, workload, batch_size):
    """Figures of a loop over batches that keeps none of them and computes nothing. The time to the first one has the imports in it."""
    began = asked = time.monotonic()
    figures, marks = {}, []
    for number, batch in enumerate(make_batches(), 1):
        waited_seconds = time.monotonic() - asked
        field = first_field(batch)
        output, samples = described(field)
        if samples != batch_size:
            raise RuntimeError(f"batch {number} has {samples} samples instead of {batch_size}")
        if number == 1:
            figures = {"first_batch_seconds": time.monotonic() - began, "output": output, "checksum": checksum(field)}
        del batch, field
        due = number >= (marks[0][0] + workload.measured_batches if marks else workload.warm_batches)
        # What lay ready was made before: a loader that begins with full queues would look cheap.
        if due and waited_seconds >= workload.waiting_seconds:
            marks.append((number, tree_cpu_seconds(), time.monotonic()))
            if len(marks) == 2:
                break
        asked = time.monotonic()
    if len(marks) < 2:
        raise RuntimeError(f"{number} batches were too few: the loader had ended, or had made the rest ahead")
    batches, cpu_seconds, wall_seconds = (after - before for before, after in zip(*marks, strict=True))
    samples = batches * batch_size
    return figures | {
        "cpu_seconds_per_1000": cpu_seconds * 1000 / samples,
        "samples_per_second": samples / wall_seconds,
        "pss_mib": tree_pss_mib(),
    }


def version_of(peer):
    try:
        return importlib.metadata.version(peer.packages[0].partition("==")[0].partition("[")[0])
    except importlib.metadata.PackageNotFoundError:
        return "this checkout"


def main():
    name, workload_name, folder, paragraphs, scratch, *output = sys.argv[1:]
    peer, workload = registry()[name], WORKLOADS[workload_name]
    work = Work(workload, *map(pathlib.Path, (folder, paragraphs, scratch)))
    if not output:
        peer.prepare(work)
        return
    adopt_orphans()
    figures = measured(lambda: peer.batches[workload_name](work), workload, work.batch_size)
    pathlib.Path(output[0]).write_text(json.dumps(figures | {"version": version_of(peer)}))
    end_descendants()  # Loaders end their processes in seconds, if at all.
    os._exit(0)


if __name__ == "__main__":
    main()
