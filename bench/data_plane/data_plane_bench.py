#!/usr/bin/env python3
"""CPU-seconds per 1,000 images: the native pipeline alone, and Sluice's DataLoader as a whole, beside torch's.

usage: bench/data_plane/data_plane_bench.py BUILD FOLDER [--images N] [--repetitions R] [--output FILE]

The pipeline runs on one thread and hands its samples to nobody; the loader is what a user has: client, feeder, shared
memory, batches in the training loop's hands. torch's loader runs PIL and torchvision in two worker processes.

The work is the usual training recipe: decode, RandomResizedCrop(224), horizontal flip, float32, normalise. Both sides
run over the same files in the same run, in turns, so that other load on the machine falls on both; each figure is the
smallest of its repetitions. A loader's figure is the CPU time of the whole process tree between two batches in the middle
of an epoch: start and end of the workers are not counted.
Prints a table and writes it as JSON. Goals: bench/data_plane/goals.json.
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

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64
WORKERS = 2


def photographs(folder, most):
    """ImageFolder with the transforms of ImageNet training, thinned out evenly to `most` images; and their paths."""
    dataset = ImageFolder(
        folder,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        ),
    )
    chosen = list(range(0, len(dataset), max(1, len(dataset) // most)))[:most]
    return torch.utils.data.Subset(dataset, chosen), [dataset.samples[index][0] for index in chosen]


def process_tree(pid):
    yield pid
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from process_tree(int(child))


def tree_cpu_seconds():
    """Nanosecond clocks of every thread of this process and its descendants."""
    total = 0
    for pid in process_tree(os.getpid()):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


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


def measure(options, dataset, files):
    repetitions = []
    for number in range(options.repetitions):
        figures = native_seconds_per_1000(options.build, files)
        figures["loader"] = loader_seconds_per_1000(sluice.torch.DataLoader, dataset)
        figures["torch"] = loader_seconds_per_1000(torch.utils.data.DataLoader, dataset)
        repetitions.append(figures)
        print(f"repetition {number}: " + ", ".join(f"{name} {value:.3f}" for name, value in figures.items()), file=sys.stderr)
    return repetitions


def table(repetitions):
    goals = json.loads((HERE / "goals.json").read_text())
    smallest = {name: min(repetition[name] for repetition in repetitions) for name in repetitions[0]}
    rows = []
    for goal in goals:
        value = smallest[goal["measure"]]
        row = {"name": goal["name"], "value": round(value, 3), "goal": goal["at_most"]}
        row["peer"] = round(smallest["torch"], 3)
        # Within one repetition both sides met the same load; the median of the ratios is the fair one.
        ratios = sorted(repetition["torch"] / repetition[goal["measure"]] for repetition in repetitions)
        row["ratio"] = round(ratios[len(ratios) // 2], 2)
        row["verdict"] = "ok" if value <= goal["at_most"] else "falls short"
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
    repetitions = measure(options, *photographs(options.folder, options.images))
    rows = table(repetitions)

    print(f"{'CPU-seconds per 1,000 images':44} {'value':>7} {'goal':>6} {'peer':>7} {'ratio':>6}")
    for row in rows:
        print("{name:44} {value:7.3f} {goal:6.2f} {peer:7.3f} {ratio:6.2f}  {verdict}".format(**row))
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
