#!/usr/bin/env python3
"""What short and cheap passes over an iterable data set cost beside torch's loader: wall and CPU seconds of a whole pass.

usage: PYTHONPATH=python SLUICE_FEEDER_BINARY=BUILD/worker-image/sluice-feeder $SLUICE_CACHE/venv/bin/python bench/data_plane/short_passes_bench.py [--repetitions R]

The two loaders take turns in one process. Each ratio is the median over the turns, ours by torch's. CPU seconds are those of this process and of its
forks. A line with a star had executors of the feeder, whose seconds are not counted.
"""

import functools
import resource
import statistics
import time

import torch
from loader_costs import repetitions_beside_torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

import sluice.torch
from sluice.feeder.choice import disconnect_all


class Cheap(IterableDataset):
    """Samples that cost nothing: a small tensor each, or with `fields` what a shard of pictures holds."""

    def __init__(self, count: int, fields: bool = False) -> None:
        self._count = count
        self._fields = fields

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        for number in range(first, self._count, step):
            yield {"image": torch.full((3, 16, 16), number % 256, dtype=torch.uint8), "label": number} if self._fields else torch.tensor(number)


CASES = {
    **{f"{count} numbers, {workers} workers": (functools.partial(Cheap, count), {"batch_size": 4, "num_workers": workers})
       for count in (10, 100, 1000) for workers in (0, 1, 2, 4)},
    "1000 numbers, 2 persistent workers": (functools.partial(Cheap, 1000), {"batch_size": 4, "num_workers": 2, "persistent_workers": True}),
    "2000 small pictures, 2 workers": (functools.partial(Cheap, 2000, True), {"batch_size": 16, "num_workers": 2}),
    "500 large batches of pictures, 2 workers": (functools.partial(Cheap, 500 * 64, True), {"batch_size": 64, "num_workers": 2}),
}


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pass_seconds(loader: DataLoader) -> tuple[float, float]:
    """Wall and CPU."""
    began, used = time.perf_counter(), cpu_seconds()
    for _ in loader:
        pass
    return time.perf_counter() - began, cpu_seconds() - used


def main() -> None:
    repetitions = repetitions_beside_torch(__doc__, 9)
    print(f"{'':42}{'wall: torch':>13}{'ours':>9}{'ratio':>7}{'CPU: torch':>13}{'ours':>9}{'ratio':>7}")
    for name, (make, arguments) in CASES.items():
        loaders = {kind: kind(make(), **arguments) for kind in (DataLoader, sluice.torch.DataLoader)}
        seen = {kind: [] for kind in loaders}
        for turn in range(repetitions + 1):
            for kind in list(loaders)[:: 1 if turn % 2 else -1]:
                seconds = pass_seconds(loaders[kind])
                seen[kind] += [seconds] if turn > 0 else []  # The first pass imports.
        line = f"{name:42}"
        for kind in range(2):
            stock, ours = ([seconds[kind] for seconds in of] for of in seen.values())
            ratio = statistics.median(our / its for its, our in zip(stock, ours, strict=True))
            line += f"{1000 * statistics.median(stock):10.1f} ms{1000 * statistics.median(ours):9.1f}{ratio:7.2f}"
        payback = loaders[sluice.torch.DataLoader]._sluice_payback
        print(line + (" *" if payback is not None and payback.pays else ""), flush=True)
    disconnect_all()


if __name__ == "__main__":
    main()
