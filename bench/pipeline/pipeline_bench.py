#!/usr/bin/env python3
"""CPU-seconds per 1,000 images: the native pipeline on one thread beside torch's DataLoader with PIL and torchvision.

usage: bench/pipeline/pipeline_bench.py BUILD FOLDER [--images N] [--repetitions R] [--output FILE]

The work is the usual training recipe: decode, RandomResizedCrop(224), horizontal flip, float32, normalise. Both sides
run over the same files in the same run, in turns, so that other load on the machine falls on both; each figure is the
smallest of its repetitions. torch's figure is the CPU time of the whole process tree between two batches in the middle
of an epoch: start and end of the workers are not counted.
Prints a table and writes it as JSON. Goals: bench/pipeline/goals.json.
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

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64
WORKERS = 2


class Photographs(torch.utils.data.Dataset):
    def __init__(self, files):
        self.files = files
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            ]
        )

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with Image.open(self.files[index]) as image:
            return self.transform(image.convert("RGB")), 0


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


def torch_seconds_per_1000(files):
    loader = torch.utils.data.DataLoader(
        Photographs(files), batch_size=BATCH, num_workers=WORKERS, persistent_workers=True
    )
    for _ in loader:  # an epoch to start the workers and warm their caches
        pass
    before = tree_cpu_seconds()
    for _ in loader:
        pass
    used = tree_cpu_seconds() - before
    return used * 1000 / len(files)


def native_seconds_per_1000(build, files):
    program = pathlib.Path(build, "bench/pipeline/sluice-pipeline-bench")
    lines = "".join(name + "\n" for name in files)
    output = subprocess.run([program, "1"], input=lines, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return json.loads(output.stdout)


def measure(options, files):
    repetitions = []
    for number in range(options.repetitions):
        native = native_seconds_per_1000(options.build, files)
        native["torch"] = torch_seconds_per_1000(files)
        repetitions.append(native)
        print(f"repetition {number}: native {native['floats']:.3f}, torch {native['torch']:.3f}", file=sys.stderr)
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
    parser.add_argument("--output", default=str(HERE.parent / "results/pipeline.json"))
    options = parser.parse_args()
    files = sorted(str(path) for path in pathlib.Path(options.folder).rglob("*.jpg"))
    step = max(1, len(files) // options.images)
    repetitions = measure(options, files[::step][: options.images])
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
