#!/usr/bin/env python3
"""A trainer of two pods beside one of one pod, both starved, on the real local cluster: `make bench-two-pods`.

    two_pods_bench.py RESULT.json [--repetitions 3] [--epochs 4] [--step-factor 2] [--kueue]

One pod is the demo's `vision`. Two pods are two ranks that take each step together over gloo. Both ways ask for the same in
sum: each rank's accelerator is half as fast, and its feeder and its request of CPU are half as large. The ways take turns.

  utilisation  compute / (compute + wait) in the loop over the second half of the samples, the mean of the ranks. A rank's
               wait for the other one, and gloo's own time, count as wait.
  removal      once more two pods: `helm uninstall` when a third of the samples is through. The trainer has to end with all.
  --kueue      the trainers of two pods wait in a queue of the real Kueue, which e2e/cluster/build-binaries.sh kueue builds

The accelerator is slower than an A100 by --step-factor, so that the cluster can feed it beside other work of the machine.
Exit status 0: it ran; whether the goal is met stands in the figures.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "e2e/demo"), str(ROOT / "e2e/scenarios/integrations")]

import jobs  # noqa: E402
from console import Console, DemoError  # noqa: E402
from demo import describe, exit_status, sluice_on  # noqa: E402
from kueue_install import Kueue, queued  # noqa: E402
from machine import RELEASE, RELEASE_NAMESPACE, LocalMachine, cache_folder, delete_jobs, tool  # noqa: E402
from running_job import RunningJob  # noqa: E402
from watch import condition  # noqa: E402

GOAL_POINTS = 3.0
FIRST_STEPS = 12         # most of them before data workers have come
BATCH_SIZE = 64          # of the demo's vision
QUEUE, QUEUE_MILLI = "trainers", 1000
LONGEST_SECONDS = 400    # of one run


@dataclasses.dataclass(frozen=True)
class Work:
    """What every run trains on."""

    site: jobs.Site
    epochs: int
    step_factor: float

    @property
    def samples(self):
        return jobs.WORK["vision"].size * self.epochs

    def manifest(self, pods, queue=None):
        arguments = ["--data", self.site.folders["photographs"], "--epochs", str(self.epochs), "--step-factor", str(pods * self.step_factor)]
        if pods == 1:
            return queued(jobs.manifest("vision", jobs.PHASES[2], self.site, arguments=arguments), queue)
        arguments += ["--batch-size", str(BATCH_SIZE), "--digest", "sampled"]
        return queued(half_a_share(jobs.in_two_pods(jobs.manifest("vision", jobs.PHASES[2], self.site, arguments=arguments))), queue)

    def labels(self):
        """How often a trainer of two pods has to see each class."""
        folder = cache_folder() / "datasets" / pathlib.Path(self.site.folders["photographs"]).name
        classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
        return {label: self.epochs * sum(1 for _ in (folder / name).iterdir()) for label, name in enumerate(classes)}


def half_a_share(text):
    """The pods and their feeders ask for half. The pods' limit stays, as each starts an interpreter of its own."""
    for pattern, half in [("requests: {cpu: 400m,", "requests: {cpu: 200m,"), ("requests: {cpu: 100m,", "requests: {cpu: 50m,"),
                          ("requests: {cpu: 300m,", "requests: {cpu: 150m,"), ("limits: {cpu: 300m}", "limits: {cpu: 150m}")]:  # fmt: skip
        text, found = re.subn(re.escape(pattern), half, text)
        assert found == 1, pattern
    return text


class Run:
    """A trainer from its start to its end, and its figures."""

    def __init__(self, cluster, console, work, pods, queue=None):
        delete_jobs(cluster)
        self._console, self._work, self._pods = console, work, pods
        self._load, self._applied, self._most_workers = os.getloadavg()[0], time.time(), 0
        cluster.apply(work.manifest(pods, queue))
        self.job = RunningJob(cluster, "vision")

    def follow(self, what, holds):
        """Waits until `holds(status)` and keeps the figures of the way."""
        def look(status):
            self._most_workers = max(self._most_workers, status.get("workers", {}).get("ready", 0))
            if condition({"status": status}, "Failed"):
                raise DemoError(f"vision failed: {self._last_events()}", "KEEP=1 keeps the cluster for a look")
            return holds(status)

        return self.job.wait_for(what, look, LONGEST_SECONDS)

    def ended(self, status):
        """Also without an operator that would say so in the status."""
        phases = [pod["status"].get("phase") for pod in self.job.pods("trainer")]
        return len(phases) == self._pods and set(phases) == {"Succeeded"}

    def samples(self):
        """That all ranks have seen so far."""
        return sum(event["samples"] for event in self._last_events())

    def figures(self):
        """REQUIRES: ended."""
        results = self._last_events()
        alone = [first_steps(self.job.events(pod)) for pod in self.job.pods("trainer")] if self._pods > 1 else []
        return {
            "pods": self._pods,
            "second_half_percent": mean(result["second_half_percent"] for result in results),
            "in_loop_percent": mean(result["utilisation_percent"] for result in results),
            **({"first_steps_percent": mean(alone)} if alone else {}),
            "samples": sum(result["samples"] for result in results),
            "complete": self._complete(results),
            "most_workers_ready": self._most_workers,
            "seconds": round(max(result["time"] for result in results) - self._applied, 1),
            "load": round(self._load, 1),
        }

    def _complete(self, results):
        if self._pods == 1:
            return results[0]["complete"]
        return collections.Counter(label for result in results for label in result["labels"]) == self._work.labels()

    def _last_events(self):
        found = [[event for event in self.job.events(pod) if event["event"] in ("step", "progress", "result")] for pod in self.job.pods("trainer")]
        return [events[-1] for events in found if events]


def first_steps(events):
    """Utilisation from the second step on."""
    steps = [event for event in events if event["event"] == "step"][: FIRST_STEPS + 1]
    compute, wait = (steps[-1][part] - steps[0][part] for part in ("compute", "wait"))
    return 100 * compute / (compute + wait)


def mean(values):
    values = list(values)
    return round(sum(values) / len(values), 1)


def in_turns(cluster, console, work, repetitions, queue):
    figures = []
    for repetition in range(repetitions):
        for pods in (1, 2):
            console.say(f"--- {repetition + 1} of {repetitions}: {pods} pod{'s' * (pods - 1)}")
            run = Run(cluster, console, work, pods, queue if pods == 2 else None)
            run.follow("end", run.ended)
            figures.append(run.figures())
            console.say(json.dumps(figures[-1]))
    return figures


def removal(cluster, console, work):
    """Two pods train, Sluice goes, and they train on."""
    console.say("--- two pods, and Sluice goes")
    run = Run(cluster, console, work, 2)
    run.follow("workers and a third of the samples", lambda status: run.samples() >= work.samples / 3 and status.get("workers", {}).get("ready"))
    before = {pod["metadata"]["uid"] for pod in run.job.pods("trainer")}
    at = run.samples()
    done = subprocess.run([tool("helm"), "uninstall", RELEASE, "--kubeconfig", cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE],
                          capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode != 0:
        raise DemoError(f"helm uninstall: {done.stderr}", f"helm status -n {RELEASE_NAMESPACE} {RELEASE}")
    console.say(f"helm uninstall after {at} samples")
    run.follow("end without Sluice", run.ended)
    same = {pod["metadata"]["uid"] for pod in run.job.pods("trainer")} == before
    figures = {"removed_after_samples": at, "same_pods": same, **run.figures()}
    console.say(json.dumps(figures))
    return figures


def text(run):
    one, two = (run[way]["second_half_percent"] for way in ("one_pod", "two_pods"))
    gone = run["removal"]
    return "\n".join([
        "", f"  {run['machine']}", f"  {run['versions']}", "",
        f"  utilisation over the second half: one pod {one:.1f} %, two pods {two:.1f} %"
        + (", these through Kueue" if run["kueue"] else "") + f", of runs {run['one_pod']['of']} and {run['two_pods']['of']}",
        f"  two pods over their first {FIRST_STEPS} steps: {run['two_pods']['first_steps_percent']:.1f} %",
        f"  two pods are {run['difference_points']:.1f} points below; the goal is at most {GOAL_POINTS:g}: {'met' if run['met'] else 'NOT met'}",
        f"  Sluice removed after {gone['removed_after_samples']} samples: {gone['samples']} of {run['samples']} seen, "
        f"{'complete' if gone['complete'] else 'NOT complete'}, {'the same pods' if gone['same_pods'] else 'OTHER pods'}, "
        f"{gone['second_half_percent']:.1f} % over the second half",
    ])  # fmt: skip


def measure(machine, console, arguments):
    """Writes the figures and prints them."""
    with sluice_on(machine) as (cluster, site):
        run = {**describe(cluster, 1), "kueue": arguments.kueue, "step_factor": arguments.step_factor, "epochs": arguments.epochs}
        del run["scale"]
        work = Work(site, arguments.epochs, arguments.step_factor)
        kueue = Kueue(cluster) if arguments.kueue else None
        if kueue:
            with console.step("Kueue"):
                kueue.load_image()
                kueue.install()
                kueue.queue(QUEUE, QUEUE_MILLI)
        figures = in_turns(cluster, console, work, arguments.repetitions, QUEUE if kueue else None)
        if kueue:
            delete_jobs(cluster)
            kueue.uninstall()
        gone = removal(cluster, console, work)
    ways = {1: "one_pod", 2: "two_pods"}
    for pods, way in ways.items():
        of = [each for each in figures if each["pods"] == pods]
        run[way] = {"second_half_percent": mean(each["second_half_percent"] for each in of), "of": [each["second_half_percent"] for each in of]}
    run["two_pods"]["first_steps_percent"] = mean(each["first_steps_percent"] for each in figures if each["pods"] == 2)
    run["difference_points"] = round(run["one_pod"]["second_half_percent"] - run["two_pods"]["second_half_percent"], 1)
    run |= {"goal_points": GOAL_POINTS, "met": run["difference_points"] <= GOAL_POINTS, "samples": work.samples, "runs": figures, "removal": gone}
    pathlib.Path(arguments.result).write_text(json.dumps(run, indent=1) + "\n")
    console.plain(text(run))
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="file for the figures")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--step-factor", type=float, default=2, help="of the one pod's accelerator: steps take so many times as long as an A100's")
    parser.add_argument("--kueue", action="store_true")
    arguments = parser.parse_args()
    console = Console()
    machine = LocalMachine(console, keep=os.environ.get("KEEP") == "1")
    return exit_status("bench-two-pods", console, lambda: measure(machine, console, arguments))


if __name__ == "__main__":
    sys.exit(main())
