"""shared_jobs_bench.py BUILD FILES: jobs that train on the same slow files at the same time, out of phase, with a cache that has room for a part of them.

BUILD is a build folder with sluice-cache, sluice-cache-bench and sluice-lru-cache, FILES a file with the paths of JPEG files, one a line. Each epoch of a job has
an order of its own. Two jobs have room for a fifth of the files, four for two fifths: without a cache; with one that keeps what was used last, as a page cache
does; with sluice-cache, where the jobs do not say which job asks, so that it keeps what it has; where they say it; and where they announce the order of each epoch, and of the one
after.

Prints a JSON object for each: reads of the source for each sample, in all epochs, and without the first and the last one of each job, in which some jobs may not run; seconds from the first start to the
last end; CPU-seconds of the jobs and of the cache; bytes that were written for a byte that was stored; whether all epochs of all arrangements had the same
bytes. DELAY_MS, PIPELINE and EPOCHS of the environment are those of sluice-cache-bench (10, train, 8). With MEGABYTES_PER_SECOND the source has that much for all jobs together.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared_cache_bench import cpu_seconds_of

DELAY_MS, PIPELINE, EPOCHS = (os.environ.get(name, default) for name, default in (("DELAY_MS", "10"), ("PIPELINE", "train"), ("EPOCHS", "8")))
MILLISECONDS_OF_A_SAMPLE = 3  # Beside the delay: where in its epoch the next job begins need not be exact.
CASES = ((2, 0.2), (4, 0.4))


@dataclass(frozen=True)
class Server:
    """A cache that runs. `metrics`: the address of its page; "" if it has none."""

    pid: int
    metrics: str = ""

    def written_for_a_stored_byte(self) -> float:
        if not self.metrics:
            return 0.0
        text = urllib.request.urlopen(f"http://{self.metrics}/metrics", timeout=10).read().decode()
        stored, rewritten = (float(re.findall(rf"^sluice_cache_node_{name}_bytes_total (.*)$", text, re.MULTILINE)[0]) for name in ("stored", "rewritten"))
        return round(1 + rewritten / stored, 2) if stored else 0.0


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextlib.contextmanager
def served(command: list[object], place: Path, metrics: str = "") -> Iterator[Server]:
    """`place`: of its socket."""
    process = subprocess.Popen([*map(str, command)], stderr=subprocess.DEVNULL)
    try:
        while not place.exists():
            time.sleep(0.01)
        yield Server(process.pid, metrics)
    finally:
        process.terminate()
        process.wait()


def run_jobs(build: Path, files: Path, jobs: int, mode: str, place: Path, sign: int, announces: int) -> tuple[list[list[dict]], float]:
    """The epochs of each job, and the seconds of all."""
    count = len(files.read_text().splitlines())
    between_seconds = count * (int(DELAY_MS) + MILLISECONDS_OF_A_SAMPLE) / 1000 / jobs
    started = time.monotonic()
    running = []
    environment = {**os.environ, "LINE": f"{place}.line"}
    for job in range(1, jobs + 1):
        line = [build / "bench/data_plane/sluice-cache-bench", mode, place, DELAY_MS, PIPELINE, EPOCHS, sign * job, announces]
        with open(files) as paths:
            running.append(subprocess.Popen([*map(str, line)], stdin=paths, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment))
        if job < jobs:
            time.sleep(between_seconds)
    outputs = [job.communicate()[0] for job in running]
    if any(job.returncode for job in running):
        sys.exit("a job has failed")
    return [[json.loads(line) for line in output.splitlines()] for output in outputs], time.monotonic() - started


def reads_of_a_sample(epochs: list[dict]) -> float:
    return round(sum(epoch["source_reads"] for epoch in epochs) / sum(epoch["files"] for epoch in epochs), 3)


def measure(build: Path, files: Path, jobs: int, room: float, folder: Path) -> Iterator[dict]:
    room_bytes = int(room * sum(Path(path).stat().st_size for path in files.read_text().splitlines()))

    def line(name: str, mode: str, place: Path, sign: int = 1, announces: int = 0, server: Server | None = None) -> dict:
        before = cpu_seconds_of(server.pid) if server else 0.0
        of_jobs, seconds = run_jobs(build, files, jobs, mode, place, sign, announces)
        epochs = [epoch for job in of_jobs for epoch in job]
        return {
            "jobs": jobs, "room": room, "arrangement": name,
            "reads": reads_of_a_sample(epochs), "reads_later": reads_of_a_sample([epoch for job in of_jobs for epoch in job[1:-1]]),
            "seconds": round(seconds, 1), "slowest_seconds": round(max(sum(epoch["seconds"] for epoch in job) for job in of_jobs), 1),
            "cpu_seconds": round(sum(epoch["cpu_seconds"] for epoch in epochs), 1),
            "cache_cpu_seconds": round(cpu_seconds_of(server.pid) - before, 1) if server else 0.0,
            "written_for_a_stored_byte": server.written_for_a_stored_byte() if server else 0.0,
            "sums": {epoch["sum_of_bytes"] for epoch in epochs},
        }  # fmt: skip

    yield line("no cache", "plain", folder / "none")
    place = folder / "lru.sock"
    with served([build / "bench/data_plane/sluice-lru-cache", place, room_bytes], place) as server:
        yield line("least recently used goes", "cached", place, server=server)
    for name, sign, announces in (("nothing goes", -1, 0), ("shared", 1, 0), ("announced", 1, 1), ("announced, and the next", 1, 2)):
        place, metrics = folder / f"{name}.sock", free_address()
        command = [build / "worker-image/sluice-cache", "--socket", place, "--directory", folder / name, "--bytes", room_bytes, "--metrics-address", metrics]
        with served(command, place, metrics) as server:
            yield line(name, "cached", place, sign, announces, server)


def main() -> None:
    build, files = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    sums: set[int] = set()
    for jobs, room in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for figures in measure(build, files, jobs, room, Path(folder)):
                sums |= figures.pop("sums")
                print(json.dumps({**figures, "same_bytes": len(sums) == 1}), flush=True)


if __name__ == "__main__":
    main()
