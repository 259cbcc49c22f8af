"""A data set of Python alone, and what its batches cost beside torch's loader."""

import statistics

import torch
from loader_costs import loader_seconds_per_1000
from remote_batches import remote_seconds_per_1000
from torch.utils.data import DataLoader, Dataset

import sluice.torch

BATCH = 16
WORKERS = 2
REPETITIONS = 3


class Computes(Dataset):
    """A sample takes a millisecond or two of a CPU, and 150 KB."""

    def __init__(self, samples=1600):
        self.samples = samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        total = sum(number * index for number in range(20_000))
        return torch.full((3, 112, 112), float(index)), total % 1000


def seconds_per_1000(loader_class):
    return loader_seconds_per_1000(loader_class, Computes(), WORKERS, BATCH)


def local_beside_torch():
    """CPU-seconds, ours by torch's: the median over turns; and torch's."""
    turns = [(seconds_per_1000(sluice.torch.DataLoader), seconds_per_1000(DataLoader)) for _ in range(REPETITIONS)]
    return statistics.median(ours / its for ours, its in turns), statistics.median(its for _, its in turns)


def remote_beside_torch(build):
    """The same of a data worker on this machine, both ends of gRPC counted."""
    turns = []
    for _ in range(REPETITIONS):
        ours = remote_seconds_per_1000(build, Computes(), BATCH, seconds_per_1000(sluice.torch.DataLoader))
        turns.append((ours, seconds_per_1000(DataLoader)))
    return statistics.median(ours / its for ours, its in turns), statistics.median(its for _, its in turns)
