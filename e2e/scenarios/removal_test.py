"""The last scenarios: Sluice goes while a job trains, and what was started is gone without a trace."""

import subprocess

import pytest
from conftest import NUMBERED, RELEASE_NAMESPACE, ROOT
from gang_test import start, steps
from machine import RELEASE, delete_jobs, tool


def test_removing_sluice_leaves_a_trainer_of_two_pods_and_its_worker_at_work(bed):
    start(bed, ["--data", f"/data/numbered-{NUMBERED}", "--epochs", "400"], min_workers=1, max_workers=1)
    bed.wait_for("steps of both ranks, and a worker", lambda: len(steps(bed)) == 2 and bed.ready_workers() == 1, 110)
    pods = lambda: {pod["metadata"]["uid"] for component in ("trainer", "worker") for pod in bed.pods(component)}  # noqa: E731
    before = pods()
    done = subprocess.run([tool("helm"), "uninstall", RELEASE, "--kubeconfig", bed.cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE],
                          cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    bed.wait_for("the end of the operator", lambda: not bed.cluster.items(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods"))
    last = {rank: max(found)[0] for rank, found in steps(bed).items()}

    def two_epochs_on():
        found = steps(bed)
        return len(found) == 2 and all(max(found[rank])[0] >= last[rank] + 2 for rank in found)

    bed.wait_for("two more epochs of both ranks", two_epochs_on, 110)
    assert len(before) == 3 and pods() == before


def test_deleted_jobs_leave_no_object(bed, namespaces):
    delete_jobs(bed.cluster)
    for path in (
        "/apis/sluice.dev/v1alpha1/namespaces/{}/dataworkerpools",
        "/api/v1/namespaces/{}/services",
        "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
        "/apis/batch/v1/namespaces/{}/jobs",
    ):
        bed.wait_for(path, lambda path=path: not bed.cluster.items(path.format(namespaces[0])), 30)
    secrets = bed.cluster.items(f"/api/v1/namespaces/{namespaces[0]}/secrets")
    assert [secret["metadata"]["name"] for secret in secrets if secret["metadata"]["name"].endswith("-sluice-tls")] == []


def test_down_leaves_nothing_on_the_machine(bed):
    if not bed.machine.started_cluster:
        pytest.skip("the cluster was up before the tests, and stays")
    assert bed.cluster_script("down").returncode == 0
    left = bed.cluster_script("leftovers")
    assert left.returncode == 0, left.stdout + left.stderr
