"""Follows one phase: looks at the cluster every second, keeps what the report needs, and draws the live table."""

import dataclasses
import datetime
import json
import re
import time

from console import DemoError
from cluster_api import cpu_use, jobs_path, pods_path

LOOK_SECONDS = 1.0
FIRST_REMOTE = re.compile(r"^sluice_feeder_first_remote_batch_timestamp_seconds(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


@dataclasses.dataclass
class JobRecord:
    """What one job did in one phase. Times are Unix seconds; None: not known (yet)."""

    name: str
    applied: float
    pod: str | None = None
    pod_started: float | None = None
    finished: float | None = None
    first_remote: float | None = None
    progress: dict = dataclasses.field(default_factory=dict)  # the last progress line
    status: dict = dataclasses.field(default_factory=dict)
    result: dict | None = None
    decisions: list = dataclasses.field(default_factory=list)  # (seconds since applied, from, to, reason)
    most_desired: int = 0
    most_ready: int = 0
    bottlenecks: dict = dataclasses.field(default_factory=dict)  # as the operator named them -> seconds since applied

    @property
    def desired(self):
        return self.status.get("workers", {}).get("desired", 0)

    @property
    def ready(self):
        return self.status.get("workers", {}).get("ready", 0)


@dataclasses.dataclass
class CpuRecord:
    """Cores over the phase, from one look a second."""

    most_requested: float = 0.0
    least_spare: float = float("inf")
    most_for_workers: float = 0.0
    allocatable: float = 0.0
    looks: int = 0

    def add(self, requested, allocatable, workers):
        self.looks += 1
        self.allocatable = allocatable
        self.most_requested = max(self.most_requested, requested)
        self.most_for_workers = max(self.most_for_workers, workers)
        self.least_spare = min(self.least_spare, allocatable - requested)


def condition(job, kind):
    """True, False or None (unknown) for a condition of an API object."""
    for entry in job.get("status", {}).get("conditions", []):
        if entry["type"] == kind:
            return {"True": True, "False": False}.get(entry["status"])
    return None


def seconds_of(timestamp):
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp() if timestamp else None


def log_events(text):
    """The JSON lines of a trainer's log; other programs may have written between them."""
    events = []
    for line in (text or "").split("\n"):
        if line.startswith("{"):
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
    return events


class Watcher:
    """Follows the jobs of one phase until all have ended. Not thread-safe."""

    def __init__(self, cluster, namespace, console, title, names, applied, wall=time.time):
        self._cluster, self._namespace, self._console, self._title, self._wall = cluster, namespace, console, title, wall
        self.jobs = {name: JobRecord(name, applied) for name in names}
        self.cpu = CpuRecord()
        self.started = applied
        self._warnings_seen = set()

    def follow(self, timeout_seconds):
        """REQUIRES: the jobs were applied. Raises DemoError when one fails or the time is over."""
        deadline = time.monotonic() + timeout_seconds
        while any(job.result is None for job in self.jobs.values()):
            if time.monotonic() > deadline:
                waiting = ", ".join(name for name, job in self.jobs.items() if job.result is None)
                raise DemoError(f"{waiting} did not end within {timeout_seconds:.0f} s",
                                f"KEEP=1 keeps the cluster; kubectl -n {self._namespace} describe tjob")  # fmt: skip
            self.look()
            time.sleep(LOOK_SECONDS)
        self._console.block(self._table())
        self._console.keep_block()

    def look(self):
        """One look at everything."""
        self.cpu.add(*cpu_use(self._cluster))
        pods = self._cluster.items(pods_path(self._namespace), labelSelector="sluice.dev/component=trainer")
        found = self._cluster.items(jobs_path(self._namespace))
        for item in found:
            job = self.jobs.get(item["metadata"]["name"])
            if job and job.result is None:
                self._note_pod(job, pods)
                self._note_decision(job, item.get("status", {}))
                self._note_progress(job)
                self._note_end(job, item)
        self._note_warnings({item["metadata"]["uid"] for item in found})
        self._console.block(self._table())

    def _note_pod(self, job, pods):
        for pod in pods:
            if pod["metadata"]["labels"].get("sluice.dev/job") == job.name:
                job.pod = pod["metadata"]["name"]
                job.pod_started = seconds_of(pod["status"].get("startTime"))

    def _note_decision(self, job, status):
        before = job.desired
        job.status = status
        if job.desired != before:
            reason = status.get("explanation", "")
            job.decisions.append((round(self._wall() - job.applied, 1), before, job.desired, reason))
            self._console.say(f"{job.name}: {before} -> {job.desired} workers: {reason}")
        if condition({"status": status}, "DataBound") is not None:
            job.bottlenecks.setdefault(status["bottleneck"], round(self._wall() - job.applied, 1))
        job.most_desired = max(job.most_desired, job.desired)
        job.most_ready = max(job.most_ready, job.ready)

    def _note_progress(self, job):
        if not job.pod:
            return
        path = f"{pods_path(self._namespace)}/{job.pod}"
        events = log_events(self._cluster.get_text(path + "/log", container="trainer", tailLines=2))
        job.progress = next((event for event in reversed(events) if "samples_per_second" in event), job.progress)
        # A feeder that was never given a worker shows 0.
        if job.first_remote is None and job.most_ready > 0:
            found = FIRST_REMOTE.search(self._cluster.get_text(path + ":9464/proxy/metrics") or "")
            if found and float(found.group(1)) > 0:
                job.first_remote = float(found.group(1))
                self._console.say(f"{job.name}: first batch of a remote worker {job.first_remote - job.applied:.1f} s after kubectl apply")

    def _note_end(self, job, item):
        if condition(item, "Failed"):
            log = self._cluster.get_text(f"{pods_path(self._namespace)}/{job.pod}/log", container="trainer", tailLines=20) if job.pod else ""
            raise DemoError(f"{job.name} failed. The end of its log:\n{log}", "KEEP=1 keeps the cluster for a look")
        if not condition(item, "Succeeded") or not job.pod:
            return
        path = f"{pods_path(self._namespace)}/{job.pod}"
        job.result = next((event for event in log_events(self._cluster.get_text(path + "/log", container="trainer")) if event["event"] == "result"), None)
        if job.result is None:
            raise DemoError(f"{job.name} succeeded but its log has no result", f"kubectl -n {self._namespace} logs {job.pod} -c trainer")
        job.finished = job.result["time"]
        job.progress = job.result

    def _note_warnings(self, uids):
        """Events outlive their objects: those of the last phase's jobs, which had the same names, are not told again."""
        for event in self._cluster.items(f"/api/v1/namespaces/{self._namespace}/events", fieldSelector="type=Warning"):
            about = event["involvedObject"]
            key = (about.get("uid"), event["reason"])
            if about.get("uid") in uids and key not in self._warnings_seen:
                self._warnings_seen.add(key)
                self._console.say(f"{about.get('name')}: warning {event['reason']}: {event.get('message', '')}")

    def _table(self):
        return table(self._title, self._wall() - self.started, self.cpu, self.jobs.values(), self._wall())


def table(title, elapsed, cpu, jobs, now):
    """The live block, as lines."""
    lines = [
        f"  {title}   {elapsed:.0f} s   CPU requested {cpu.most_requested:.2f} of {cpu.allocatable:.2f} cores at most",
        f"  {'job':8} {'time':>6} {'epoch':>5} {'samples':>8} {'per s':>6} {'demand':>6} {'busy':>5} {'wait':>5} "
        f"{'workers':>8}  bottleneck",
    ]
    for job in jobs:
        observed = job.status.get("observed", {})
        took = (job.finished or now) - job.applied
        busy = job.progress.get("utilisation_percent")
        rate = job.progress.get("samples_per_second") if job.result else observed.get("samplesPerSecond", job.progress.get("samples_per_second"))
        lines.append(
            f"  {job.name:8} {took:5.0f}s {shown(job.progress.get('epoch')):>5} {shown(job.progress.get('samples')):>8} "
            f"{shown(rate):>6} {shown(observed.get('demandSamplesPerSecond')):>6} {shown(busy, '%'):>5} "
            f"{shown(observed.get('dataWaitPercent'), '%'):>5} {f'{job.ready}/{job.desired}':>8}  "
            + ("done" if job.result else job.status.get("bottleneck", ""))
        )
    return lines


def shown(value, unit=""):
    return "-" if value is None else f"{value:.0f}{unit}"
