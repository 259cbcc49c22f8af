#!/usr/bin/env python3
"""The scripts of python/examples, unmodified: plain, and under `sluice run`, from the start of the process to its end.

usage: bench/scripts.sh BUILD     which starts: scripts_bench.py BUILD PHOTOGRAPHS [--images N] [--rounds N] [--only NAMES] [--output FILE]

Both ways run in turns, with default settings and more data than the tests have. A ratio is the plain run's seconds by the other one's in the same
round, so above 1 Sluice is faster; the median of the rounds is printed. Wall time is what the user waits, imports included. CPU-seconds are those of all
processes. The status is 1 if a script takes longer than 1 / LEAST_RATIO of its plain time.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from process_trees import adopt_orphans, end_descendants
from script_data import ARGUMENTS, arguments_of, write_shards, write_text, write_words

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python/examples"
LEAST_RATIO = 0.97
RUN_SECONDS = 600
NOT_ALONE = "distributed"  # torchrun starts it


def write_images(folder, photographs, count):
    """The first of two classes, as links: some of the scripts tell two apart. Returns how many there are."""
    classes = sorted(path for path in photographs.iterdir() if path.is_dir())[:2]
    for kind in classes:
        (folder / kind.name).mkdir(parents=True)
        for file in sorted(kind.iterdir())[: -(-count // len(classes))]:
            (folder / kind.name / file.name).symlink_to(file)
    return sum(1 for _ in folder.glob("*/*"))


def run(name, data, feeder, with_sluice):
    """Wall and CPU seconds of one run."""
    program = [str(EXAMPLES / f"{name}.py"), *arguments_of(name, data)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "SLUICE_FEEDER_BINARY": str(feeder), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1",
                                "HF_HOME": str(data / "huggingface"), "CUDA_VISIBLE_DEVICES": ""}  # fmt: skip
    with tempfile.TemporaryDirectory() as here:
        used, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run([sys.executable, *(["-m", "sluice", "run"] if with_sluice else []), *program], cwd=here, env=environment, timeout=RUN_SECONDS,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)  # fmt: skip
        seconds = time.monotonic() - begun
        end_descendants()  # the feeder waits for the next loop
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def compare(name, data, feeder, rounds):
    runs = []
    for number in range(rounds):
        order = (False, True) if number % 2 == 0 else (True, False)
        runs.append(dict(zip(order, (run(name, data, feeder, with_sluice) for with_sluice in order), strict=True)))
    plain, ours = ([statistics.median(each[way][figure] for each in runs) for figure in (0, 1)] for way in (False, True))
    ratios = [statistics.median(each[False][figure] / each[True][figure] for each in runs) for figure in (0, 1)]
    return {"script": name, "rounds": rounds, "plain_seconds": plain[0], "sluice_seconds": ours[0], "faster": ratios[0], "plain_cpu_seconds": plain[1], "sluice_cpu_seconds": ours[1], "less_cpu": ratios[1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("photographs", type=pathlib.Path)
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(name for name in ARGUMENTS if name != NOT_ALONE))
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in ARGUMENTS]:
        parser.error(f"there is no script {', '.join(unknown)}; there are {', '.join(ARGUMENTS)}")
    adopt_orphans()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder)
        images = write_images(data / "images", options.photographs, options.images)
        write_shards(data / "shards", data / "images")
        write_words(data / "words", words=400, samples=8000)
        write_text(data / "text", lines=700)
        print("| script | plain, s | `sluice run`, s | faster | CPU-seconds plain | with Sluice | less CPU |\n| --- | --- | --- | --- | --- | --- | --- |")
        for name in names:
            rows.append(row := compare(name, data, (options.build / "worker-image/sluice-feeder").resolve(), options.rounds))
            print(f"| {name} | {row['plain_seconds']:.1f} | {row['sluice_seconds']:.1f} | {row['faster']:.2f}x | "
                  f"{row['plain_cpu_seconds']:.1f} | {row['sluice_cpu_seconds']:.1f} | {row['less_cpu']:.2f}x |", flush=True)  # fmt: skip
    if options.output:
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load_average": os.getloadavg()[0]}
        options.output.write_text(json.dumps({"date": datetime.date.today().isoformat(), "machine": machine, "images": images, "rows": rows}, indent=1) + "\n")
    return 0 if all(row["faster"] >= LEAST_RATIO for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
