"""Iterable data sets as users write them, for tests that compare with torch."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy
import torch
from torch.utils.data import IterableDataset, get_worker_info


def worker() -> tuple[int, int]:
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


class Uneven(IterableDataset):
    """A part of its own length for each worker, with draws from every generator. The third worker has none."""

    lengths = (7, 17, 0, 9)

    def __iter__(self) -> Iterator:
        number, _ = worker()
        for value in range(self.lengths[number]):
            yield {"value": torch.tensor([number * 1000 + value, torch.randint(1000, ()).item()]), "draws": (random.random(), numpy.random.rand())}


class Shards(IterableDataset):
    """Lines of named shards, divided among the workers and shuffled in a buffer, as text is read for language models."""

    def __init__(self, shards: int = 5, lines: int = 6) -> None:
        self.shards = [[f"shard {shard} line {line}" for line in range(lines + shard)] for shard in range(shards)]

    def __iter__(self) -> Iterator[str]:
        number, workers = worker()
        buffer: list[str] = []
        for shard in self.shards[number::workers]:
            for line in shard:
                buffer.append(line)
                if len(buffer) > 3:
                    yield buffer.pop(random.randrange(len(buffer)))
        yield from buffer


class Split(IterableDataset):
    """Its part is decided by worker_init_fn, as in torch's documentation."""

    def __init__(self) -> None:
        self.start, self.end = 0, 20

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.start, self.end))


class Closing(IterableDataset):
    """Endless, and writes a file when it is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __iter__(self) -> Iterator[int]:
        number, _ = worker()
        try:
            yield from itertools.count(number)
        finally:
            (self.folder / f"worker {number}").touch()


def split(worker_id: int) -> None:
    info = get_worker_info()
    dataset, share = info.dataset, -(-20 // info.num_workers)
    dataset.start, dataset.end = worker_id * share, min(20, (worker_id + 1) * share)


class Undivided(IterableDataset):
    """Every worker yields all of it: longer than it says."""

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[int]:
        return iter(range(6))


class Repeated:
    """An iterator of its own that goes on after an exception."""

    def __init__(self) -> None:
        self.count = 0

    def __next__(self) -> torch.Tensor:
        self.count += 1
        if self.count == 3:
            raise ValueError("the third is broken")
        if self.count > 8:
            raise StopIteration
        return torch.tensor([self.count, torch.randint(1000, ()).item()])


class GoesOn(IterableDataset):
    def __iter__(self) -> Repeated:
        return Repeated()


class Breaks(IterableDataset):
    """A generator: it ends with its exception. The first worker's only."""

    def __iter__(self) -> Iterator[int]:
        number, _ = worker()
        for value in range(8):
            if number == 0 and value == 4:
                raise ValueError("no more today")
            yield value


class NotReadable(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        raise OSError("the shards are gone")


class Endless(IterableDataset):
    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            yield torch.rand(2)


class Epochs(IterableDataset):
    """Another order in each epoch, told by set_epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        number, workers = worker()
        order = list(range(14))
        random.Random(self.epoch).shuffle(order)
        return iter(order[number::workers])


class WhoMakes(IterableDataset):
    """Values, draws, and the process that has read them."""

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        number, _ = worker()
        for value in range(24):
            time.sleep(0.01)  # As long everywhere: executors are chosen by their speed.
            yield number * 100 + value, torch.randint(1000, ()).item(), os.getpid()


def total(samples: list) -> int:
    return sum(samples) + random.randrange(100)
