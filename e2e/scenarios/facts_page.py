"""What the operator saw when it decided, and what the cluster says itself: for cluster_facts_test.py."""

import json
import re
import subprocess

import cluster_facts as facts
from cluster_api import jobs_path, pods_path
from conftest import JOBS_NAMESPACE, RELEASE_NAMESPACE, ROOT
from machine import RELEASE

NAMESPACE = {job["metadata"]["name"]: job["metadata"]["namespace"] for job in facts.JOBS} | {"vision": JOBS_NAMESPACE}
OTHER_NAMES = {"JobPlan::id": "name", "Plan::capacity_millicores": "capacityMilliCores", "Plan::granted_millicores": "grantedMilliCores"}
ASKED_SECONDS = 5  # before the decision, at most: the operator asks its questions one after another


def published(place, field):
    """Of a part of the page, the field of a C++ struct."""
    first, *others = field.partition("::")[2].split("_")
    return place[OTHER_NAMES.get(field) or first + "".join(word.capitalize() for word in others)]


def ask(bed):
    return subprocess.run([ROOT / "build/cli/kubectl-sluice", "plan", "--snapshot", "-o", "json", "--kubeconfig", bed.machine.kubeconfig],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)  # fmt: skip


class Page:
    """Of the operator, at one moment; and the pods of the demo's namespace at that time."""

    def __init__(self, bed):
        # An operator that goes is listed for some seconds, and does not answer.
        answer = bed.wait_for("an operator with a plan", lambda: (made := ask(bed)).returncode == 0 and made, 30)
        self.bed, self.page = bed, json.loads(answer.stdout)
        self.snapshot = self.page["snapshot"]
        self.at = self.snapshot["takenAtSeconds"]
        self.pods = {pod["metadata"]["name"]: pod for pod in bed.cluster.items(pods_path(JOBS_NAMESPACE))}

    def node(self, name):
        return next(node for node in self.snapshot["nodes"] if node["name"] == name)

    def job(self, name):
        return next((job for job in self.snapshot["jobs"] if job["id"] == {"namespace": NAMESPACE[name], "name": name}), {})

    def plan(self, name):
        return next(job for job in self.page["jobs"] if (job["namespace"], job["name"]) == (NAMESPACE[name], name))

    def training_job(self, name):
        return self.bed.cluster.get(jobs_path(NAMESPACE[name], name))

    def pool(self, name):
        return self.bed.cluster.get(f"/apis/sluice.dev/v1alpha1/namespaces/{NAMESPACE[name]}/dataworkerpools/{name}")

    def measurement(self):
        return self.job("vision").get("observation", {}).get("measurement", {})

    def worker(self):
        """One on a node without a kubelet; cluster_facts.say_ready() speaks for that."""
        return self.job("fleeting")["workers"][0]

    def worker_pod(self):
        return self.pods[self.worker()["name"]]

    def trainer_pod(self):
        return next(pod for pod in self.pods.values() if pod["metadata"].get("labels", {}).get("sluice.dev/component") == "trainer" and
                    pod["metadata"]["labels"]["sluice.dev/job"] == "vision")  # fmt: skip

    def feeder_cpu(self, kind):
        """What the kubelet has put in force."""
        states = self.trainer_pod()["status"].get("initContainerStatuses", [])
        feeder = next((state for state in states if state["name"] == "sluice-feeder"), {})
        return millicores(feeder.get("resources", {}).get(kind, {}).get("cpu", "0"))

    def quota(self, name):
        return next(quota for quota in self.snapshot["quotas"] if quota["name"] == name)

    def spread(self, name):
        return self.job(name)["spread"][0]

    def domain(self, name, rule):
        return self.node(name)["domains"][self.spread(rule)["topology"]]

    def answers(self, expression, begin, end, **labels):
        """Of Prometheus, by series with these labels: all values between two times, in seconds from the decision."""
        found = self.bed.query_range(expression, self.at + begin, self.at + end)
        values = [value for series in found if labels.items() <= series["metric"].items() for _, value in series["values"]]
        return [float(value) for value in values if value not in ("NaN", "+Inf", "-Inf")]

    def told(self, label):
        """The values that a label of sluice_job_info had soon after."""
        found = self.bed.query_range('sluice_job_info{training_job="vision"}', self.at, self.at + 4)
        return {series["metric"][label] for series in found}


def millicores(quantity):
    return int(quantity[:-1]) if quantity.endswith("m") else round(1000 * float(quantity))


def is_between(value, answers, change=0.02):
    """Whether it is among Prometheus' own answers around that time; they change by little, as a ratio, from one to the next."""
    return bool(answers) and (1 - change) * min(answers) - 1e-9 <= value <= (1 + change) * max(answers) + 1e-9


def window_of(seen):
    configuration = seen.bed.cluster.get(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/configmaps/{RELEASE}-operator")["data"]["config.yaml"]
    return re.search(r"windowSeconds: (\d+)", configuration).group(1) + "s"
