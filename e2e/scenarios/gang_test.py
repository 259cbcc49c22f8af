"""A trainer of two ranks in two pods: they meet, one is killed, both start again, and no batch differs; data workers feed both."""

import collections
import json

import pytest
from cluster_api import pods_path
from conftest import JOBS_NAMESPACE, NUMBERED
from jobs import PHASES, in_two_pods, manifest
from machine import delete_jobs
from watch import condition, log_events

EPOCHS = 2

# Every figure of the quota makes the API server refuse pods with a container that does not say it. The LimitRange says it
# for containers whose owner did not. Its least values are more than what the copying container asks for by itself.
COUNTED = {"requests.cpu": "8", "limits.cpu": "16", "requests.memory": "16Gi", "limits.memory": "32Gi", "pods": "30"}
QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"}, "spec": {"hard": COUNTED}}
LEAST = {"cpu": "60m", "memory": "96Mi"}
BOUNDS = {"type": "Container", "min": LEAST, "defaultRequest": LEAST, "default": {"cpu": "400m", "memory": "2Gi"}}
LIMIT_RANGE = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "team"}, "spec": {"limits": [BOUNDS]}}


def start(bed, arguments, min_workers, max_workers=8):
    delete_jobs(bed.cluster)
    text = in_two_pods(manifest("vision", PHASES[2], bed.site, arguments=arguments, min_workers=min_workers))
    assert text.count("    max: 8\n") == 1
    bed.cluster.apply(text.replace("    max: 8\n", f"    max: {max_workers}\n"))


@pytest.fixture
def quota(bed):
    """A function that returns what the quota counts at the moment."""
    path = f"/api/v1/namespaces/{JOBS_NAMESPACE}/resourcequotas/team"
    for each in (QUOTA, LIMIT_RANGE):
        bed.kubectl("-n", JOBS_NAMESPACE, "apply", "-f", "-", input_text=json.dumps(each))
    bed.wait_for("the quota", lambda: bed.cluster.get(path).get("status", {}).get("used"), 30)
    yield lambda: bed.cluster.get(path)["status"]["used"]
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "resourcequota/team", "limitrange/team")


def events_of(bed, pod):
    return log_events(bed.cluster.get_text(f"{pods_path(JOBS_NAMESPACE)}/{pod['metadata']['name']}/log", container="trainer"))


def rank_of(pod):
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def steps(bed):
    """By rank, the digest after every step so far, of the pods that run."""
    found = collections.defaultdict(dict)
    for pod in bed.pods("trainer"):
        running = pod["status"].get("phase") in ("Running", "Succeeded") and "deletionTimestamp" not in pod["metadata"]
        for event in events_of(bed, pod) if running else []:
            if event["event"] == "step":
                assert event["rank"] == rank_of(pod) and event["together"] == 2
                found[event["rank"]][event["epoch"], event["step"]] = event["digest"]
    return found


def half_way(bed):
    found = steps(bed)
    return found if len(found) == 2 and any(epoch == 1 for epoch, _ in found[1]) else None


def test_a_killed_rank_takes_all_with_it_and_the_batches_are_the_same_beside_a_quota(bed, quota):
    start(bed, ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(EPOCHS)], min_workers=2)
    bed.wait_for("both ranks and both workers, all of them counted", lambda: int(quota()["pods"]) >= 4, 110)
    before = bed.wait_for("the second epoch of both ranks", lambda: half_way(bed), 110)
    pods = {pod["metadata"]["uid"]: pod for pod in bed.pods("trainer")}
    victim = next(pod for pod in pods.values() if rank_of(pod) == 1)
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "pod", victim["metadata"]["name"], "--grace-period=0", "--force")

    bed.wait_for("the restart", lambda: bed.job()["status"].get("restarts") == 1, 60)
    bed.wait_for("the job's success", lambda: condition(bed.job(), "Succeeded"), 150)
    assert not condition(bed.job(), "Failed") and bed.job()["status"]["restarts"] == 1
    after = steps(bed)
    assert not pods.keys() & {pod["metadata"]["uid"] for pod in bed.pods("trainer")}, "both ranks are new"
    for rank in (0, 1):
        assert before[rank] and before[rank].items() <= after[rank].items()
        assert len(after[rank]) == EPOCHS * NUMBERED // 2 // 32
    seen = collections.Counter(label for pod in bed.pods("trainer") for label in events_of(bed, pod)[-1]["labels"])
    assert seen == {label: EPOCHS for label in range(NUMBERED)}, "every image once an epoch, over both ranks"
    told = bed.cluster.items(f"/api/v1/namespaces/{JOBS_NAMESPACE}/events", fieldSelector="reason=TrainerRestarted")
    assert [event["message"] for event in told if event["involvedObject"]["uid"] == bed.job()["metadata"]["uid"]] == [
        "a trainer pod failed: all 2 are started again, restart 1 of at most 2"]  # fmt: skip


def last_step(bed):
    """Of rank 0, whose steps are those of both; {} before the first."""
    pods = [pod for pod in bed.pods("trainer") if rank_of(pod) == 0]
    return next((event for event in reversed(events_of(bed, pods[0])) if event["event"] == "step"), {}) if pods else {}


def utilisation(before, after):
    compute, wait = (after[part] - before[part] for part in ("compute", "wait"))
    return compute / (compute + wait)


def after_training(bed, before, seconds):
    """A step that is at least so many seconds of computing and waiting later."""
    spent = lambda step: step.get("compute", 0) + step.get("wait", 0)  # noqa: E731
    return bed.wait_for(f"{seconds} s of training", lambda: (step := last_step(bed)) and spent(step) >= spent(before) + seconds and step, 60)


def test_two_starved_pods_are_given_workers_which_both_use(bed):
    arguments = ["--data", bed.site.folders["photographs"], "--epochs", "200", "--step-factor", "1", "--digest", "sampled"]
    start(bed, arguments, min_workers=0, max_workers=0)
    first = bed.wait_for("the first step", lambda: last_step(bed), 60)
    alone = after_training(bed, first, 4)
    bed.kubectl("-n", JOBS_NAMESPACE, "patch", "trainingjob", "vision", "--type=merge", "-p", json.dumps({"spec": {"dataWorkers": {"max": 8}}}))
    bed.wait_for("workers", lambda: bed.ready_workers() >= 1)
    begun = after_training(bed, last_step(bed), 4)
    helped = after_training(bed, begun, 6)
    before, after = utilisation(first, alone), utilisation(begun, helped)
    print(f"utilisation of two pods: {before:.3f} alone, {after:.3f} with {bed.ready_workers()} workers")
    delete_jobs(bed.cluster)
    assert after > 1.1 * before  # about 1.5 times on two busy cores
