#!/usr/bin/env python3
"""`make try`: the demo's vision job on this machine without Kubernetes, with PyTorch's DataLoader and with Sluice's.

The same script (train/train.py), the same photographs, two worker processes or threads. The accelerator is emulated.
Prints samples per second and CPU-seconds of both, the start of Python and PyTorch included.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def photographs(python):
    done = subprocess.run([python, ROOT / "e2e/datasets/photographs.py", "--count", "4000"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def train(python, data, loader, build):
    """Runs one epoch over 1,500 photographs; returns the trainer's result and the CPU-seconds of all its processes."""
    environment = {**os.environ, "DATALOADER": loader, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "python"),
                   "SLUICE_FEEDER_BINARY": str(build / "worker-image/sluice-feeder")}  # fmt: skip
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([python, HERE / "train/train.py", "vision", "--data", data, "--samples", "1500"],
                          env=environment, stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads(done.stdout.splitlines()[-1])
    result["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    result["total_seconds"] = time.monotonic() - began
    return result


def main():
    build, python = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    data = photographs(python)
    print(f"{'':34}{'samples/s':>10}{'busy':>7}{'CPU-s':>7}{'seconds':>9}")
    for loader, title in (("torch", "torch.utils.data.DataLoader"), ("sluice", "sluice.torch.DataLoader")):
        result = train(python, data, loader, build)
        print(f"  {title:32}{result['samples_per_second']:10.0f}{result['utilisation_percent']:6.0f}%{result['cpu_seconds']:7.1f}{result['total_seconds']:9.1f}", flush=True)
    print(f"  accelerator: {result['accelerator']}")


if __name__ == "__main__":
    main()
