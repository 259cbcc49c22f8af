"""`kubectl sluice plan` on the real cluster: through the API server's proxy to the operator that leads."""

import json
import subprocess

import pytest
from conftest import JOBS_NAMESPACE, ROOT
from machine import delete_jobs
from watch import condition


# Holds CPU of the node from when it is bound to it; that its image does not exist is no matter.
FILLER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "filler", "namespace": "default"},
    "spec": {"containers": [{"name": "filler", "image": "localhost/none:1", "imagePullPolicy": "Never", "resources": {"requests": {"cpu": "800m"}}}]},
}


@pytest.fixture(scope="module")
def starved(bed):
    """A job that is measured and would use more CPU than the node has left."""
    bed.cluster.apply(json.dumps(FILLER))
    bed.start_numbered(60, min_workers=0)
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))
    bed.wait_for("workers", lambda: bed.ready_workers() >= 1)
    yield bed
    delete_jobs(bed.cluster)
    bed.kubectl("delete", "pod", "filler", "--grace-period=0", "--force")


def sluice(bed, *arguments):
    return subprocess.run([ROOT / "build/cli/kubectl-sluice", *arguments, "--kubeconfig", bed.machine.kubeconfig],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)  # fmt: skip


def plan_of(bed, *arguments):
    answer = sluice(bed, "plan", "-o", "json", *arguments)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


def vision_of(jobs):
    return next(job for job in jobs if (job["namespace"], job["name"]) == (JOBS_NAMESPACE, "vision"))


def test_the_plan_names_what_the_next_workers_bring_and_what_cannot_be_had(starved):
    answer = sluice(starved, "plan", "-n", JOBS_NAMESPACE)
    assert answer.returncode == 0, answer.stderr
    assert "+1 WORKER" in answer.stdout and "vision" in answer.stdout
    assert "no division of this CPU can make it more than" in answer.stdout
    page = plan_of(starved)
    share = page["utilisation"]
    assert 0 < share["ownCpuPercent"] <= share["planPercent"] <= share["anyPlanPercent"] <= 100
    assert page["cpu"]["grantedMilliCores"] <= page["cpu"]["capacityMilliCores"]
    assert [gain["workers"] for gain in vision_of(page["jobs"])["gains"]] == [1, 2, 4]


def test_more_nodes_are_given_to_the_job_that_is_short_of_cpu(starved):
    page = plan_of(starved, "--what-if", "nodes=2x4")
    with_nodes = page["whatIf"]
    assert vision_of(with_nodes["jobs"])["workers"] >= 1, page
    assert with_nodes["utilisation"]["anyPlanPercent"] >= page["utilisation"]["anyPlanPercent"]
    assert "WITH 2 more nodes of 4 cores" in sluice(starved, "plan", "--what-if", "nodes=2x4").stdout


def test_a_number_of_workers_of_ones_own(starved):
    gains = vision_of(plan_of(starved, "--what-if", "workers=-1")["jobs"])["gains"]
    assert [gain["workers"] for gain in gains] == [-1] and gains[0]["percent"] <= 0


@pytest.mark.parametrize("arguments, code, way_out", [
    (["--what-if", "cores=3"], 2, "ask workers=3"),
    (["--what-if", "nodes=2"], 2, "such as 2x32"),
    (["--operator-namespace", "default"], 1, "--operator-namespace"),
])
def test_a_wrong_question_is_told_its_way_out(starved, arguments, code, way_out):
    answer = sluice(starved, "plan", *arguments)
    assert (answer.returncode, way_out in answer.stderr) == (code, True), answer.stderr
