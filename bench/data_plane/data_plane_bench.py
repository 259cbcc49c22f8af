#!/usr/bin/env python3
"""CPU-seconds per 1,000 images: the native pipeline alone, and Sluice's DataLoader as a whole, beside torch's.

usage: bench/data_plane/data_plane_bench.py BUILD FOLDER [--images N] [--repetitions R] [--output FILE]

The pipeline runs on one thread and drops its samples; the loader is what a user has: client, feeder, shared
memory, batches in the training loop's hands. torch's loader runs PIL and torchvision in two worker processes.

The work is the usual training recipe: decode, RandomResizedCrop(224), horizontal flip, float32, normalise. An own
Dataset class says the same in a `__getitem__`, which runs in Python on both sides (lazily and eagerly on Sluice's,
which must give the same bytes). Executors start at once. Both sides
run over the same files in the same run, in turns, so that other load on the machine falls on both; each figure is the
smallest of its repetitions. A loader's figure is the CPU time of the whole process tree between two batches in the middle
of an epoch: start and end of the workers are not counted.
Prints a table and writes it as JSON. Each row is beside its peer in the same run: torch's loader, or libjpeg-turbo's decoding of the whole
files on one thread. The ratio says how often Sluice does the work while the peer does it once. Goals: bench/data_plane/goals.json.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import torch
import torchvision.transforms as transforms
from PIL import Image
from torchvision.datasets import ImageFolder

import sluice.torch

MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64
WORKERS = 2


def training_recipe():
    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return transforms.Compose([*steps, transforms.Normalize(MEAN, DEVIATION)])


class OwnDataset(torch.utils.data.Dataset):
    """What users write."""

    def __init__(self, paths):
        self.paths, self.transform = paths, training_recipe()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), index


def photographs(folder, most):
    """ImageFolder with the transforms of ImageNet training, thinned out evenly to `most` images; and their paths."""
    dataset = ImageFolder(folder, training_recipe())
    chosen = list(range(0, len(dataset), max(1, len(dataset) // most)))[:most]
    return torch.utils.data.Subset(dataset, chosen), [dataset.samples[index][0] for index in chosen]


def process_tree(pid):
    yield pid
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from process_tree(int(child))


def tree_cpu_seconds():
    """Of this process and its descendants, with those that have ended: the executors of the loader before may end in this one's epoch."""
    ticks = 0
    for pid in process_tree(os.getpid()):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def loader_seconds_per_1000(loader_class, dataset):
    loader = loader_class(dataset, batch_size=BATCH, num_workers=WORKERS, persistent_workers=True)
    for _ in loader:  # an epoch to start the workers and warm their caches
        pass
    before = tree_cpu_seconds()
    for _ in loader:
        pass
    used = tree_cpu_seconds() - before
    return used * 1000 / len(dataset)


def native_seconds_per_1000(build, files):
    program = pathlib.Path(build, "bench/data_plane/sluice-pipeline-bench")
    lines = "".join(name + "\n" for name in files)
    output = subprocess.run([program, "1"], input=lines, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return json.loads(output.stdout)


def with_lazy_images(switch, work):
    os.environ["SLUICE_LAZY_IMAGES"] = switch
    try:
        return work()
    finally:
        del os.environ["SLUICE_LAZY_IMAGES"]


def check_bytes(files):
    """Lazy images change no byte of an epoch. Raises AssertionError."""

    def batches():
        torch.manual_seed(0)
        return list(sluice.torch.DataLoader(OwnDataset(files[: 8 * BATCH]), batch_size=BATCH, num_workers=WORKERS))

    lazy, eager = (with_lazy_images(switch, batches) for switch in ("on", "off"))
    for (found, _), (expected, _) in zip(lazy, eager, strict=True):
        assert found.numpy().tobytes() == expected.numpy().tobytes(), "lazy images change bytes"


def measure(options, dataset, files):
    own = OwnDataset(files)
    check_bytes(files)
    repetitions = []
    for number in range(options.repetitions):
        figures = native_seconds_per_1000(options.build, files)
        figures["loader"] = loader_seconds_per_1000(sluice.torch.DataLoader, dataset)
        figures["torch"] = loader_seconds_per_1000(torch.utils.data.DataLoader, dataset)
        figures["own"] = with_lazy_images("on", lambda: loader_seconds_per_1000(sluice.torch.DataLoader, own))
        figures["own_eager"] = with_lazy_images("off", lambda: loader_seconds_per_1000(sluice.torch.DataLoader, own))
        figures["own_torch"] = loader_seconds_per_1000(torch.utils.data.DataLoader, own)
        repetitions.append(figures)
        print(f"repetition {number}: " + ", ".join(f"{name} {value:.3f}" for name, value in figures.items()), file=sys.stderr)
    return repetitions


def table(repetitions):
    goals = json.loads((HERE / "goals.json").read_text())
    smallest = {name: min(repetition[name] for repetition in repetitions) for name in repetitions[0]}
    rows = []
    for goal in goals:
        value, peer = smallest[goal["measure"]], smallest[goal["peer"]]
        # Within one repetition both sides met the same load; the median of the ratios is the fair one.
        ratios = sorted(repetition[goal["peer"]] / repetition[goal["measure"]] for repetition in repetitions)
        row = {"name": goal["name"], "value": round(value, 3), "peer": round(peer, 3), "ratio": round(ratios[len(ratios) // 2], 2)}
        row["goal"] = goal["least_ratio"]
        row["verdict"] = "ok" if row["ratio"] >= row["goal"] else "falls short"
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", default=str(HERE.parent / "results/data-plane.json"))
    options = parser.parse_args()
    os.environ["SLUICE_FEEDER_BINARY"] = str(pathlib.Path(options.build, "worker-image/sluice-feeder").resolve())
    os.environ["SLUICE_STEP_ASIDE"] = "off"
    repetitions = measure(options, *photographs(options.folder, options.images))
    rows = table(repetitions)

    print(f"{'CPU-seconds per 1,000 images':52} {'value':>7} {'peer':>7} {'ratio':>6} {'goal':>6}")
    for row in rows:
        print("{name:52} {value:7.3f} {peer:7.3f} {ratio:6.2f} {goal:6.2f}  {verdict}".format(**row))
    result = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "peer": f"torch {torch.__version__} DataLoader, {WORKERS} workers, PIL {Image.__version__}, torchvision v1",
        "load_average": os.getloadavg()[0],
        "rows": rows,
        "repetitions": repetitions,
    }
    output = pathlib.Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["verdict"] == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
