"""order_bench.py BUILD FOLDER: CPU-seconds per 1,000 photographs of FOLDER, of pipelines in the program's order, the exact and the relaxed one, and of torchvision.

BUILD is a build folder with sluice-order-bench. The pipelines are those of Pecan that are made of images, as far as their operations are native, and others with operations before
the crop. torchvision runs in this process, on the same files. A row for each, as in docs/designs/ordering.md. ROUNDS of the environment: 12.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image
from torchvision import transforms as t

from sluice.transforms import lower_transform

ROUNDS = os.environ.get("ROUNDS", "12")
FLIP, CROP = t.RandomHorizontalFlip(), t.RandomResizedCrop(224)
JITTER = t.ColorJitter(0.4, 0.4, 0.4, 0.1)
PIPELINES = {
    "pecan-resnet: crop, flip, rotation, resize": [t.RandomCrop(320, pad_if_needed=True), FLIP, t.RandomRotation(30), t.Resize((224, 224))],
    "pecan-simclr: crop, flip, jitter, grey": [CROP, FLIP, t.RandomApply([t.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8), t.RandomGrayscale(0.2)],
    "reference: crop, flip, TrivialAugment": [CROP, FLIP, t.TrivialAugmentWide()],
    "rotation, crop, flip": [t.RandomRotation(30), CROP, FLIP],
    "jitter, crop, flip": [JITTER, CROP, FLIP],
    "jitter without contrast, crop, flip": [t.ColorJitter(brightness=0.4, saturation=0.4, hue=0.1), CROP, FLIP],
    "TrivialAugment, crop, flip": [t.TrivialAugmentWide(), CROP, FLIP],
    "resize, jitter, random crop, flip": [t.Resize(256), JITTER, t.RandomCrop(224), FLIP],
    "resize, AutoAugment, random crop, flip": [t.Resize((256, 256)), t.AutoAugment(), t.RandomCrop(224), FLIP],
}


def torch_seconds_per_1000(transform: t.Compose, files: list[str]) -> float:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    started = time.process_time()
    for file in files:
        transform(Image.open(file).convert("RGB"))
    return (time.process_time() - started) * 1000 / len(files)


def main(build: str, folder: str) -> None:
    files = sorted(str(path) for path in Path(folder).resolve().rglob("*.jp*g"))
    with tempfile.NamedTemporaryFile("w") as listed:
        listed.write("\n".join(files) + "\n")
        listed.flush()
        print(f"{'CPU-seconds per 1,000':42}{'torch':>8}{'program':>9}{'exact':>8}{'relaxed':>9}{'program/exact':>15}  same bytes")
        for name, steps in PIPELINES.items():
            transform = t.Compose([*steps, t.PILToTensor()])
            lowered = lower_transform(transform, obstacles := [])
            assert not obstacles, obstacles
            made = subprocess.run([Path(build, "bench/data_plane/sluice-order-bench"), listed.name, ROUNDS], input=f"pipeline {json.dumps(lowered.ops)}\n",
                                  capture_output=True, text=True, check=True)  # fmt: skip
            row = json.loads(made.stdout)
            torch_seconds = torch_seconds_per_1000(transform, files)
            print(f"{name:42}{torch_seconds:8.2f}{row['program']:9.3f}{row['exact']:8.3f}{row['relaxed']:9.3f}{row['program'] / row['exact']:14.2f}x  {row['exact_is_same']}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
