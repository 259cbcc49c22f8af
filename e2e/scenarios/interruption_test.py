"""Workers, operator, feeder and Prometheus go away in the middle of an epoch: the batches must not notice.

The job runs over a data set in which every image has a label of its own, so the trainer's census counts images, and
with digests over all bytes of all batches in order.
"""

import random
import time

import pytest
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE
from watch import condition

EPOCHS = 4


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


def test_a_minute_without_prometheus_changes_no_allocation(bed):
    bed.start_numbered(60)  # longer than the outage
    bed.wait_for("ready workers", lambda: bed.ready_workers() >= 2)
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))
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


def test_a_number_set_by_hand_does_not_last_in_mode_auto_and_its_author_is_told(bed):
    bed.start_numbered(60)
    bed.wait_for("ready workers", lambda: bed.ready_workers() >= 2)
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))
    planned = bed.job()["status"]["workers"]["desired"]
    bed.kubectl("-n", JOBS_NAMESPACE, "scale", "dwp/vision", "--replicas=8")  # more than the node has room for

    def told():
        events = bed.cluster.items(f"/api/v1/namespaces/{JOBS_NAMESPACE}/events", fieldSelector="reason=ReplicasOverwritten")
        return [event["message"] for event in events if event["involvedObject"]["uid"] == bed.job()["metadata"]["uid"]]

    message = bed.wait_for("the event", told, 30)[0]
    assert "somebody else had set 8" in message and "mode Recommend" in message
    assert planned < 8 and bed.wait_for("the plan's number", lambda: 2 <= bed.job()["status"]["workers"]["desired"] < 8)
