"""Free cores of a trainer's own host are used before data workers are started, and given back to another trainer."""

import json

import jobs
import pytest
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE
from machine import delete_jobs, set_resizing
from watch import condition

AT_START_MILLICORES = 300  # of vision's feeder, by its manifest

# Takes no GPU and computes nothing: what counts is the CPU that it asks for.
SECOND_TRAINER = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "second", "namespace": JOBS_NAMESPACE},
    "spec": {"mode": "Off", "trainer": {"template": {"spec": {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {"name": "trainer", "image": "localhost/sluice-trainer:demo", "imagePullPolicy": "Never",
             "command": ["/usr/bin/python3.11", "-c", "import time; time.sleep(600)"],
             "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
             "resources": {"requests": {"cpu": "600m"}}}]}}},
        "dataWorkers": {"resources": {"requests": {"cpu": "250m"}}}},
}  # fmt: skip


def start_without_pod_limit(bed):
    """Starts vision without the demo's limit for the whole pod: Kubernetes 1.34 resizes no container of a pod that has one."""
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", "200"]
    text = jobs.manifest("vision", jobs.PHASES[2], bed.site, digest="full", arguments=arguments)
    delete_jobs(bed.cluster)
    bed.cluster.apply(jobs.without_pod_share(text))


@pytest.fixture(scope="module")
def grown(bed):
    """A job that would use more CPU than its feeder was started with, on a node with free cores."""
    set_resizing(bed.cluster, True)
    start_without_pod_limit(bed)
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))
    yield bed
    delete_jobs(bed.cluster)
    set_resizing(bed.cluster, False)


def millicores(quantity):
    return int(quantity[:-1]) if quantity.endswith("m") else round(1000 * float(quantity))


def feeder_millicores(bed):
    """What the kubelet has put in force."""
    pods = bed.pods("trainer")
    states = pods[0]["status"].get("initContainerStatuses", []) if pods else []
    feeder = next((state for state in states if state["name"] == "sluice-feeder"), {})
    return millicores(feeder.get("resources", {}).get("requests", {}).get("cpu", "0"))


def test_the_feeder_grows_in_place_and_needs_no_data_worker(grown):
    grown.wait_for("a larger feeder alone", lambda: feeder_millicores(grown) >= 500 and grown.job()["status"]["workers"]["desired"] == 0)
    pod = grown.pods("trainer")[0]
    assert all(state["restartCount"] == 0 for state in pod["status"]["initContainerStatuses"])


@pytest.fixture
def start_second_trainer(grown):
    yield lambda: grown.cluster.apply(json.dumps(SECOND_TRAINER))
    grown.kubectl("delete", "trainingjob", "second", "-n", JOBS_NAMESPACE)


def test_another_trainer_has_the_cores_back(grown, start_second_trainer):
    before = feeder_millicores(grown)
    start_second_trainer()
    grown.wait_for("the second trainer", lambda: condition(grown.job("second"), "Ready"))
    assert feeder_millicores(grown) < before


@pytest.fixture
def stop_the_operator(grown):
    """Stops it until the test has ended, without a wait for its pod's end."""
    scale = lambda replicas: grown.kubectl("-n", RELEASE_NAMESPACE, "scale", "deployment/sluice-operator", f"--replicas={replicas}")  # noqa: E731
    yield lambda: scale(0)
    scale(1)
    grown.wait_for("the operator's return", lambda: condition(grown.job(), "MetricsAvailable"))


def test_the_first_batches_wait_for_no_resize(grown, stop_the_operator):
    """The operator, which would resize the feeder, is gone before its pod runs."""
    start_without_pod_limit(grown)
    grown.wait_for("the trainer's pod", lambda: grown.pods("trainer"))
    stop_the_operator()
    grown.wait_for("samples", lambda: grown.samples() > NUMBERED)
    assert feeder_millicores(grown) == AT_START_MILLICORES
