"""Sluice beside the real Kueue: trainers wait in its queues, workers at its gates, and no controller fights the other.

`make test-integrations` runs it; `make test` does not, since Kueue takes minutes to build.
"""

import contextlib
import subprocess
import time

import pytest
from conftest import JOBS_NAMESPACE, MANY_EPOCHS, NUMBERED
from jobs import PHASES, manifest
from kueue_install import QUEUE_LABEL, Kueue, queued
from machine import delete_jobs, tool
from watch import condition

EPOCHS = 4
TRAINER_CPU_MILLI = 400  # of the demo's vision: the pod as a whole
WORKER_CPU_MILLI = 200
# Two pods that ask, beside those that were let through (operator/observe/snapshot_builder.cc).
WORKERS_THAT_ASK = 2


@pytest.fixture(scope="module")
def kueue(bed):
    kueue = Kueue(bed.cluster)
    kueue.load_image()
    kueue.install()
    yield kueue
    delete_jobs(bed.cluster)
    kueue.uninstall()


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
