"""Datasets and functions that tests pickle by reference."""

from __future__ import annotations

import inspect
import os
import random
import threading
from collections import namedtuple

import numpy
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

TORCH_HAS_IN_ORDER = "in_order" in inspect.signature(DataLoader).parameters  # since 2.6
Point = namedtuple("Point", ["x", "y"])


class Numbers(Dataset):
    """Sample i is (i, three random draws)."""

    def __init__(self, count: int = 37) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        if index >= self.count:
            raise IndexError(index)
        draws = torch.tensor([torch.rand(()).item(), random.random(), numpy.random.rand()], dtype=torch.float64)
        return torch.tensor(index), draws


class Mixed(Numbers):
    """All kinds of things that default_collate knows."""

    def __getitem__(self, index: int):
        return {
            "name": f"sample {index}",
            "point": Point(torch.full((2,), float(index)), index),
            "array": numpy.full((3,), index, dtype=numpy.float32),
            "flag": index % 2 == 0,
            "nested": [torch.arange(index, index + 2, dtype=torch.int32), {"deep": torch.tensor(index, dtype=torch.bfloat16)}],
        }


class Failing(Numbers):
    """Sample 5 raises."""

    def __init__(self, error: Exception, count: int = 37) -> None:
        super().__init__(count)
        self.error = error

    def __getitem__(self, index: int):
        if index == 5:
            raise self.error
        return super().__getitem__(index)


class OddError(Exception):
    """Cannot be made from a message alone."""

    def __init__(self, first, second) -> None:
        super().__init__(first, second)


class SilentError(Exception):
    """Cannot say what it is: a __str__ of the user's that fails."""

    def __str__(self) -> str:
        return self.path


class OwnError(ValueError):
    pass


class WorkerFacts(Numbers):
    """Sample i tells what get_worker_info says."""

    tag = -1

    def __getitem__(self, index: int):
        info = get_worker_info()
        return torch.tensor([info.id, info.num_workers, info.seed % 2**31, info.dataset.tag])


class OwnGenerator(Numbers):
    """Sample i is a draw of a generator that worker_init_fn puts into the dataset."""

    rng = None

    def __getitem__(self, index: int):
        return torch.tensor([index, int(self.rng.integers(1 << 40))])


def give_generator(worker_id: int) -> None:
    get_worker_info().dataset.rng = numpy.random.default_rng(get_worker_info().seed)


def tag_dataset(worker_id: int) -> None:
    get_worker_info().dataset.tag = 100 + worker_id


def fail_at_start(worker_id: int) -> None:
    raise OwnError("no start today")


class Batched(Numbers):
    """Fetches whole batches."""

    def __getitems__(self, indices):
        return [(torch.tensor(index), torch.rand(2)) for index in indices]


class Keyed(Dataset):
    """Keys are strings."""

    def __getitem__(self, key: str):
        return key, torch.rand(1)


class Counting(IterableDataset):
    def __iter__(self):
        return iter(range(10))


class Unpicklable(Numbers):
    def __init__(self) -> None:
        super().__init__()
        self.of_threads = __import__("threading").local()


class Bytes(Numbers):
    """Sample i is a vector of `length` bytes of value i mod 251."""

    def __init__(self, count: int, length: int) -> None:
        super().__init__(count)
        self.length = length

    def __getitem__(self, index: int):
        return torch.full((self.length,), index % 251, dtype=torch.uint8)


class Reads(Numbers):
    """Returns how many samples its worker has read before."""

    read = 0

    def __getitem__(self, index):
        self.read += 1
        return index, self.read


def own_state(worker):
    get_worker_info().dataset.read = 100 * worker


def only_at_home(pid: int):
    if os.getpid() != pid:
        raise OwnError("not in this process")
    return Numbers()


class Homebound(Numbers):
    """Can be unpickled in the process that pickled it, and nowhere else."""

    def __reduce__(self):
        return only_at_home, (os.getpid(),)


def first_only(samples):
    return samples[0]


def as_points(samples):
    return Point(torch.stack([sample[0] for sample in samples]), len(samples))


class Leaving(Numbers):
    """Sample 5 ends the interpreter, or tries to."""

    def __init__(self, reason: BaseException) -> None:
        super().__init__()
        self.reason = reason

    def __getitem__(self, index: int):
        if index == 5:
            raise self.reason
        return super().__getitem__(index)


class Threaded(Numbers):
    """Starts a thread when it is unpickled, as some libraries do."""

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        threading.Thread(target=threading.Event().wait, daemon=True).start()


class Processes(Numbers):
    """Sample i is (its process, the process that it was forked from)."""

    def __getitem__(self, index: int):
        return torch.tensor([os.getpid(), os.getppid()])
