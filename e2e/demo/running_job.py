"""A TrainingJob on the cluster, and what can be read of it."""

import time

from cluster_api import jobs_path, pods_path
from console import DemoError
from machine import JOBS_NAMESPACE
from watch import log_events


class RunningJob:
    """REQUIRES: the job was applied."""

    def __init__(self, cluster, name):
        self._cluster, self.name = cluster, name

    def status(self):
        return (self._cluster.get(jobs_path(JOBS_NAMESPACE, self.name)) or {}).get("status", {})

    def pods(self, component):
        return self._cluster.items(pods_path(JOBS_NAMESPACE), labelSelector=f"sluice.dev/job={self.name},sluice.dev/component={component}")

    def events(self, pod):
        """What the trainer in that pod has printed so far."""
        return log_events(self._cluster.get_text(f"{pods_path(JOBS_NAMESPACE)}/{pod['metadata']['name']}/log", container="trainer"))

    def wait_for(self, what, holds, seconds):
        """Returns what `holds(status)` returned, once that is true. Raises DemoError at the deadline."""
        deadline = time.monotonic() + seconds
        while not (value := holds(self.status())):
            if time.monotonic() > deadline:
                raise DemoError(f"{self.name}: no {what} within {seconds} s", f"kubectl -n {JOBS_NAMESPACE} describe tjob {self.name}")
            time.sleep(0.5)
        return value
