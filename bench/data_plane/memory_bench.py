#!/usr/bin/env python3
"""What torchvision's data sets in memory cost beside torch's loader: CPU-seconds of the whole process tree for 1,000 samples, and wall seconds of an epoch.

usage: PYTHONPATH=python SLUICE_FEEDER_BINARY=BUILD/worker-image/sluice-feeder $SLUICE_CACHE/venv/bin/python bench/data_plane/memory_bench.py [--repetitions R]

The loaders take turns in one process. A long row is of epochs behind the first one, with workers that persist. A short one is of one epoch of a new loader, which starts
a feeder or workers. Each ratio is torch's by ours within a turn; medians of the turns, with the range of the ratios.
"""

import os
import statistics
import time

import numpy
import torch
from loader_costs import epoch_seconds, repetitions_beside_torch
from process_trees import adopt_orphans
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

import sluice.torch
from sluice.feeder.choice import disconnect_all
from sluice.lowering.pixel_table import PixelTable

TRAINING = transforms.Compose([transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
                               transforms.Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))])  # fmt: skip
DIGITS = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])


def in_memory(kind, transform, data, targets):
    """As the class has it when it has read its files."""
    dataset = kind.__new__(kind)
    vars(dataset).update(root="", transform=transform, target_transform=None, transforms=None, data=data, targets=targets)
    return dataset


def cifar(samples=50_000):
    noise = numpy.random.default_rng(0)
    data = noise.integers(0, 256, (samples, 3, 32, 32), dtype=numpy.uint8).transpose(0, 2, 3, 1)
    return in_memory(datasets.CIFAR10, TRAINING, data, noise.integers(0, 10, samples).tolist())


def mnist(samples=60_000):
    return in_memory(datasets.MNIST, DIGITS, torch.randint(0, 256, (samples, 28, 28), dtype=torch.uint8), torch.randint(0, 10, (samples,)))


def long_epochs(kind, dataset, workers):
    loader = kind(dataset, batch_size=128, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    epoch_seconds(loader)
    return epoch_seconds(loader)


def first_epoch(kind, dataset, workers):
    disconnect_all()
    return epoch_seconds(kind(dataset, batch_size=64, shuffle=True, num_workers=workers))


def comparison_seconds(dataset, selection=None):
    """CPU of what each epoch begins with, in the training process."""
    table = PixelTable(dataset, selection)
    table.was_sent(memoryview(b"".join(table.parts)))
    used = []
    for _ in range(9):
        began = time.process_time()
        assert table.is_of(dataset, selection)
        used.append(time.process_time() - began)
    return statistics.median(used)


CASES = {
    "CIFAR10: crop, flip, float32, normalise; torch with 2 workers": (cifar, 2, long_epochs),
    "MNIST: float32, normalise; torch with 2 workers": (mnist, 2, long_epochs),
    "MNIST: float32, normalise; torch without workers": (mnist, 0, long_epochs),
    "first epoch of CIFAR10; torch with 2 workers": (cifar, 2, first_epoch),
    "first epoch of 2,000 of MNIST; torch with 2 workers": (lambda: Subset(mnist(), range(2000)), 2, first_epoch),
    "first epoch of 2,000 of MNIST; torch without workers": (lambda: Subset(mnist(), range(2000)), 0, first_epoch),
}


def main() -> None:
    repetitions = repetitions_beside_torch(__doc__, 5)
    adopt_orphans()  # The feeder's time counts.
    print(f"load {os.getloadavg()[0]:.1f}\n{'':64}{'CPU-s per 1,000: torch':>24}{'ours':>8}{'ratio':>7}{'range':>15}{'wall, s: torch':>16}{'ours':>8}{'ratio':>7}")
    for name, (make, workers, measure) in CASES.items():
        dataset = make()
        turns = [(measure(DataLoader, dataset, workers), measure(sluice.torch.DataLoader, dataset, 2)) for _ in range(repetitions)]
        cpu = [(theirs[1] * 1000 / len(dataset), ours[1] * 1000 / len(dataset)) for theirs, ours in turns]
        wall = [(theirs[0], ours[0]) for theirs, ours in turns]
        ratios = sorted(theirs / max(ours, 1e-9) for theirs, ours in cpu)
        middle = [statistics.median(column) for rows in (cpu, wall) for column in zip(*rows, strict=True)]
        wall_ratio = statistics.median(theirs / ours for theirs, ours in wall)
        print(f"{name:64}{middle[0]:24.4f}{middle[1]:8.4f}{statistics.median(ratios):7.2f}{f'{ratios[0]:.2f}-{ratios[-1]:.2f}':>15}"
              f"{middle[2]:16.2f}{middle[3]:8.2f}{wall_ratio:7.2f}", flush=True)  # fmt: skip
        disconnect_all()
    shuffled = torch.randperm(50_000)[:45_000].tolist()
    print(f"CIFAR10 is compared with its table within {1e3 * comparison_seconds(cifar()):.0f} ms of CPU, 45,000 of its images, shuffled, within {1e3 * comparison_seconds(cifar(), shuffled):.0f} ms")
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
