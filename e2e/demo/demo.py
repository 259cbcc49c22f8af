#!/usr/bin/env python3
"""`make demo`: three training jobs on a real Kubernetes, fed by PyTorch alone, and by Sluice; then one that uses its own host first, and two that share
what they read from a slow object store.

    demo.py [--kubeconfig FILE] [--phases abcde]

Environment: KEEP=1 leaves the cluster up; DEMO_SCALE=0.2 runs a fifth of the work. With --kubeconfig the jobs run on a
cluster of your own; SLUICE_IMAGE, SLUICE_TRAINER_IMAGE and SLUICE_PROMETHEUS then name what it needs (docs/user-guide.md).
Writes build/demo/report.json and report.txt. Exit status 0: all checks at the end of the report hold.
"""

import argparse
import contextlib
import datetime
import os
import platform
import subprocess
import sys
import time

import own_cores
import report
import slow_store
import slow_store_report
from console import Console, DemoError
from jobs import NAMES, PHASES, manifest
from cluster_api import connect
from machine import BUILD, ROOT, JOBS_NAMESPACE, LocalMachine, OwnCluster, delete_jobs, ignore_signals, interrupt_on_signals, tool
from watch import Watcher

PHASE_SECONDS = 900  # a phase that takes longer hangs


def run_phase(cluster, console, site, phase, scale):
    """Runs all jobs in one way and returns the figures."""
    console.say(f"--- ({phase.key}) {phase.title}")
    delete_jobs(cluster)
    applied = time.time()
    cluster.apply("---\n".join(manifest(name, phase, site, scale) for name in NAMES))
    console.say(f"kubectl apply: {', '.join(NAMES)}")
    watcher = Watcher(cluster, JOBS_NAMESPACE, console, f"({phase.key}) {phase.title}", NAMES, applied)
    watcher.follow(PHASE_SECONDS * max(1.0, scale))
    return report.phase_figures(phase, watcher)


def describe(cluster, scale):
    """The machine, the versions and the date: a figure without them says nothing."""
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    revision = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    node = (cluster.items("/api/v1/nodes") or [{}])[0].get("status", {}).get("nodeInfo", {})
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} x {model}, {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB, load {os.getloadavg()[0]:.1f} at the start",
        "versions": f"Sluice {revision.stdout.strip() or 'unknown'}, Kubernetes {node.get('kubeletVersion')}, {node.get('containerRuntimeVersion')}, "
                    f"kernel {node.get('kernelVersion')}",
        "scale": scale,
    }  # fmt: skip


def run_phases(machine, cluster, console, site, keys, scale):
    run = describe(cluster, scale)
    run["phases"] = [run_phase(cluster, console, site, phase, scale) for phase in PHASES if phase.key in keys]
    if own_cores.PHASE.key in keys:
        run["own_cores"] = own_cores.run(cluster, console, site, machine)
    if slow_store.PHASE.key in keys:
        run["slow_store"] = slow_store.run(cluster, console, site)
    run["checks"] = report.checks(run["phases"]) + report.own_cores_checks(run.get("own_cores"), run["phases"]) + slow_store_report.checks(run.get("slow_store"))
    return run


@contextlib.contextmanager
def sluice_on(machine):
    """A cluster with Sluice on it, from nothing: yields the cluster and the site of its jobs. Whatever happens, what was made is removed."""
    try:
        machine.prepare()
        with connect(tool("kubectl"), machine.kubeconfig) as cluster:
            try:
                yield cluster, machine.install(cluster)
            finally:
                ignore_signals()
                machine.uninstall(cluster)
    finally:
        ignore_signals()
        machine.stop()


def exit_status(program, console, work):
    """Of a program that does `work()`: 0 when it says True, 1 when not or when it failed, 130 when it was interrupted."""
    interrupt_on_signals()
    try:
        return 0 if work() else 1
    except DemoError as error:
        console.plain(f"\n{program}: {error}\n  way out: {error.way_out}")
        return 1
    except KeyboardInterrupt as interrupt:
        console.plain(f"\n{program}: interrupted ({interrupt})")
        return 130


def demonstrate(machine, console, keys, scale):
    """From nothing to the report. Returns whether all checks hold."""
    with sluice_on(machine) as (cluster, site):
        run = run_phases(machine, cluster, console, site, keys, scale)
    report.write(run, BUILD / "demo")
    console.plain(report.text(run))
    console.plain(f"\n  also in {(BUILD / 'demo').relative_to(ROOT)}/report.txt and report.json\n")
    return all(holds for _, holds in run["checks"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", help="run on this cluster instead of a local one")
    parser.add_argument("--phases", help="which of (a), (b), (c), (d), (e) to run; by default all, and on a cluster of your own the first three: (d) splits the local node")
    arguments = parser.parse_args()
    console, keep = Console(), os.environ.get("KEEP") == "1"
    machine = OwnCluster(console, keep, arguments.kubeconfig) if arguments.kubeconfig else LocalMachine(console, keep)
    keys = arguments.phases or ("abc" if arguments.kubeconfig else "abcde")
    if arguments.kubeconfig and own_cores.PHASE.key in keys:
        parser.error("(d) splits the local node in two; it cannot run on a cluster of your own")
    scale = float(os.environ.get("DEMO_SCALE", "1"))
    return exit_status("demo", console, lambda: demonstrate(machine, console, keys, scale))


if __name__ == "__main__":
    sys.exit(main())
