"""The fourth situation: free cores of the trainer's own host come first, and go back to another trainer that arrives there.

    1. a second trainer runs alone on the host: its seconds per step
    2. vision starts there; the operator resizes its feeder in place, and starts no data worker
    3. the second trainer arrives again: the feeder gives cores back, and data workers on the other node take over
    4. the second trainer runs alone once more: the slower of 1 and 4 counts, since a machine is not equally fast at all times

Vision's accelerator is a third as fast as in the other phases. Its whole need fits on the host then, and both nodes are this one
machine: beside vision, the control plane and workers, a core is left for the second trainer's bursts.
"""

import time

from cluster_api import cores, jobs_path, pods_path
from console import DemoError
from jobs import NEIGHBOUR_CORES, Phase, manifest, on_node, without_pod_share
from machine import JOBS_NAMESPACE, delete_jobs, set_resizing
from watch import Watcher, condition, log_events

PHASE = Phase("d", "Sluice, free cores of the trainer's host first, until another trainer needs them", "sluice", "Auto", "on")
STEP_FACTOR = 3
EPOCHS = 8
ALONE_SECONDS = 10
SETTLED_SECONDS = 18  # a window of the metrics and one decision
BESIDE_SECONDS = 40
LONGEST_SECONDS = 300
NEIGHBOUR_FIGURES = ("seconds_per_step", "waiting_share", "machine_busy_share")


def run(cluster, console, site, machine):
    """Returns the figures. Afterwards the cluster is as it was."""
    host = machine.split()
    try:
        set_resizing(cluster, True)
        console.say(f"--- ({PHASE.key}) {PHASE.title}")
        delete_jobs(cluster)
        before = neighbour_alone(cluster, console, site, host)
        figures = vision_beside_neighbour(cluster, console, site, host)
        delete_jobs(cluster)
        after = neighbour_alone(cluster, console, site, host)
        for name in NEIGHBOUR_FIGURES:
            figures["neighbour"][f"alone_{name}"] = [before[name], after[name]]
        set_resizing(cluster, False)
        return figures
    finally:
        machine.unite()


def neighbour_alone(cluster, console, site, host):
    console.say("neighbour, a trainer that computes on its CPU: alone on its host")
    start(cluster, "neighbour", site, host, [str(ALONE_SECONDS)])
    result = wait_for("neighbour alone", lambda: neighbour_result(cluster))
    delete_jobs(cluster)
    return result


def vision_beside_neighbour(cluster, console, site, host):
    """Vision to its end; neighbour comes once the feeder has grown."""
    watcher = Watcher(cluster, JOBS_NAMESPACE, console, f"({PHASE.key}) {PHASE.title}", ["vision"], time.time())
    vision = watcher.jobs["vision"]
    start(cluster, "vision", site, host, ["--data", site.folders["photographs"], "--epochs", str(EPOCHS), "--step-factor", str(STEP_FACTOR)])
    at_start = wait_for("the feeder", lambda: Look(cluster, watcher).feeder_cores)
    wait_for("a larger feeder", lambda: Look(cluster, watcher).feeder_cores > at_start + 0.1)
    wait_for("the second step", lambda: Look(cluster, watcher).progress)
    on_host = settle(cluster, watcher)
    console.say(f"vision: feeder {on_host[1].feeder_cores:.2f} cores, {vision.most_desired} data workers; neighbour arrives on its host")
    workers_before = vision.most_desired
    start(cluster, "neighbour", site, host, [str(BESIDE_SECONDS)], neighbour_cores=neighbour_cores(on_host[1].feeder_cores, vision.status))
    wait_for("data workers in the feeder's place", lambda: Look(cluster, watcher).workers > 0)
    remote = settle(cluster, watcher)
    console.say(f"vision: feeder {remote[1].feeder_cores:.2f} cores, {remote[1].workers} data workers")
    result = wait_for("neighbour's end", lambda: neighbour_result(cluster))
    watcher.follow(LONGEST_SECONDS)
    return {
        "key": PHASE.key,
        "title": PHASE.title,
        "on_host": {"utilisation_percent": utilisation(*on_host), "feeder_cores": on_host[1].feeder_cores, "most_workers_desired": workers_before},
        "with_workers": {"utilisation_percent": utilisation(*remote), "feeder_cores": remote[1].feeder_cores, "most_workers_ready": vision.most_ready},
        "feeder_cores_at_start": at_start,
        "neighbour": {name: result[name] for name in NEIGHBOUR_FIGURES},
        "cpu": {"allocatable_cores": round(watcher.cpu.allocatable, 3), "most_requested_cores": round(watcher.cpu.most_requested, 3)},
        "complete": vision.result["complete"],
        "digests": [epoch["digest"] for epoch in vision.result["epochs"]],
        "decisions": vision.decisions,
    }


class Look:
    """What is there now."""

    def __init__(self, cluster, watcher):
        watcher.look()
        vision = watcher.jobs["vision"]
        if vision.result:
            raise DemoError("vision ended before the fourth situation was shown", "is the machine much busier than usual? Try again")
        self.progress, self.workers = dict(vision.progress), vision.ready
        pod = cluster.get(f"{pods_path(JOBS_NAMESPACE)}/{vision.pod}") if vision.pod else None
        states = (pod or {}).get("status", {}).get("initContainerStatuses", [])
        feeder = next((state for state in states if state["name"] == "sluice-feeder"), {})
        self.feeder_cores = cores(feeder.get("resources", {}).get("requests", {}).get("cpu", 0))


def neighbour_cores(feeder_cores, vision_status):
    """What the second trainer asks for, so that half of what vision needs is left to the feeder. A fast machine needs so little for vision that
    beside a trainer of NEIGHBOUR_CORES no data worker would be needed."""
    needed_cores = vision_status.get("observed", {}).get("kneeMilliCores", 0) / 1000
    return max(NEIGHBOUR_CORES, feeder_cores - needed_cores / 2) if needed_cores else NEIGHBOUR_CORES


def start(cluster, name, site, host, arguments, **figures):
    text = on_node(manifest(name, PHASE, site, arguments=arguments, **figures), host)
    cluster.apply(without_pod_share(text) if name == "vision" else text)


def settle(cluster, watcher):
    """The first and the last look of a while."""
    ends = time.monotonic() + SETTLED_SECONDS
    first = last = Look(cluster, watcher)
    while time.monotonic() < ends:
        time.sleep(1)
        last = Look(cluster, watcher)
    return first, last


def utilisation(first, last):
    spent = {name: last.progress.get(name, 0) - first.progress.get(name, 0) for name in ("compute_seconds", "wait_seconds")}
    return round(100 * spent["compute_seconds"] / max(sum(spent.values()), 1e-9), 1)


def wait_for(what, holds):
    deadline = time.monotonic() + LONGEST_SECONDS
    while not (value := holds()):
        if time.monotonic() > deadline:
            raise DemoError(f"{what}: not within {LONGEST_SECONDS} s", f"KEEP=1 keeps the cluster; kubectl -n {JOBS_NAMESPACE} describe tjob")
        time.sleep(1)
    return value


def neighbour_result(cluster):
    job = cluster.get(jobs_path(JOBS_NAMESPACE, "neighbour")) or {}
    if condition(job, "Failed"):
        raise DemoError("neighbour failed", f"kubectl -n {JOBS_NAMESPACE} describe tjob neighbour")
    pods = cluster.items(pods_path(JOBS_NAMESPACE), labelSelector="sluice.dev/job=neighbour,sluice.dev/component=trainer")
    text = cluster.get_text(f"{pods_path(JOBS_NAMESPACE)}/{pods[0]['metadata']['name']}/log", container="trainer") if pods else ""
    return next((event for event in log_events(text) if event["event"] == "result"), None)
