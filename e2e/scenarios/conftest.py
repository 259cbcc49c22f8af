"""One real cluster for all scenarios: the demo's, with the demo's data sets, images and chart, and Sluice installed.

The scenarios run one after another, in the order of their files' names; removal_test.py takes the cluster down.
"""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "e2e/demo"))

import jobs  # noqa: E402
from cluster_api import connect, jobs_path, pods_path  # noqa: E402
from console import Console  # noqa: E402
from machine import JOBS_NAMESPACE, RELEASE_NAMESPACE, LocalMachine, cache_folder, delete_jobs, tool  # noqa: E402
from watch import condition, log_events  # noqa: E402

# kubectl and helm, started hundreds of times, take a quarter less CPU time, as the cluster's own programs do (e2e/cluster/settings.sh).
os.environ["GOGC"] = "400"

NUMBERED = 768  # images of the data set in which every image is a class of its own
MANY_EPOCHS = 1000  # more than any scenario waits for


@dataclasses.dataclass
class Bed:
    """The cluster with Sluice on it, and what the scenarios do with it."""

    machine: LocalMachine
    cluster: object
    site: jobs.Site
    console: Console

    def kubectl(self, *arguments, **options):
        return self.cluster.kubectl(*arguments, **options)

    def job(self, name="vision"):
        return self.cluster.get(jobs_path(JOBS_NAMESPACE, name)) or {}

    def pods(self, component, name="vision"):
        return self.cluster.items(pods_path(JOBS_NAMESPACE), labelSelector=f"sluice.dev/job={name},sluice.dev/component={component}")

    def wait_for(self, what, holds, seconds=90):
        """Returns what `holds()` returned, once that is true."""
        deadline = time.monotonic() + seconds
        while not (value := holds()):
            assert time.monotonic() < deadline, f"{what}: not within {seconds} s; {json.dumps(self.job().get('status', {}))}"
            time.sleep(0.3)
        return value

    def events(self, name="vision"):
        """What the trainer has printed so far."""
        pods = self.pods("trainer", name)
        return log_events(self.cluster.get_text(f"{pods_path(JOBS_NAMESPACE)}/{pods[0]['metadata']['name']}/log", container="trainer")) if pods else []

    def samples(self):
        return max((event.get("samples", 0) for event in self.events() if event["event"] == "progress"), default=0)

    def result(self, seconds=110):
        """The trainer's last word, after the job has succeeded."""
        def ended():
            assert not condition(self.job(), "Failed"), self.events()
            return condition(self.job(), "Succeeded")

        self.wait_for("the job's success", ended, seconds)
        return self.events()[-1]

    def start_numbered(self, epochs, min_workers=2, further_arguments=(), digest="full"):
        """Starts vision over the data set in which a label is an image, so that its census counts images. A full digest takes a quarter of a core
        where the processor has no instructions for SHA: then the pod's own CPU feeds the trainer."""
        delete_jobs(self.cluster)
        arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(epochs), *further_arguments]
        self.cluster.apply(jobs.manifest("vision", jobs.PHASES[2], self.site, digest=digest, arguments=arguments, min_workers=min_workers))

    def ready_workers(self):
        return self.job().get("status", {}).get("workers", {}).get("ready", 0)

    def query(self, expression, at=None):
        """An instant query of the cluster's Prometheus."""
        return self._ask("query", {"query": expression, **({"time": at} if at else {})})

    def query_range(self, expression, begin, end, step_seconds=0.1):
        """Its answers from one time to another."""
        return self._ask("query_range", {"query": expression, "start": begin, "end": end, "step": step_seconds})

    def _ask(self, kind, parameters):
        with urllib.request.urlopen(f"{self.machine.prometheus()}/api/v1/{kind}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
            return json.load(answer)["data"]["result"]

    def cluster_script(self, *arguments):
        return subprocess.run([ROOT / "e2e/cluster/cluster.sh", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def make_numbered_dataset(photographs):
    """Links: 0000/image.jpg, 0001/image.jpg ... so that ImageFolder gives every image its own label."""
    folder = cache_folder() / "datasets" / f"numbered-{NUMBERED}"
    if folder.exists():
        return
    unfinished = folder.with_name(folder.name + f".{os.getpid()}")
    for number, path in enumerate(sorted(photographs.rglob("*.jpg"))[:NUMBERED]):
        (unfinished / f"{number:04d}").mkdir(parents=True)
        (unfinished / f"{number:04d}/image.jpg").symlink_to(os.path.relpath(path, folder / "0000"))
    unfinished.rename(folder)


@pytest.fixture(scope="session")
def bed():
    console = Console()
    machine = LocalMachine(console, keep=False)
    machine.make_datasets()
    make_numbered_dataset(cache_folder() / "datasets" / pathlib.Path(machine.folders["photographs"]).name)
    try:
        machine.start_cluster()
        machine.load_images()
        with connect(tool("kubectl"), machine.kubeconfig) as cluster:
            try:
                yield Bed(machine, cluster, machine.install(cluster), console)
            finally:
                if pathlib.Path(machine.kubeconfig).exists():
                    machine.uninstall(cluster)
    finally:
        machine.stop()


@pytest.fixture(scope="session")
def namespaces():
    return JOBS_NAMESPACE, RELEASE_NAMESPACE
