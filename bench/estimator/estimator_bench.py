#!/usr/bin/env python3
"""What the scheduler believes about jobs of the real data plane, against what they are: `make bench-estimator`.

    estimator_bench.py RESULT.json

One job at a time on the local cluster, in mode Recommend, so that only this program moves workers:
  alone     no worker: the first recommendation, and the local rate
  fed       as many workers as recommended: the remote rate, and the demand of a job that hardly waits
The truth is counted elsewhere than the scheduler looks, and over the whole of each stretch:
  demand    samples over computing seconds in the trainer's own log at its end
  rates     samples over CPU-seconds of whole containers (kubelet's accounting), which includes what no executor sees of
            itself: receiving, sending, the interpreter
  knee      demand over local rate; first jump: workers of the first recommendation over workers that the truth asks for
Exit status 0: it ran; the verdicts are in the figures.
"""

import dataclasses
import json
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "e2e/demo"))

import jobs  # noqa: E402
from cluster_api import pods_path  # noqa: E402
from console import Console  # noqa: E402
from demo import describe, exit_status, sluice_on  # noqa: E402
from machine import JOBS_NAMESPACE, LocalMachine, delete_jobs  # noqa: E402
from running_job import RunningJob  # noqa: E402
from watch import condition  # noqa: E402

HEADROOM = 1.2           # scheduler/model/config.h
WORKER_CORES = 0.2       # e2e/demo/jobs
STRETCH_SECONDS = 40     # of steady state, per figure
WARM_UP_SECONDS = 45     # a Python worker's imports at a fifth of a core, and a metrics window
EPOCHS = {"vision": 30, "speech": 45}  # long enough for both stretches, however fast it gets
CPU = re.compile(r'^container_cpu_usage_seconds_total\{container="([^"]+)",namespace="([^"]+)",pod="([^"]+)"\} (\S+) (\d+)$', re.M)
SAMPLES = re.compile(r"^sluice_worker_samples_total\{([^}]*)\} (\S+)$", re.M)


class Job(RunningJob):
    """One of the demo's jobs, alone on the cluster, whose workers this program counts."""

    def __init__(self, cluster, site, name):
        super().__init__(cluster, name)
        phase = dataclasses.replace(jobs.PHASES[2], mode="Recommend")
        arguments = ["--data", site.folders[jobs.WORK[name].dataset], "--epochs", str(EPOCHS[name])]
        delete_jobs(cluster)
        cluster.apply(jobs.manifest(name, phase, site, arguments=arguments))

    def scale(self, workers):
        self._cluster.kubectl("scale", "-n", JOBS_NAMESPACE, f"dwp/{self.name}", f"--replicas={workers}")

    def rate_per_core(self, component, container):
        """Samples per CPU-second of all containers of that name, over a stretch from now on."""
        pods = [pod["metadata"]["name"] for pod in self.pods(component)]
        node = self._cluster.items("/api/v1/nodes")[0]["metadata"]["name"]

        def cpu():
            text = self._cluster.get_text(f"/api/v1/nodes/{node}/proxy/metrics/resource") or ""
            return {pod: (float(used), int(stamp) / 1000) for name, _, pod, used, stamp in CPU.findall(text) if name == container and pod in pods}

        def samples():
            found = {}
            for pod in pods:
                text = self._cluster.get_text(f"{pods_path(JOBS_NAMESPACE)}/{pod}:9464/proxy/metrics") or ""
                found[pod] = sum(float(value) for _, value in SAMPLES.findall(text))
            return found

        cpu_before, samples_before, began = cpu(), samples(), time.monotonic()
        time.sleep(STRETCH_SECONDS)
        cpu_after, samples_after, took = cpu(), samples(), time.monotonic() - began
        # The kubelet's counters carry the time at which they were read, up to ten seconds ago: rates, not differences.
        cores = sum((cpu_after[pod][0] - cpu_before[pod][0]) / (cpu_after[pod][1] - cpu_before[pod][1]) for pod in pods)
        return sum(samples_after[pod] - samples_before[pod] for pod in pods) / took / cores


def beliefs(status):
    seen = status["observed"]
    return {"demand": seen["demandSamplesPerSecond"], "local_rate": seen["localRatePerCore"], "remote_rate": seen["remoteRatePerCore"],
            "knee_cores": seen["kneeMilliCores"] / 1000, "wait_percent": seen["dataWaitPercent"], "recommended": status["workers"]["recommended"]}  # fmt: skip


def measure(cluster, console, site, name):
    job = Job(cluster, site, name)
    console.say(f"--- {name}, alone")
    probing = job.wait_for("recommendation", lambda status: status.get("workers", {}).get("recommended"), 120)
    # One worker "to measure with" is a probe, not a jump.
    job.wait_for("estimate", lambda status: status.get("observed", {}).get("kneeMilliCores"), 60)
    first = beliefs(job.status())
    console.say(f"first recommendation {probing}, with an estimate {first['recommended']}: {job.status().get('explanation')}")
    truth = {"local_rate": job.rate_per_core("trainer", "sluice-feeder")}
    job.scale(first["recommended"])
    console.say(f"--- {name}, with {first['recommended']} workers")
    job.wait_for("workers", lambda status: status["workers"].get("ready", 0) >= first["recommended"], 90)
    time.sleep(WARM_UP_SECONDS)
    truth["remote_rate"] = job.rate_per_core("worker", "sluice-worker")
    later = beliefs(job.status())
    console.say(f"{job.status().get('explanation')}")
    job.wait_for("end", lambda status: condition({"status": status}, "Succeeded"), 900)
    result = job.events(job.pods("trainer")[0])[-1]
    truth["demand"] = result["samples"] / result["compute_seconds"]
    truth["knee_cores"] = truth["demand"] / truth["local_rate"]
    wanted = HEADROOM * max(0.0, truth["knee_cores"] - local_cores(first)) * truth["local_rate"] / truth["remote_rate"] / WORKER_CORES
    return {"job": name, "truth": {key: round(value, 3) for key, value in truth.items()}, "first": first, "later": later,
            "workers_by_truth": round(wanted, 2), "errors": errors(truth, first, later)}  # fmt: skip


def local_cores(first):
    """CPU that the feeder of a starved job gave: its supply over its rate."""
    return first["demand"] * (1 - first["wait_percent"] / 100) / first["local_rate"]


def errors(truth, first, later):
    percent = lambda believed, true: round(100 * (believed / true - 1), 1)  # noqa: E731
    return {
        "first_demand_percent": percent(first["demand"], truth["demand"]),
        "first_local_rate_percent": percent(first["local_rate"], truth["local_rate"]),
        "first_knee_percent": percent(first["knee_cores"], truth["knee_cores"]),
        "later_demand_percent": percent(later["demand"], truth["demand"]),
        "later_local_rate_percent": percent(later["local_rate"], truth["local_rate"]),
        "later_remote_rate_percent": percent(later["remote_rate"], truth["remote_rate"]),
    }


def text(run):
    lines = ["", f"  {run['machine']}", f"  {run['versions']}", ""]
    for job in run["jobs"]:
        lines += [f"  {job['job']}: {'':22}{'truth':>10}{'first':>10}{'later':>10}"]
        for key in ("demand", "local_rate", "remote_rate", "knee_cores"):
            lines += [f"    {key:26}{job['truth'][key]:10.2f}{job['first'][key]:10.2f}{job['later'][key]:10.2f}"]
        lines += [f"    {'workers':26}{job['workers_by_truth']:10.2f}{job['first']['recommended']:10d}{job['later']['recommended']:10d}"]
        lines += [f"    {key:36}{value:+.1f} %" for key, value in job["errors"].items()]
    return "\n".join(lines)


def estimate(machine, console, out):
    """Writes the figures of all jobs and prints them."""
    with sluice_on(machine) as (cluster, site):
        run = describe(cluster, 1)
        del run["scale"]
        run["jobs"] = [measure(cluster, console, site, name) for name in EPOCHS]
    pathlib.Path(out).write_text(json.dumps(run, indent=1) + "\n")
    console.plain(text(run))
    return True


def main():
    console = Console()
    machine = LocalMachine(console, keep=False)
    return exit_status("bench-estimator", console, lambda: estimate(machine, console, sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
