"""Workers, operator, feeder and Prometheus go away in the middle of an epoch: the batches must not notice.

The job runs over a data set in which every image has a label of its own, so the trainer's census counts images. Digests cover all bytes of all
batches in order.
"""

import json
import random
import time

import jobs
import pytest
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE
from machine import delete_jobs
from watch import condition

EPOCHS = 5  # before what happens, with it, and after it; two more for workers of a busy machine to be ready in


@pytest.fixture(scope="module")
def undisturbed(bed):
    """What the job's batches are when nothing happens."""
    bed.start_numbered(EPOCHS)
    return check_complete(bed.result())


def check_complete(result):
    assert result["complete"] and result["samples"] == EPOCHS * NUMBERED, result
    return [epoch["digest"] for epoch in result["epochs"]]


def start_and_reach_the_middle(bed):
    """Returns when the second epoch is under way and remote workers take part."""
    bed.start_numbered(EPOCHS)
    bed.wait_for("ready workers", lambda: bed.ready_workers() >= 2)
    bed.wait_for("the second epoch", lambda: bed.samples() > NUMBERED)


def test_deleted_worker(bed, undisturbed):
    start_and_reach_the_middle(bed)
    victim = random.choice(bed.pods("worker"))["metadata"]["name"]
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "pod", victim, "--grace-period=0", "--force")
    assert check_complete(bed.result()) == undisturbed


def test_all_workers_deleted_at_once(bed, undisturbed):
    start_and_reach_the_middle(bed)
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "pods", "-l", "sluice.dev/component=worker", "--grace-period=0", "--force")
    assert check_complete(bed.result()) == undisturbed


def test_restarted_operator(bed, undisturbed):
    start_and_reach_the_middle(bed)
    before = {pod["metadata"]["uid"] for pod in bed.pods("worker")}
    bed.kubectl("-n", RELEASE_NAMESPACE, "delete", "pods", "-l", "app.kubernetes.io/component=operator", "--wait=false")
    assert check_complete(bed.result()) == undisturbed
    operator = bed.cluster.items(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods", labelSelector="app.kubernetes.io/component=operator")
    assert operator and before, "the operator is back, and there were workers to lose"


def test_killed_feeder(bed, undisturbed):
    start_and_reach_the_middle(bed)
    pod = bed.pods("trainer")[0]
    feeder = next(status for status in pod["status"]["initContainerStatuses"] if status["name"] == "sluice-feeder")
    container = feeder["containerID"].rpartition("/")[2]
    killed = bed.cluster_script("exec", "ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", container)
    assert killed.returncode == 0, killed.stderr
    assert check_complete(bed.result()) == undisturbed
    after = next(status for status in bed.pods("trainer")[0]["status"]["initContainerStatuses"] if status["name"] == "sluice-feeder")
    assert after["restartCount"] == feeder["restartCount"] + 1


@pytest.fixture(scope="module")
def fed_job(bed):
    """A job with two workers at least, measured, that outlasts the tests that use it."""
    bed.start_numbered(400)
    bed.wait_for("ready workers", lambda: bed.ready_workers() >= 2)
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))


@pytest.mark.usefixtures("fed_job")
def test_a_minute_without_prometheus_changes_no_allocation(bed):
    assert bed.cluster_script("stop", "prometheus").returncode == 0
    try:
        stopped = time.monotonic()
        bed.wait_for("MetricsAvailable=False", lambda: condition(bed.job(), "MetricsAvailable") is False, 45)
        held = bed.job()["status"]["workers"]["desired"]
        assert held >= 2
        while time.monotonic() < stopped + 60:
            assert bed.job()["status"]["workers"]["desired"] == held
            time.sleep(1)
        said = next(entry for entry in bed.job()["status"]["conditions"] if entry["type"] == "MetricsAvailable")
        assert said["reason"] and said["message"]
        assert not condition(bed.job(), "Failed")
    finally:
        bed.cluster_script("start", "prometheus")
    bed.wait_for("MetricsAvailable=True again", lambda: condition(bed.job(), "MetricsAvailable"), 45)


@pytest.mark.usefixtures("fed_job")
def test_a_number_set_by_hand_does_not_last_in_mode_auto_and_its_author_is_told(bed):
    planned = bed.job()["status"]["workers"]["desired"]
    bed.kubectl("-n", JOBS_NAMESPACE, "scale", "dwp/vision", "--replicas=8")  # more than the node has room for

    def told():
        events = bed.cluster.items(f"/api/v1/namespaces/{JOBS_NAMESPACE}/events", fieldSelector="reason=ReplicasOverwritten")
        return [event["message"] for event in events if event["involvedObject"]["uid"] == bed.job()["metadata"]["uid"]]

    message = bed.wait_for("the event", told, 30)[0]
    assert "it had been set to 8" in message and "mode Recommend" in message
    assert planned < 8 and bed.wait_for("the plan's number", lambda: 2 <= bed.job()["status"]["workers"]["desired"] < 8)


# Of a priority above the workers' that takes no pod's place: room comes from Sluice alone.
PATIENT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "patient"}, "value": 0, "preemptionPolicy": "Never"}
STRANGER = "/api/v1/namespaces/default/pods/stranger"


def millicores_on_the_node(bed):
    """What of its CPU is free, and what data workers hold."""
    node = bed.cluster.items("/api/v1/nodes")[0]
    running = bed.cluster.items("/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    requests = {pod["metadata"]["uid"]: millicores_of_pod(pod) for pod in running if pod["spec"].get("nodeName")}
    workers = [pod["metadata"]["uid"] for pod in running if pod["metadata"].get("labels", {}).get("sluice.dev/component") == "worker"]
    return millicores(node["status"]["allocatable"]["cpu"]) - sum(requests.values()), sum(requests.get(uid, 0) for uid in workers)


def millicores(quantity):
    return int(quantity[:-1]) if quantity.endswith("m") else int(float(quantity) * 1000)


def millicores_of_pod(pod):
    of = lambda part: millicores(part.get("resources", {}).get("requests", {}).get("cpu", "0"))  # noqa: E731
    sidecars = [each for each in pod["spec"].get("initContainers", []) if each.get("restartPolicy") == "Always"]
    return of(pod["spec"]) or sum(map(of, pod["spec"]["containers"] + sidecars))


@pytest.mark.usefixtures("fed_job")
def test_workers_leave_to_a_strangers_pod_that_waits_and_come_back_after_it(bed):
    """It asks for the node's free CPU and for that of all workers but one, although the job asks for two at least."""
    wanted = lambda: bed.job()["status"]["workers"]["desired"]  # noqa: E731
    before = bed.wait_for("all workers that are wanted", lambda: (ready := bed.ready_workers()) >= 2 and ready == wanted() == len(bed.pods("worker")) and ready)
    free, held = millicores_on_the_node(bed)
    container = {"name": "main", "image": bed.site.image, "imagePullPolicy": "Never", "command": ["sleep", "600"],
                 "resources": {"requests": {"cpu": f"{free + held - held // before}m"}}}  # fmt: skip
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": "default"},
           "spec": {"priorityClassName": "patient", "terminationGracePeriodSeconds": 0, "containers": [container]}}  # fmt: skip
    for each in (PATIENT, pod):
        bed.kubectl("apply", "-f", "-", input_text=json.dumps(each))
    try:
        bed.wait_for("the stranger's start", lambda: bed.cluster.get(STRANGER)["status"]["phase"] == "Running", 60)
        bed.wait_for("the count of who is left", lambda: bed.ready_workers() <= 1, 30)
        assert not condition(bed.job(), "Failed")
    finally:
        bed.kubectl("delete", "-n", "default", "pod/stranger", "priorityclass/patient")
    bed.wait_for("the workers' return", lambda: bed.ready_workers() >= 2, 60)


# A rule of the data workers: each on a node of its own.
APART = {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"sluice.dev/job": "vision", "sluice.dev/component": "worker"}}}]}}}}  # fmt: skip


def test_a_worker_that_anti_affinity_keeps_from_every_node_is_not_started(bed):
    """One node, and a job that asks for two workers at least."""
    delete_jobs(bed.cluster)
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", "60"]
    text = jobs.manifest("vision", jobs.PHASES[2], bed.site, arguments=arguments, min_workers=2)
    assert text.count("  dataWorkers:\n") == 1
    bed.cluster.apply(text.replace("  dataWorkers:\n", f"  dataWorkers:\n    template: {json.dumps(APART)}\n"))
    bed.wait_for("the rule as the reason", lambda: "Anti-affinity" in bed.job().get("status", {}).get("explanation", ""))
    bed.wait_for("the first worker", lambda: bed.ready_workers() == 1)
    assert bed.job()["status"]["workers"]["desired"] == len(bed.pods("worker")) == 1
