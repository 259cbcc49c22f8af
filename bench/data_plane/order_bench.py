"""order_bench.py BUILD FOLDER [RESULTS]: CPU-seconds per 1,000 photographs of FOLDER, of pipelines in the program's order, the exact and the relaxed one, in Pecan's, and of torchvision.

BUILD is a build folder with sluice-order-bench. The pipelines are those of Pecan that are made of images, as far as their operations are native, and others with operations before
the crop. torchvision runs in this process, on the same files. A row for each, as in docs/designs/ordering.md, also as JSON in RESULTS. ROUNDS of the environment: 12.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import torchvision
from PIL import Image
from torchvision import transforms as t

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench/loaders"), str(ROOT / "src/pipeline/testing")]
import machine  # noqa: E402
from client_lowering import ops_of  # noqa: E402

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


Steps = Sequence[Callable[[Any], Any]]


def pecan_order(steps: Steps, images: Sequence[Image.Image]) -> Steps:
    """What makes these images smaller first, what enlarges them last: Pecan's AutoOrder (USENIX ATC'24, section 5.2). Ties keep the program's order."""

    def pixels() -> int:
        return sum(image.width * image.height for image in images)

    growth = []
    for step in steps:
        before = pixels()
        images = [step(image) for image in images]
        growth.append((pixels() > before) - (pixels() < before))
    return [steps[i] for i in sorted(range(len(steps)), key=growth.__getitem__)]


def torch_seconds_per_1000(steps: Steps, files: list[str]) -> float:
    torch.manual_seed(0)
    transform = t.Compose([*steps, t.PILToTensor()])
    started = time.process_time()
    for file in files:
        transform(Image.open(file).convert("RGB"))
    return (time.process_time() - started) * 1000 / len(files)


def native_seconds_per_1000(steps: Steps, bench: Path, listed: str) -> dict[str, Any]:
    ops = ops_of(t.Compose([*steps, t.PILToTensor()]), obstacles := [])
    assert not obstacles, obstacles
    made = subprocess.run([bench, listed, ROUNDS], input=f"pipeline {json.dumps(ops)}\n", capture_output=True, text=True, check=True)
    return json.loads(made.stdout)


def row_of(steps: Steps, bench: Path, files: list[str], listed: str) -> dict[str, Any]:
    """CPU-seconds per 1,000 samples. Pecan's order is the program's where it moves nothing."""
    moved = pecan_order(steps, [Image.open(file).convert("RGB") for file in files])
    orders = {"torchvision": steps} | ({"torchvision_pecan": moved} if moved != steps else {})
    torch_rounds = [{name: torch_seconds_per_1000(order, files) for name, order in orders.items()} for _ in range(3)]
    row = {name: min(each[name] for each in torch_rounds) for name in orders}
    row |= native_seconds_per_1000(steps, bench, listed)
    row["pecan"] = native_seconds_per_1000(moved, bench, listed)["program"] if moved != steps else row["program"]
    row.setdefault("torchvision_pecan", row["torchvision"])
    return row


def main(build: str, folder: str, results: str | None = None) -> None:
    torch.set_num_threads(1)
    files = sorted(str(path) for path in Path(folder).resolve().rglob("*.jp*g"))
    described = {"date": datetime.date.today().isoformat(), "machine": {**machine.described(), "load": round(os.getloadavg()[0], 1)},
                 "versions": {"torch": torch.__version__, "torchvision": torchvision.__version__}, "photographs": len(files), "rounds": int(ROUNDS)}  # fmt: skip
    rows = []
    with tempfile.NamedTemporaryFile("w") as listed:
        listed.write("\n".join(files) + "\n")
        listed.flush()
        columns = ["torchvision", "torchvision_pecan", "program", "pecan", "exact", "relaxed"]
        print(f"{'CPU-seconds per 1,000':43}" + "".join(f"{name:>18}" for name in columns) + "  same bytes")
        for name, steps in PIPELINES.items():
            row = row_of(steps, Path(build, "bench/data_plane/sluice-order-bench"), files, listed.name)
            print(f"{name:43}" + "".join(f"{row[column]:18.3f}" for column in columns) + f"  {row['exact_is_same']}", flush=True)
            rows.append({"pipeline": name, **{column: round(row[column], 4) for column in columns}, "exact_is_same": row["exact_is_same"]})
    if results:
        Path(results).write_text(json.dumps({**described, "unit": "CPU-seconds per 1,000 samples", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
