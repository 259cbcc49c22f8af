"""Data sets and functions that keep state in each worker, in the manner of libraries and of users' scripts."""

from __future__ import annotations

import random

import numpy
import torch
from torch.utils.data import Dataset, get_worker_info

from sample_datasets import Numbers


class Counts(Numbers):
    """Counts what it has read, and draws."""

    calls = 0

    def __getitem__(self, index: int):
        self.calls += 1
        return torch.tensor(self.calls), super().__getitem__(index)


class CountsBatches(Counts):
    """Fetches whole batches."""

    def __getitems__(self, indices):
        self.calls += 100
        return [self[index] for index in indices]


class Randomizable:
    """As MONAI's: the transform has a legacy generator, which worker_init_fn sets."""

    def __init__(self) -> None:
        self.R = numpy.random.RandomState(1)
        self.angle = 0.0

    def set_random_state(self, seed: int) -> None:
        self.R = numpy.random.RandomState(seed)

    def __call__(self, value: int) -> torch.Tensor:
        self.angle = self.R.uniform(-1, 1)
        return torch.tensor([value, self.angle], dtype=torch.float64)


class Transformed(Dataset):
    def __init__(self, transform) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 29

    def __getitem__(self, index: int):
        return self.transform(index), random.random()


def set_random_states(worker_id: int) -> None:
    info = get_worker_info()
    info.dataset.transform.set_random_state(seed=info.seed % 2**32)


class Compose:
    """As albumentations': generators of its own, which no one sets."""

    def __init__(self) -> None:
        self.random_generator = numpy.random.default_rng(137)
        self.py_random = random.Random(137)
        self.torch_generator = torch.Generator().manual_seed(137)

    def __call__(self, value: int) -> torch.Tensor:
        drawn = [self.random_generator.random(), self.py_random.random(), torch.rand((), generator=self.torch_generator).item()]
        return torch.tensor([value, *drawn], dtype=torch.float64)


def seed_as_lightning(worker_id: int, rank: int = 0) -> None:
    """As of seed_everything(workers=True)."""
    process_seed = torch.initial_seed()
    sequence = numpy.random.SeedSequence([process_seed - worker_id, worker_id, rank])
    numpy.random.seed(sequence.generate_state(4))
    torch_sequence, random_sequence = sequence.spawn(2)
    torch.manual_seed(torch_sequence.generate_state(1, dtype=numpy.uint64)[0])
    random.seed((random_sequence.generate_state(2, dtype=numpy.uint64).astype(object) * [1 << 64, 1]).sum())


def seed_from_info(worker_id: int) -> None:
    random.seed(get_worker_info().seed)


def draw_and_stack(samples):
    return torch.stack([sample[0] for sample in samples]), torch.rand(2), random.random(), numpy.random.rand()


class FailsOnce(Counts):
    """The third sample that a worker reads raises."""

    def __getitem__(self, index: int):
        sample = super().__getitem__(index)
        if self.calls == 3:
            raise ValueError("the third one")
        return sample
