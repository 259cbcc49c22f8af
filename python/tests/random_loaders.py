"""Loaders as users write them, put together at random: data sets, loaders, and loops over two of them."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import gc
import itertools
import random
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils.data import BatchSampler, ConcatDataset, Dataset, IterableDataset, RandomSampler, Subset, SubsetRandomSampler, WeightedRandomSampler
from torch.utils.data import get_worker_info

Point = collections.namedtuple("Point", "x y")
scale = 3  # Which the loop changes.

VALUES = {
    "vector": lambda i: torch.arange(5.0) * i,
    "number tensor": lambda i: torch.tensor(i * 0.5),
    "array": lambda i: numpy.full((2, 3), i, numpy.float32),
    "numpy number": lambda i: numpy.int32(i),
    "number": lambda i: i / 7,
    "text": lambda i: f"text {i}",
    "bfloat16": lambda i: torch.full((3,), float(i)).bfloat16(),
    "image": lambda i: torch.full((3, 16, 16), i % 256, dtype=torch.uint8),
    "256 KiB": lambda i: torch.full((64, 1024), float(i)),
    "transposed": lambda i: (torch.arange(12.0).view(3, 4) + i).t(),
    "nested": lambda i: {"x": torch.tensor([i]), "y": {"z": i, "names": [f"n{i}", "m"]}},
    "named tuple": lambda i: Point(torch.tensor(i), i),
    "empty": lambda i: torch.zeros(0, 2),
    "its worker": lambda i: get_worker_info().id,
}
UNCOLLATED = {  # Only for a collate_fn of the user's.
    "none": lambda i: None,
    "ragged": lambda i: torch.arange(i % 5 + 1),
    "sparse": lambda i: torch.eye(3).to_sparse() * i,
    "objects": lambda i: numpy.array([1, "a"], dtype=object),
}
DRAWN = {
    "torch": lambda i: torch.rand(3),
    "numpy": lambda i: numpy.random.randn(),
    "random": lambda i: random.gauss(0, 1),
    "torch at times": lambda i: torch.rand(1) if i % 5 == 0 else torch.zeros(1),
    "torch's seed": lambda i: torch.initial_seed() % 1000,
}


@functools.lru_cache(maxsize=20)
def remembered(index: int) -> torch.Tensor:
    return torch.full((2,), float(index))


HABITS = {
    "none": lambda data, i: 0,
    "a cache": lambda data, i: data.cache.setdefault(i, torch.tensor(2 * i)),
    "lru_cache": lambda data, i: remembered(i),
    "a global": lambda data, i: scale * i,
    "an attribute that may come": lambda data, i: getattr(data, "late", 0),
}


@dataclasses.dataclass
class Case:
    seed: int
    samples: int
    values: list[str]
    drawn: list[str]
    habit: str
    store: str
    kind: str
    collate: str
    sampling: str
    fails_at: int
    arguments: dict[str, Any]

    @property
    def is_random(self) -> bool:
        return bool(self.drawn)


def case_of(seed: int) -> Case:
    draw = random.Random(seed)
    collate = draw.choice(["torch's", "torch's", "as it is", "own"])
    values = draw.sample(sorted(VALUES), draw.randint(1, 3)) + (draw.sample(sorted(UNCOLLATED), draw.randint(0, 2)) if collate != "torch's" else [])
    arguments: dict[str, Any] = {"num_workers": draw.choice([1, 2, 2, 3]), "batch_size": draw.choice([1, 2, 4, 7, 16, *([None] if collate == "torch's" else [])])}
    if draw.random() < 0.3:
        arguments["prefetch_factor"] = draw.choice([1, 4])
    if draw.random() < 0.25:
        arguments["persistent_workers"] = True
    return Case(
        seed=seed, samples=draw.choice([1, 5, 17, 40, 100]), values=values, drawn=draw.sample(sorted(DRAWN), 1) if draw.random() < 0.3 else [],
        habit=draw.choice(sorted(HABITS)), store=draw.choice(["none", "lines", "many lines", "array", "file", "data base"]),
        kind=draw.choice(["plain", "plain", "batches", "subset", "both twice", "stream"]), collate=collate,
        sampling=draw.choice(["in order", "shuffled", "own generator", "weighted", "batches", "subset"]),
        fails_at=draw.randrange(40) if draw.random() < 0.1 else -1, arguments=arguments,
    )  # fmt: skip


class Data(Dataset):
    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder, self.cache, self.opened = case, folder, {}, None
        self.makers = [{**VALUES, **UNCOLLATED, **DRAWN}[name] for name in case.values + case.drawn]
        self.rows: Any = None
        if "lines" in case.store:
            self.rows = [f"line {number} {'word ' * 10}" for number in range(40_000 if case.store == "many lines" else case.samples)]
        elif case.store == "array":
            self.rows = numpy.arange(case.samples * 4.0).reshape(-1, 4)
        elif case.store == "file":
            numpy.arange(case.samples * 4).tofile(folder / "rows")
        elif case.store == "data base":
            with sqlite3.connect(folder / "rows.db") as rows:
                rows.execute("create table if not exists rows(number integer, value text)")
                rows.executemany("insert into rows values(?, ?)", [(number, f"value {number}") for number in range(case.samples)])

    def __len__(self) -> int:
        return self.case.samples

    def row(self, index: int) -> Any:
        if self.case.store == "file":
            self.opened = self.opened or open(self.folder / "rows", "rb")
            self.opened.seek(32 * index)
            return torch.frombuffer(bytearray(self.opened.read(32)), dtype=torch.int64)
        if self.case.store == "data base":
            self.opened = self.opened or sqlite3.connect(self.folder / "rows.db")
            return self.opened.execute("select value from rows where number = ?", (index,)).fetchone()[0]
        return index if self.rows is None else self.rows[index]

    def __getitem__(self, index: int) -> Any:
        if index == self.case.fails_at:
            raise KeyError(f"no sample {index}")
        if index % 16 == 0:
            time.sleep(0.002)
        return [*(make(index) for make in self.makers), self.row(index), HABITS[self.case.habit](self, index)]


class Batches(Data):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [self[index] for index in indices]


class Stream(IterableDataset):
    """The samples of another one, shared among the workers."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def __iter__(self) -> Any:
        info = get_worker_info()
        yield from (self.data[index] for index in range(info.id, len(self.data), info.num_workers))


def as_it_is(samples: list) -> list:
    return samples


class Collate:
    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, samples: list) -> dict:
        return {self.name: samples, "count": len(samples)}


class Loop:
    """Two loaders of one class and what a loop does with them. `got`: all that it has seen, as values that can be compared."""

    STEPS = ("begin", "next", "next", "next", "next other", "drop", "draw", "all", "both", "within", "change", "copy", "thread", "raise", "collect", "some")

    def __init__(self, loader_class: type, cases: tuple[Case, Case], folder: Path) -> None:
        global scale
        scale = 3
        remembered.cache_clear()
        torch.manual_seed(cases[0].seed)
        numpy.random.seed(1)
        random.seed(1)
        self.data = [_data_of(case, folder / f"{loader_class.__module__}-{number}") for number, case in enumerate(cases)]
        self.loaders = [_loader_of(loader_class, case, data) for case, data in zip(cases, self.data, strict=True)]
        self.iterators: list[Any] = [None, None]
        self.got: list[Any] = []

    def run(self, steps: list[str]) -> list[Any]:
        for step in [*steps, "draw"]:
            self._take(step)
        return self.got

    def _take(self, step: str) -> None:
        try:
            getattr(self, "_" + step.replace(" ", "_"))()
        except Exception as error:  # The end of an iterator, too.
            self.iterators = [None, None]
            self.got.append((type(error), str(error).splitlines()[-1:]))

    def _begin(self) -> None:
        self.iterators[0] = iter(self.loaders[0])

    def _next(self, number: int = 0) -> None:
        self.iterators[number] = self.iterators[number] or iter(self.loaders[number])
        self.got.append(value_of(next(self.iterators[number])))

    def _next_other(self) -> None:
        self._next(1)

    def _drop(self) -> None:
        self.iterators = [None, None]

    def _draw(self) -> None:
        self.got.append((torch.rand(2).tolist(), numpy.random.rand(), random.random()))

    def _all(self) -> None:
        self._drop()
        self.got.append([value_of(batch) for batch in self.loaders[0]])

    def _both(self) -> None:
        self._drop()
        self.got.append([value_of(batches) for batches in zip(*self.loaders, strict=False)])

    def _within(self) -> None:
        self._drop()
        for batch in itertools.islice(self.loaders[0], 2):
            self.got.append([value_of(batch), *map(value_of, self.loaders[1])])

    def _change(self) -> None:
        global scale
        scale += 1
        self.data[0].late = scale

    def _copy(self) -> None:
        self._drop()
        if not self.loaders[0].persistent_workers:
            self.got.append([value_of(batch) for batch in copy.copy(self.loaders[0])])

    def _thread(self) -> None:
        self._drop()
        thread = threading.Thread(target=self._take, args=("all",))
        thread.start()
        thread.join()

    def _raise(self) -> None:
        for batch in self.loaders[0]:
            self.got.append(value_of(batch))
            raise ValueError("of the loop")

    def _collect(self) -> None:
        gc.collect()

    def _some(self) -> None:
        self.got += [value_of(batch) for batch in itertools.islice(self.loaders[1], 2)]


def _data_of(case: Case, folder: Path) -> Data:
    folder.mkdir()
    return (Batches if case.kind == "batches" else Data)(case, folder)


def _loader_of(loader_class: type, case: Case, data: Data) -> Any:
    arguments = dict(case.arguments)
    if case.collate != "torch's":
        arguments["collate_fn"] = as_it_is if case.collate == "as it is" else Collate("samples")
    if case.kind == "stream":
        return loader_class(Stream(data), **arguments)
    dataset: Dataset = data
    if case.kind == "subset":
        dataset = Subset(data, list(range(len(data)))[::-1])
    elif case.kind == "both twice":
        dataset = ConcatDataset([data, data])
    count = len(dataset)  # type: ignore[arg-type]
    if case.sampling == "shuffled":
        arguments["shuffle"] = True
    elif case.sampling == "own generator":
        arguments |= {"shuffle": True, "generator": torch.Generator().manual_seed(3)}
    elif case.sampling == "weighted":
        arguments["sampler"] = WeightedRandomSampler([1.0 + number % 3 for number in range(count)], count)
    elif case.sampling == "subset":
        arguments["sampler"] = SubsetRandomSampler(range(0, count, 2))
    elif case.sampling == "batches":
        arguments["batch_sampler"] = BatchSampler(RandomSampler(dataset), arguments.pop("batch_size") or 3, False)  # type: ignore[arg-type]
    return loader_class(dataset, **arguments)


def value_of(batch: Any) -> Any:
    """Types, shapes, bytes and order, as tuples that can be compared."""
    if isinstance(batch, torch.Tensor):
        dense = batch.to_dense() if batch.is_sparse else batch
        return type(batch), batch.layout, batch.dtype, tuple(batch.shape), dense.reshape(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(batch, numpy.ndarray):
        return batch.dtype, batch.shape, batch.tolist()
    if isinstance(batch, dict):
        return type(batch), [(key, value_of(value)) for key, value in batch.items()]
    if isinstance(batch, (list, tuple)):
        return type(batch), [value_of(value) for value in batch]
    return type(batch), batch
