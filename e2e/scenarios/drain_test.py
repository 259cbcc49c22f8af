"""A node is drained while a job trains: its data workers come back on another node, and every sample is seen exactly once."""

import json

import jobs
import pytest
from conftest import JOBS_NAMESPACE, NUMBERED
from machine import SECOND_NODE, delete_jobs
from watch import condition

EPOCHS = 24


@pytest.fixture
def trainers_node(bed):
    """The node of the trainer. There is a second one beside it, for the data workers."""
    yield bed.machine.split()
    delete_jobs(bed.cluster)
    bed.machine.unite()


def rather_on(node):
    terms = [{"weight": 100, "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}}]
    return {"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}}}


def start(bed, trainers_node):
    delete_jobs(bed.cluster)
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(EPOCHS), "--step-factor", "2"]
    text = jobs.manifest("vision", jobs.PHASES[2], bed.site, arguments=arguments, min_workers=2)
    assert text.count("  dataWorkers:\n") == 1
    text = text.replace("  dataWorkers:\n", f"  dataWorkers:\n    template: {json.dumps(rather_on(SECOND_NODE))}\n")
    bed.cluster.apply(jobs.on_node(text, trainers_node))


def ready_on(bed, node):
    """How many data workers of that node are ready."""
    return sum(pod["spec"].get("nodeName") == node and bool(condition(pod, "Ready")) for pod in bed.pods("worker"))


def test_drained_workers_come_back_on_another_node_and_no_sample_is_lost_or_seen_twice(bed, trainers_node):
    start(bed, trainers_node)
    bed.wait_for("two workers on the second node", lambda: ready_on(bed, SECOND_NODE) >= 2)
    bed.wait_for("the second epoch", lambda: bed.samples() > NUMBERED)
    trainer = bed.pods("trainer")[0]["metadata"]["uid"]
    # Without --force: each pod has an owner that makes another. No disruption budget holds it up.
    bed.kubectl("drain", SECOND_NODE, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s")
    assert not [pod for pod in bed.pods("worker") if pod["spec"].get("nodeName") == SECOND_NODE]
    bed.wait_for("two workers on the first node", lambda: ready_on(bed, trainers_node) >= 2)
    assert not condition(bed.job(), "Succeeded"), "the workers came back while the job trained"
    result = bed.result()
    assert result["complete"] and result["samples"] == EPOCHS * NUMBERED, result
    assert [pod["metadata"]["uid"] for pod in bed.pods("trainer")] == [trainer]
