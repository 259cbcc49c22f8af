#!/usr/bin/env python3
"""DLIO, the program of MLPerf Storage, with its own PyTorch loader and with Sluice's, which is a plug-in of it.

usage: bench/dlio.sh BUILD     which starts: dlio_bench.py BUILD [--rounds N] [--workloads A,B] [--output FILE]

DLIO comes from PyPI and runs as it is. It makes the files, reads them, and sleeps where an accelerator would compute. Its own loader runs plainly and under
`sluice run`. Its readers write down what they read, as a plug-in, too: each worker must have read the same samples in the same order in every run.

AU is DLIO's: the time of computing in all steps but the first, by the time of these steps. Samples a second are DLIO's, too. CPU-seconds are those of all
processes, with the start: DLIO imports torch, TensorFlow and pandas. A ratio is that of one round, and above 1 the loader is better than DLIO's own. The status
is 1 if a loader is slower than LEAST_RATIO times DLIO's own.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import environments
import figures
import machine
import rounds
from figures import ATTACHED, LOADERS, OURS, OWN
from mlperf_storage import GENERATES, WITH_SLUICE, WORKLOADS, arguments, recording
from process_trees import adopt_orphans, end_descendants

HERE = pathlib.Path(__file__).resolve().parent
# The package asks for DALI, too, which it imports for DALI's own loader alone. mpich is an MPI within Python packages.
DLIO = "dlio-benchmark==2.0.0"
PACKAGES = ("hydra-core==1.3.8", "mpi4py==4.1.1", "mpich==5.0.2", "pydftracer==1.0.2", "tensorflow-cpu==2.21.0")
RUN_SECONDS = 420


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.python = environments.python_of(pathlib.Path(os.environ["SLUICE_CACHE"], "loaders/dlio"), PACKAGES, (DLIO,))

    def environment(self):
        feeder = pathlib.Path(self.options.build, "worker-image/sluice-feeder").resolve()
        return os.environ | {"SLUICE_FEEDER_BINARY": str(feeder), "SLUICE_REPORT": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
                             "TF_CPP_MIN_LOG_LEVEL": "3", "DFTRACER_ENABLE": "0"}  # fmt: skip

    def run(self, name, loader, changes=()):
        """The folder of DLIO's output, and the CPU-seconds of all processes. Raises NotAsAsked if DLIO or Sluice has not done its work."""
        output = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        launcher = ["-m", "sluice", "run"] if loader == ATTACHED else []
        changes = (*changes, *(WITH_SLUICE if loader == OURS else ()))
        command = [str(self.python), *launcher, str(self.python.with_name("dlio_benchmark")), *arguments(WORKLOADS[name], self.folder / name, output, changes)]
        before, log = cpu_seconds(), output / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(command, cwd=output, env=self.environment(), stdin=subprocess.DEVNULL, stdout=errors, stderr=subprocess.STDOUT)
            try:
                status = process.wait(RUN_SECONDS)
            except subprocess.TimeoutExpired:
                raise figures.NotAsAsked(f"{name}, {loader}: not done after {RUN_SECONDS} s") from None
            finally:
                end_descendants()  # the feeder waits for the next loop
                process.wait()
        if status:
            raise figures.NotAsAsked(f"{name}, {loader}: {rounds.last_words(log)}")
        if loader != OWN:
            figures.check_served(log.read_text())
        return output, cpu_seconds() - before

    def measure(self):
        """Figures of every run; each has read the samples of the first one, which was DLIO's own loader's."""
        runs, read = [], {}
        for name in self.options.workloads:
            self.run(name, OWN, GENERATES)
        for number, (name, loader) in rounds.turns([(name, loader) for name in self.options.workloads for loader in LOADERS], 0, self.options.rounds):
            output, seconds = self.run(name, loader, recording(WORKLOADS[name]))
            recorded = figures.recorded(output)
            figures.check_samples(read.setdefault(name, recorded), recorded, WORKLOADS[name])
            found = figures.of_run(output, WORKLOADS[name]) | {"cpu_seconds": seconds, "load_average": os.getloadavg()[0]}
            runs.append((number, name, loader, found))
            print(f"round {number}, {name}, {loader}: AU {found['au_percent']:.1f} %, {found['samples_per_second']:.0f} samples/s, {seconds:.1f} CPU-s, "
                  f"load {found['load_average']:.1f}", file=sys.stderr, flush=True)  # fmt: skip
            write(self.options.output, runs)  # What an interruption leaves is of use.
        return runs


def cpu_seconds():
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write(output, runs):
    result = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine.described(),
        "versions": {"dlio-benchmark": DLIO.partition("==")[2], "torch": importlib.metadata.version("torch")},
        "rows": figures.summarised(runs),
        "runs": [{"round": number, "workload": name, "loader": loader} | found for number, name, loader, found in runs],
    }
    output.write_text(json.dumps(result, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(WORKLOADS))
    parser.add_argument("--output", type=pathlib.Path, default=HERE.parent / "results/dlio.json")
    options = parser.parse_args()
    adopt_orphans()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = figures.summarised(Bench(options, pathlib.Path(folder)).measure())
    except (environments.NotInstallable, figures.NotAsAsked) as failure:
        sys.exit(str(failure))
    print(figures.markdown(rows, {name: workload.title for name, workload in WORKLOADS.items()}))
    for row in figures.behind(rows):
        print(f"{row['workload']}: {row['loader']} falls short, {row['faster']['median']:.2f} times DLIO's own samples/s")
    return 1 if figures.behind(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
