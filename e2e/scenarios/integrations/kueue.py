"""Sluice beside the real Kueue: trainers wait in its queues, workers at its gates, and no controller fights the other.

`make test-integrations` runs it; `make test` does not, since Kueue takes minutes to build.
"""

import contextlib
import json
import subprocess
import time

import pytest
from conftest import JOBS_NAMESPACE, NUMBERED, ROOT
from console import DemoError
from jobs import PHASES, manifest
from machine import cache_folder, delete_jobs, run, tool
from watch import condition

KUEUE_NAMESPACE = "kueue-system"
EPOCHS = 4
MANY_EPOCHS = 1000  # more than anyone waits for
TRAINER_CPU_MILLI = 400  # of the demo's vision: the pod as a whole
WORKER_CPU_MILLI = 200
QUEUES = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
# Two pods that ask, beside those that were let through (operator/observe/snapshot_builder.cc).
WORKERS_THAT_ASK = 2


def configuration(every_job):
    return json.dumps({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "manageJobsWithoutQueueName": every_job,
        "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": JOBS_NAMESPACE}},
        "integrations": {"frameworks": ["batch/job", "pod"]},
    })  # fmt: skip


class Kueue:
    """The real one, on the bed's cluster."""

    def __init__(self, bed):
        self.bed = bed

    def load_image(self):
        archive = cache_folder() / "images/kueue.tar"
        cluster = ROOT / "e2e/cluster"
        run([str(word) for word in ("/usr/bin/python3", cluster / "image.py", "--name", "localhost/kueue:dev", "--out", archive,
                                    "--add", f"{tool('kueue')}:/manager", "--entrypoint", "/manager")], "see above", capture="all")  # fmt: skip
        run([str(cluster / "cluster.sh"), "load", str(archive)], "see above", capture="all")

    def install(self, every_job=False):
        image = "controllerManager.manager.image"
        values = {f"{image}.repository": "localhost/kueue", f"{image}.tag": "dev", f"{image}.pullPolicy": "Never",
                  "controllerManager.manager.resources.requests.cpu": "20m"}  # fmt: skip
        settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        run([tool("helm"), "upgrade", "--install", "kueue", str(cache_folder() / "charts/kueue"), "--kubeconfig", self.bed.cluster.kubeconfig,
             "--namespace", KUEUE_NAMESPACE, "--create-namespace", "--wait", "--timeout", "300s", *settings,
             "--set-literal", f"managerConfig.controllerManagerConfigYaml={configuration(every_job)}"],
            f"kubectl -n {KUEUE_NAMESPACE} describe pods", capture="all")  # fmt: skip

    def uninstall(self):
        """First the objects that Kueue itself must let go, by their finalizers."""
        for kind in ("localqueues", "clusterqueues", "resourceflavors"):
            self.bed.kubectl("delete", f"{kind}.kueue.x-k8s.io", "--all", "--all-namespaces", "--timeout=60s")
        subprocess.run([tool("helm"), "uninstall", "kueue", "--kubeconfig", self.bed.cluster.kubeconfig, "--namespace", KUEUE_NAMESPACE],
                       capture_output=True, check=False)  # fmt: skip

    def queue(self, name, millicores, priorities=False):
        """A queue of the jobs' namespace with so much CPU. `priorities`: who is more important takes it from the others."""
        resources = [{"name": "cpu", "nominalQuota": f"{millicores}m"}, {"name": "memory", "nominalQuota": "100Gi"}]
        preemption = {"withinClusterQueue": "LowerPriority"} if priorities else {}
        for kind, namespaced, spec in [
            ("ResourceFlavor", None, {}),
            ("ClusterQueue", None, {"namespaceSelector": {}, "preemption": preemption, "resourceGroups": [
                {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": resources}]}]}),
            ("LocalQueue", JOBS_NAMESPACE, {"clusterQueue": name}),
        ]:  # fmt: skip
            metadata = {"name": name, **({"namespace": namespaced} if namespaced else {})}
            self.apply({"apiVersion": QUEUES, "kind": kind, "metadata": metadata, "spec": spec})

    def apply(self, thing):
        """Kueue's webhook answers a moment after its Deployment is ready."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return self.bed.cluster.apply(json.dumps(thing))
            except DemoError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)

    def admitted(self, kind):
        """The names of the objects of that kind whose Workload has its quota."""
        workloads = self.bed.cluster.items(f"/apis/{QUEUES}/namespaces/{JOBS_NAMESPACE}/workloads")
        return {owner["name"] for workload in workloads if condition(workload, "Admitted")
                for owner in workload["metadata"].get("ownerReferences", []) if owner["kind"] == kind}  # fmt: skip


@pytest.fixture(scope="module")
def kueue(bed):
    kueue = Kueue(bed)
    kueue.load_image()
    kueue.install()
    yield kueue
    delete_jobs(bed.cluster)
    kueue.uninstall()


def queued(text, queue, workers_queue=None):
    """A manifest of the demo's whose trainer, and maybe whose workers, wait in a queue."""
    assert text.count("metadata:\n  name: vision\n") == 1 and text.count("  dataWorkers:\n") == 1
    if queue:
        text = text.replace("metadata:\n  name: vision\n", f"metadata:\n  name: vision\n  labels: {{{QUEUE_LABEL}: {queue}}}\n")
    if workers_queue:
        labels = {"metadata": {"labels": {QUEUE_LABEL: workers_queue}}}
        text = text.replace("  dataWorkers:\n", f"  dataWorkers:\n    template: {json.dumps(labels)}\n")
    return text


def start(bed, queue, workers_queue=None, min_workers=0, name="vision", epochs=EPOCHS):
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(epochs)]
    text = queued(manifest("vision", PHASES[2], bed.site, arguments=arguments, min_workers=min_workers), queue, workers_queue)
    bed.cluster.apply(text.replace("metadata:\n  name: vision\n", f"metadata:\n  name: {name}\n"))


@contextlib.contextmanager
def workers_made(bed):
    """A set that holds, at the end, the uid of every worker pod that there was, as far as a look each second saw them."""
    seen = {pod["metadata"]["uid"] for pod in bed.pods("worker")}
    watch = subprocess.Popen(
        [tool("kubectl"), "--kubeconfig", bed.cluster.kubeconfig, "-n", JOBS_NAMESPACE, "get", "pods", "-l", "sluice.dev/component=worker",
         "--watch-only", "-o", 'jsonpath={.metadata.uid}{"\\n"}'], stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)  # fmt: skip
    try:
        yield seen
    finally:
        watch.terminate()
        seen.update(line.strip() for line in watch.communicate()[0].splitlines())


def test_a_trainer_without_quota_waits_in_its_queue_and_is_not_touched(bed, kueue):
    delete_jobs(bed.cluster)
    kueue.queue("trainers", 0)
    start(bed, "trainers")
    ready = bed.wait_for("the queue", lambda: condition_of(bed, "Ready", "Queued"))
    assert "Kueue" in ready["message"]
    job = f"/apis/batch/v1/namespaces/{JOBS_NAMESPACE}/jobs/vision"
    before = bed.cluster.get(job)
    assert before["spec"]["suspend"] and before["metadata"]["labels"][QUEUE_LABEL] == "trainers"
    time.sleep(15)  # five decisions
    assert bed.cluster.get(job)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert not bed.pods("worker")
    kueue.queue("trainers", TRAINER_CPU_MILLI)
    assert_complete(bed.result())
    assert kueue.admitted("Job") in ({"vision"}, set())  # the Workload of a Job that is over may be gone


def test_workers_without_quota_are_a_bound_and_no_storm(bed, kueue):
    delete_jobs(bed.cluster)
    kueue.queue("trainers", TRAINER_CPU_MILLI)
    kueue.queue("workers", WORKER_CPU_MILLI)
    with workers_made(bed) as made:
        start(bed, "trainers", "workers", min_workers=5, epochs=MANY_EPOCHS)
        blocked = bed.wait_for("the gate", lambda: condition_of(bed, "WorkersBlocked", "WaitingForQuota"))
        assert "kueue.x-k8s.io/admission" in blocked["message"]
        bed.wait_for("fewer that ask", lambda: len(bed.pods("worker")) == 1 + WORKERS_THAT_ASK, 110)
        assert len(kueue.admitted("Pod")) == 1
        # More quota reaches the workers that ask.
        kueue.queue("workers", (1 + WORKERS_THAT_ASK) * WORKER_CPU_MILLI)
        bed.wait_for("more workers", lambda: len(kueue.admitted("Pod")) == 1 + WORKERS_THAT_ASK, 110)
    assert len(made) <= 5 + 2 * 5, made  # at first, and after the quota has grown


def test_a_trainer_that_comes_takes_the_quota_of_workers_first(bed, kueue):
    delete_jobs(bed.cluster)
    kueue.queue("shared", TRAINER_CPU_MILLI + 2 * WORKER_CPU_MILLI, priorities=True)
    start(bed, "shared", "shared", min_workers=2, epochs=MANY_EPOCHS)
    bed.wait_for("workers", lambda: bed.ready_workers() == 2)
    trainer = bed.pods("trainer")[0]["metadata"]["uid"]
    start(bed, "shared", "shared", name="speech")
    bed.wait_for("the second trainer", lambda: "speech" in kueue.admitted("Job"))
    assert not kueue.admitted("Pod")
    bed.wait_for("the second job's success", lambda: condition(bed.job("speech"), "Succeeded"), 200)
    # The first has trained on, in the same pod.
    assert bed.pods("trainer")[0]["metadata"]["uid"] == trainer
    samples = bed.samples()
    bed.wait_for("more samples", lambda: bed.samples() > samples)


def test_a_job_without_a_queue_waits_where_kueue_manages_every_job(bed, kueue):
    delete_jobs(bed.cluster)
    kueue.install(every_job=True)
    start(bed, None)
    bed.wait_for("the queue", lambda: condition_of(bed, "Ready", "Queued"))
    # The queue that Kueue takes for jobs that name none.
    kueue.queue("default", TRAINER_CPU_MILLI)
    delete_jobs(bed.cluster)
    start(bed, None)
    assert_complete(bed.result())


def condition_of(bed, kind, reason):
    """The condition, where it has that reason."""
    conditions = bed.job().get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind and each["reason"] == reason), None)


def assert_complete(result):
    assert result["complete"] and result["samples"] == EPOCHS * NUMBERED, result
