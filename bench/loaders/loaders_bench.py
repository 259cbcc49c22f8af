#!/usr/bin/env python3
"""Sluice head to head with the other loaders: the same work on the same machine, in turns.

usage: bench/loaders.sh BUILD     which starts: loaders_bench.py BUILD PHOTOGRAPHS TEXT [--rounds N] [--workloads A,B] [--peers "A;B"] [--output FILE] [--add]

Each run is a process of its own that loops over batches and computes nothing with them. Its figure is the CPU time of its whole process tree between
two batches in the middle, for 1,000 samples: start and end of processes are not in it. Also samples a second, the time from the call to the first
batch with all imports, and the memory of the tree (PSS). Every loader has two workers or threads and its documented fast settings.

A round runs every peer once on each workload. The ratio is torch's CPU time by the peer's in the same round, so that other load on the machine falls
on both. A peer whose packages cannot be installed here, or that fails, is a row with the reason. "torch's bytes" is seen: the first batch has the
checksum of torch's.

Prints Markdown tables; writes bench/results/loaders.json and a plot beside it. The status is 1 if a peer needs less CPU than Sluice, but for cheap
text, where torch's own loader without workers is the goal.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import environments
import machine
import report
import rounds
import summary
from peers import OURS, registry
from process_trees import adopt_orphans
from workloads import WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENTS = pathlib.Path(os.environ["SLUICE_CACHE"], "loaders")
PLOT_PACKAGES = ("matplotlib==3.11.2",)
NOT_AHEAD = "text"  # There is nothing to gain: Sluice leaves such a loop to torch.


class Bench:
    def __init__(self, options):
        self.options = options
        # What the peers read instead of the photographs: 1 GiB, made once.
        self.scratch = ENVIRONMENTS / "files" / pathlib.Path(options.photographs).name
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.peers = registry()
        self.pythons, self.unavailable = {}, {}
        earlier = json.loads(options.output.read_text())["runs"] if options.add else []
        self.runs = [(run.pop("round"), run.pop("workload"), run.pop("peer"), run) for run in earlier]

    def environment(self):
        feeder = pathlib.Path(self.options.build, "worker-image/sluice-feeder").resolve()
        return os.environ | {"SLUICE_FEEDER_BINARY": str(feeder), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"}

    def command(self, workload, peer):
        options = self.options
        return [str(self.pythons[peer]), "one_run.py", peer, workload, options.photographs, options.text + "/paragraphs.txt", str(self.scratch)]

    def rows(self):
        """What is to be run: workload and peer."""
        wanted = self.options.peers or list(self.peers)
        return [(workload, name) for workload in self.options.workloads for name in wanted if workload in self.peers[name].batches]

    def install(self):
        """Peers whose environment cannot be made are rows with the reason."""
        reasons = {}
        for name in dict.fromkeys(peer for _, peer in self.rows()):
            peer = self.peers[name]
            try:
                if peer.environment in reasons:
                    raise environments.NotInstallable(reasons[peer.environment])
                self.pythons[name] = environments.python_of(ENVIRONMENTS / peer.environment, peer.packages) if peer.environment else sys.executable
            except environments.NotInstallable as failure:
                reasons[peer.environment] = str(failure)
                self.give_up(name, f"not installable here: {failure}")

    def prepare(self):
        for name in [name for name in self.pythons if self.peers[name].prepare]:
            done = subprocess.run(self.command("photographs", name), cwd=HERE, env=self.environment(), capture_output=True, text=True)
            if done.returncode:
                self.give_up(name, f"cannot make its files: {environments.reason(done.stderr)}")

    def give_up(self, name, reason):
        print(f"{name}: {reason}", file=sys.stderr, flush=True)
        self.pythons.pop(name, None)
        self.unavailable |= {(workload, peer): reason for workload, peer in self.rows() if peer == name}

    def measure(self):
        ready = [(workload, peer) for workload, peer in self.rows() if peer in self.pythons]
        first = 1 + max((number for number, *_ in self.runs), default=-1)
        for number, (workload, peer) in rounds.turns(ready, first, self.options.rounds):
            figures = rounds.run(self.command(workload, peer), self.environment())
            self.runs.append((number, workload, peer, figures))
            cost = figures.get("failed") or f"{figures['cpu_seconds_per_1000']:.4f} CPU-s per 1,000, load {figures['load_average']:.1f}"
            print(f"round {number}, {workload}, {peer}: {cost}", file=sys.stderr, flush=True)
            self.write()  # What an interruption leaves is of use.

    def write(self):
        result = {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": machine.described(),
            "rows": summary.summarised(self.runs, self.unavailable),
            "runs": [{"round": number, "workload": workload, "peer": peer} | figures for number, workload, peer, figures in self.runs],
        }
        self.options.output.write_text(json.dumps(result, indent=1) + "\n")
        return result["rows"]


def draw(results):
    try:
        python = environments.python_of(ENVIRONMENTS / "plot", PLOT_PACKAGES)
        environments.ran("plot", [python, HERE / "plot.py", results, results.with_suffix(".svg")])
    except environments.NotInstallable as failure:
        print(f"no plot: {failure}", file=sys.stderr)


def verdicts(rows):
    """Prints who is ahead of Sluice; returns whether that is anyone where it must not be."""
    short = False
    for workload in dict.fromkeys(row["workload"] for row in rows):
        ahead_of_ours = summary.behind(rows, workload)
        short |= bool(ahead_of_ours) and workload != NOT_AHEAD
        print(f"{workload}: {OURS} " + (f"falls behind {', '.join(ahead_of_ours)}" if ahead_of_ours else "is ahead of every other loader that ran"))
    return short


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("photographs")
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(WORKLOADS))
    parser.add_argument("--peers", type=lambda text: text.split(";"), help="with semicolons between their names")
    parser.add_argument("--output", type=pathlib.Path, default=HERE.parent / "results/loaders.json")
    parser.add_argument("--add", action="store_true", help="rounds to those that the file has")
    options = parser.parse_args()
    if unknown := set(options.workloads) - WORKLOADS.keys():
        parser.error(f"--workloads: {', '.join(sorted(unknown))}: there are {', '.join(WORKLOADS)}")
    if unknown := set(options.peers or ()) - registry().keys():
        parser.error(f"--peers: {', '.join(sorted(unknown))}: there are {'; '.join(registry())}")
    adopt_orphans()
    bench = Bench(options)
    bench.install()
    bench.prepare()
    bench.measure()
    rows = bench.write()
    print(report.markdown(rows, {name: peer.semantics for name, peer in bench.peers.items()}))
    draw(options.output)
    return 1 if verdicts(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
