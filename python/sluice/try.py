"""`python -m sluice.try FOLDER`: PyTorch's DataLoader beside Sluice's on a folder of JPEGs (one sub-folder per class).

Ten seconds: a few seconds of each loader over the usual training transforms, with images per second and the CPU time that 1,000 images cost. Then a
comparison of the native executor's batches with the Python executor's, byte for byte.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils.data

from sluice.base.settings import Settings
from sluice.feeder.choice import NoFeeder, shared_connection
from sluice.torch import DataLoader

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_COMPARED_BATCHES = 2
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Measurement:
    """Over the time after the first batch; CPU time is that of this process and all its descendants."""

    images: int
    seconds: float
    cpu_seconds: float

    @property
    def images_per_second(self) -> float:
        return self.images / self.seconds

    @property
    def cpu_seconds_per_1000_images(self) -> float:
        return 1000 * self.cpu_seconds / self.images


def training_set(folder: str, pixels: int = 224) -> Any:
    """ImageFolder with the transforms of ImageNet training."""
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    return ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(pixels),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]))


def measure(loader: torch.utils.data.DataLoader, seconds: float) -> Measurement:
    """Iterates for so many seconds, epoch after epoch."""
    batches = _endless(loader)
    next(batches)
    images, began_seconds, cpu_began_seconds = 0, time.monotonic(), tree_cpu_seconds()
    while (passed_seconds := time.monotonic() - began_seconds) < seconds or not images:
        images += len(next(batches)[0])
    return Measurement(images, passed_seconds, tree_cpu_seconds() - cpu_began_seconds)


def tree_cpu_seconds() -> float:
    """CPU time of this process and its descendants, those that have ended included."""
    parents, ticks = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue  # It ended while we looked.
            parents[int(entry.name)] = int(fields[1])
            ticks[int(entry.name)] = sum(int(field) for field in fields[11:15])
    return sum(ticks[pid] for pid in ticks if _descends(pid, parents, os.getpid())) / _TICKS_PER_SECOND


def same_batches(dataset: Any, batch_size: int) -> bool:
    """Whether native and Python executor make the same bytes of the first batches, for the same seed."""
    made = []
    os.environ["SLUICE_STEP_ASIDE"] = "off"  # Else this process would make so few batches itself.
    for lowering in ("on", "off"):
        os.environ["SLUICE_LOWERING"] = lowering
        torch.manual_seed(1)
        batches = iter(DataLoader(dataset, batch_size, shuffle=True, num_workers=1))
        made.append([next(batches) for _ in range(min(_COMPARED_BATCHES, len(batches)))])
    del os.environ["SLUICE_LOWERING"], os.environ["SLUICE_STEP_ASIDE"]
    return all(torch.equal(a, b) for pair in zip(*made, strict=True) for a, b in zip(*pair, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m sluice.try", description=__doc__.split("\n")[0])
    parser.add_argument("folder", help="a folder with one sub-folder of JPEGs per class")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each loader is measured")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="num_workers of both")
    parser.add_argument("--batch-size", type=int, default=64)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # So the feeder is a descendant, and its time counts.

    dataset = training_set(arguments.folder)
    common = dict(batch_size=arguments.batch_size, shuffle=True, num_workers=arguments.workers)
    ours: DataLoader[Any] = DataLoader(dataset, **common)
    try:
        shared_connection(Settings.from_environment())
    except NoFeeder as reason:
        raise SystemExit(f"Sluice would leave the work to torch: {reason}") from None
    print(ours.explain())
    print(f"\n{'':28}{'images/s':>10}{'CPU-s per 1,000 images':>25}")
    results = []
    for title, loader in (("torch.utils.data.DataLoader", torch.utils.data.DataLoader(dataset, **common)), ("sluice.torch.DataLoader", ours)):
        results.append(measure(loader, arguments.seconds))
        print(f"{title:28}{results[-1].images_per_second:10.0f}{results[-1].cpu_seconds_per_1000_images:25.2f}", flush=True)
    torchs, sluices = results
    print(f"{'':28}{sluices.images_per_second / torchs.images_per_second:9.1f}x"
          f"{torchs.cpu_seconds_per_1000_images / sluices.cpu_seconds_per_1000_images:23.1f}x less")
    same = same_batches(dataset, arguments.batch_size)
    print(f"\nnative and Python executor, {_COMPARED_BATCHES} batches from the same seed: {'identical' if same else 'DIFFERENT'}")
    if not same:
        raise SystemExit(1)


def _endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def _descends(pid: int, parents: dict[int, int], ancestor: int) -> bool:
    while pid in parents:
        if pid == ancestor:
            return True
        pid = parents[pid]
    return False


if __name__ == "__main__":
    main()
