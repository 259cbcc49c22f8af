"""`kubectl sluice plan` on the real cluster, through the API server's proxy to the operator that leads; and what else a running job shows."""

import json
import os
import subprocess
import tarfile

import pytest
from chart_queries import chart_queries
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE, ROOT
from console import DemoError
from facts_page import ASKED_SECONDS, Page, is_between, published, window_of
from machine import delete_jobs, tool
from watch import condition


# More than the script trains for, so that the end is not near: a job that has a minute left is given no worker.
ANNOUNCED_EPOCHS = 1000

# Holds CPU of the node from when it is bound to it; that its image does not exist is no matter. It leaves room for one worker:
# with two, that use idle CPU beyond their requests, a fast machine had fed the job and more nodes brought it nothing.
FILLER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "filler", "namespace": "default"},
    "spec": {"containers": [{"name": "filler", "image": "localhost/none:1", "imagePullPolicy": "Never", "resources": {"requests": {"cpu": "1000m"}}}]},
}


@pytest.fixture(scope="module")
def starved(bed):
    """A job that is measured and would use more CPU than the node has left."""
    bed.cluster.apply(json.dumps(FILLER))
    bed.start_numbered(60, min_workers=0, further_arguments=["--announce", str(ANNOUNCED_EPOCHS)], digest="sampled")
    bed.wait_for("metrics", lambda: condition(bed.job(), "MetricsAvailable"))
    bed.wait_for("workers", lambda: bed.ready_workers() >= 1)
    bed.wait_for("the end of probing", lambda: is_measured(plan_of(bed)))
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


def is_measured(page):
    """Metrics alone do not measure a job: until its first worker has brought something, the plan says that it tries one."""
    return "utilisation" in page and vision_of(page["jobs"])["reason"] != "Probing"


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


def test_without_a_token_the_plan_stays_closed(starved):
    operators = f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods"
    pod = starved.cluster.items(operators, labelSelector="app.kubernetes.io/component=operator")[0]["metadata"]["name"]
    with pytest.raises(DemoError, match="must be logged in"):
        starved.kubectl("get", "--raw", f"{operators}/{pod}:8082/proxy/plan")
    with pytest.raises(DemoError, match="could not find"):
        starved.kubectl("get", "--raw", f"{operators}/{pod}:8080/proxy/plan")


@pytest.mark.parametrize("arguments, code, way_out", [
    (["--what-if", "cores=3"], 2, "ask workers=3"),
    (["--what-if", "nodes=2"], 2, "such as 2x32"),
    (["--operator-namespace", "default"], 1, "--operator-namespace"),
])
def test_a_wrong_question_is_told_its_way_out(starved, arguments, code, way_out):
    answer = sluice(starved, "plan", *arguments)
    assert (answer.returncode, way_out in answer.stderr) == (code, True), answer.stderr


def test_the_scheduler_reckons_with_the_end_that_the_script_has_announced(starved):
    def figure(expression):
        answers = starved.query(expression)
        return float(answers[0]["value"][1]) if answers else None

    estimate = 'sluice_job_estimate{training_job="vision", quantity="%s"}'
    samples = starved.wait_for("the announcement", lambda: figure('sum(sluice_trainer_remaining_samples{training_job="vision"})'))
    assert (ANNOUNCED_EPOCHS - 60) * NUMBERED <= samples < ANNOUNCED_EPOCHS * NUMBERED
    seconds = starved.wait_for("the remaining time", lambda: figure(estimate % "remaining_seconds"))
    assert seconds == pytest.approx(samples / figure(estimate % "demand_samples_per_second"), rel=0.5)


@pytest.mark.parametrize("field, query, placement", [
    ("Measurement::workers_at_work", "workersAtWork", {}),
    ("Measurement::remote", "workerSamplesPerSecond", {"placement": "remote"}),
])  # fmt: skip
def test_the_work_of_data_workers_is_prometheus_own_answer(starved, field, query, placement):
    seen = starved.wait_for("a window of a worker's work", lambda: (page := Page(starved)).measurement().get("workersAtWork", 0) >= 1 and page)
    figure = published(seen.measurement(), field)
    answers = seen.answers(chart_queries(window_of(seen))[query], -ASKED_SECONDS, 0.2, training_job="vision", **placement)
    assert is_between(figure["samplesPerSecond"] if placement else figure, answers), answers


def test_the_jobs_workers_have_a_network_policy(starved):
    """As the API server keeps it. The cluster's network enforces none, so that connections are not tried here."""
    policy = starved.cluster.get(f"/apis/networking.k8s.io/v1/namespaces/{JOBS_NAMESPACE}/networkpolicies/vision-workers")
    data, seen_by_all = policy["spec"]["ingress"]
    assert data["from"] == [{"podSelector": {"matchLabels": {"sluice.dev/component": "trainer", "sluice.dev/job": "vision"}}}]
    assert [port["port"] for port in data["ports"]] == [7471]
    assert "from" not in seen_by_all and [port["port"] for port in seen_by_all["ports"]] == [9464, 9465]
    assert policy["metadata"]["ownerReferences"][0]["kind"] == "TrainingJob"
    assert policy["metadata"]["generation"] == 1, "it was written once"


@pytest.mark.parametrize("words, choices, directive", [
    (["pl"], ["plan"], ":4"),
    (["top", "--w"], ["--watch"], ":4"),
    (["why", "-n", JOBS_NAMESPACE, "v"], ["vision"], ":4"),
    (["why", "-n", JOBS_NAMESPACE[:-1]], [JOBS_NAMESPACE], ":4"),
    (["top", "--output="], ["text", "json"], ":4"),
    (["bundle", "-o", ""], [], ":0"),
])  # fmt: skip
def test_kubectl_completes_commands_flags_and_what_the_cluster_has(starved, words, choices, directive):
    """As the shells ask it, whichever they are."""
    programs = f"{ROOT / 'build/cli'}:{ROOT / 'cli'}:{os.environ['PATH']}"
    done = subprocess.run([tool("kubectl"), "__complete", "sluice", *words], env={**os.environ, "PATH": programs, "KUBECONFIG": starved.machine.kubeconfig},
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)  # fmt: skip
    lines = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert lines == [*choices, directive], done.stderr


def test_a_bundle_has_the_operators_log_and_the_jobs_and_no_secret(starved, tmp_path):
    path = tmp_path / "bundle.tar.gz"
    answer = sluice(starved, "bundle", "-n", JOBS_NAMESPACE, "-o", str(path))
    assert answer.returncode == 0, answer.stderr
    with tarfile.open(path) as archive:
        texts = {member.name: archive.extractfile(member).read().decode() for member in archive if member.isfile()}
    names = {name.split("pods/", 1)[-1] for name in texts}
    assert any(name.endswith("/operator.log") and RELEASE_NAMESPACE in name for name in names), names
    jobs = next(text for name, text in texts.items() if name.endswith("objects/trainingjobs.json"))
    assert [job["metadata"]["name"] for job in json.loads(jobs)] == ["vision"]
    secret = starved.cluster.get(f"/api/v1/namespaces/{JOBS_NAMESPACE}/secrets/vision-sluice-tls")
    for name, text in texts.items():
        assert "PRIVATE KEY" not in text and secret["data"]["tls.key"][:64] not in text, name
