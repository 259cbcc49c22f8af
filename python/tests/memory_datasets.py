"""torchvision's data sets that hold their images in memory, small ones without a download: made by the class itself of files in the real format, or, where
it compares checksums, by giving an object what the class would have read."""

from __future__ import annotations

import bz2
import struct
from pathlib import Path
from typing import Any

import numpy
from torchvision import datasets

COUNT = 23


def _noise(*shape: int) -> numpy.ndarray:
    return numpy.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=numpy.uint8)


def _with_attributes(kind: type, transform: Any, **attributes: Any) -> Any:
    dataset = kind.__new__(kind)
    vars(dataset).update(root=None, transform=transform, target_transform=None, transforms=None, **attributes)
    return dataset


def _cifar(name: str):
    def make(root: Path, transform: Any) -> Any:
        """As its batches are: planes, shown as pixels."""
        data = _noise(COUNT, 3 * 32 * 32).reshape(-1, 3, 32, 32).transpose((0, 2, 3, 1))
        return _with_attributes(getattr(datasets, name), transform, data=data, targets=[number % 10 for number in range(COUNT)])

    return make


def _mnist(name: str):
    def make(root: Path, transform: Any) -> Any:
        split = "emnist-mnist-train" if name == "EMNIST" else "train"
        folder = root / name / "raw"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{split}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, COUNT, 28, 28) + _noise(COUNT, 28, 28).tobytes())
        (folder / f"{split}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, COUNT) + bytes(number % 10 for number in range(COUNT)))
        if name != "EMNIST":  # The others look for all of their files.
            for file in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
                (folder / file).write_bytes(b"")
        return getattr(datasets, name)(root, **({"split": "mnist"} if name == "EMNIST" else {}), transform=transform)

    return make


def _svhn(root: Path, transform: Any) -> Any:
    """As scipy loads it: the first axis is the fastest, and the sample the slowest."""
    loaded = numpy.asfortranarray(_noise(32, 32, 3, COUNT))
    return _with_attributes(datasets.SVHN, transform, data=numpy.transpose(loaded, (3, 2, 0, 1)), labels=numpy.arange(COUNT, dtype=numpy.int64) % 10)


def _stl10(root: Path, transform: Any) -> Any:
    """Its files hold columns."""
    data = numpy.transpose(_noise(COUNT, 3 * 96 * 96).reshape(-1, 3, 96, 96), (0, 1, 3, 2))
    return _with_attributes(datasets.STL10, transform, data=data, labels=numpy.arange(COUNT, dtype=numpy.uint8) % 10)


def _usps(root: Path, transform: Any) -> Any:
    lines = [f"{number % 10 + 1} " + " ".join(f"{place + 1}:{pixel / 127.5 - 1:.4f}" for place, pixel in enumerate(row)) for number, row in enumerate(_noise(COUNT, 256))]
    (root / "usps.bz2").write_bytes(bz2.compress("".join(line + "\n" for line in lines).encode()))
    return datasets.USPS(str(root), transform=transform)


COLOURED = {"CIFAR10": _cifar("CIFAR10"), "CIFAR100": _cifar("CIFAR100"), "SVHN": _svhn, "STL10": _stl10}
GREY = {**{name: _mnist(name) for name in ("MNIST", "FashionMNIST", "KMNIST", "EMNIST")}, "USPS": _usps}
ALL = COLOURED | GREY
