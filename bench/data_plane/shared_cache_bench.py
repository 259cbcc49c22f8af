"""shared_cache_bench.py BUILD FILES: two jobs that read the same slow files at the same time, without a cache, with one each, and with one that they share.

BUILD is a build folder with sluice-cache and sluice-cache-bench, FILES a file with the paths of JPEG files, one a line. The second job reads them in another
order. Prints a JSON object for each arrangement, of each epoch: reads of the source by both jobs, seconds of the slower one, CPU-seconds of both; then CPU-seconds of the
daemon, and whether all epochs of a job had the same bytes. DELAY_MS, PIPELINE, FORM and EPOCHS
of the environment are those of sluice-cache-bench (20, train, cached, 3).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DELAY_MS, PIPELINE, FORM, EPOCHS = (os.environ.get(name, default) for name, default in (("DELAY_MS", "20"), ("PIPELINE", "train"), ("FORM", "cached"), ("EPOCHS", "3")))
MEMORY_BYTES = 1 << 28
JOBS = 2


def cpu_seconds_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def daemon(build: Path, folder: Path):
    socket = folder / "cache.sock"
    line = [build / "worker-image/sluice-cache", "--socket", socket, "--directory", folder / "shared", "--bytes", 10**10, "--memory-bytes", MEMORY_BYTES]
    process = subprocess.Popen([*map(str, line)], stderr=subprocess.DEVNULL)
    try:
        while not socket.exists():
            time.sleep(0.01)
        yield socket, process.pid
    finally:
        process.terminate()
        process.wait()


def orders_of(files: Path, folder: Path) -> list[Path]:
    """A list for each job."""
    paths = files.read_text().splitlines()
    orders = [folder / f"order{job}" for job in range(JOBS)]
    for number, order in enumerate(orders):
        if number > 0:
            random.Random(number).shuffle(paths)
        order.write_text("".join(f"{path}\n" for path in paths))
    return orders


def run_jobs(build: Path, orders: list[Path], mode: str, places: list[Path]) -> list[list[dict]]:
    """The epochs of each job."""
    jobs = []
    for order, place in zip(orders, places, strict=True):
        line = [build / "bench/data_plane/sluice-cache-bench", mode, place, DELAY_MS, PIPELINE, EPOCHS]
        with open(order) as paths:
            jobs.append(subprocess.Popen([*map(str, line)], stdin=paths, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
    outputs = [job.communicate()[0] for job in jobs]
    if any(job.returncode for job in jobs):
        sys.exit("a job has failed")
    return [[json.loads(line) for line in output.splitlines()] for output in outputs]


def figures(name: str, jobs: list[list[dict]], daemon_seconds: list[float]) -> dict:
    epochs = list(zip(*jobs, strict=True))
    return {
        "arrangement": name, "files": jobs[0][0]["files"],
        "source_reads": [sum(job["source_reads"] for job in epoch) for epoch in epochs],
        "seconds": [round(max(job["seconds"] for job in epoch), 2) for epoch in epochs],
        "cpu_seconds": [round(sum(job["cpu_seconds"] for job in epoch), 3) for epoch in epochs],
        "daemon_cpu_seconds": daemon_seconds, "bytes": [{epoch["sum_of_bytes"] for epoch in job} for job in jobs],
    }  # fmt: skip


def main() -> None:
    build, files = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        orders = orders_of(files, root)
        lines = [figures("no cache", run_jobs(build, orders, "plain", [root / "none"] * JOBS), [])]
        lines.append(figures("one each", run_jobs(build, orders, FORM, [root / f"own{job}" for job in range(JOBS)]), []))
        with daemon(build, root) as (socket, pid):
            for name in ("shared", "shared, next processes"):
                before = cpu_seconds_of(pid)
                jobs = run_jobs(build, orders, FORM, [socket] * JOBS)
                lines.append(figures(name, jobs, [round(cpu_seconds_of(pid) - before, 2)]))
    sums = [set.union(*of_job) for of_job in zip(*(line.pop("bytes") for line in lines), strict=True)]
    for line in lines:
        print(json.dumps({**line, "same_bytes": all(len(of_job) == 1 for of_job in sums)}))


if __name__ == "__main__":
    main()
