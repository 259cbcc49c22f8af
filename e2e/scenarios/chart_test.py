"""The chart: lint, refusal of wrong values, least privilege, install and upgrade on the real cluster."""

import json
import subprocess

import pytest
from conftest import JOBS_NAMESPACE, RELEASE_NAMESPACE, ROOT
from console import DemoError
from machine import tool

CHART = str(ROOT / "helm/sluice")


def helm(*arguments):
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True, check=False)


def test_lint():
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("setting, field", [
    ("replica=2", "replica"),
    ("replicas=0", "replicas"),
    ("decisionIntervalSeconds=0", "decisionIntervalSeconds"),
    ("metrics.url=prometheus:9090", "url"),
    ("metrics.queries.samples=up", "queries"),
    ("image.pullPolicy=Sometimes", "pullPolicy"),
    ("watchNamespaces={Team_A}", "watchNamespaces"),
])  # fmt: skip
def test_wrong_values_are_refused(setting, field):
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", setting)
    assert done.returncode != 0 and field in done.stderr


def test_alerts_are_the_rules_as_they_stand():
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", "alerts.enabled=true,alerts.labels.release=prom", "--show-only", "templates/alerts.yaml")
    assert done.returncode == 0, done.stderr
    assert "kind: PrometheusRule" in done.stdout and "release: prom" in done.stdout
    rules, made = (" ".join(text.split()) for text in ((ROOT / "helm/sluice/alerts/sluice.yaml").read_text(), done.stdout))
    for word in ("SluiceDoesNotDecide", "SluiceJobWaitsForData", "{{ $labels.job_namespace }}", "{{ $value | humanizePercentage }}"):
        assert word in rules and word in made


def rendered(bed, *settings):
    """The chart's objects as the API server would store them."""
    done = helm("template", "other", CHART, "--kube-version", "1.34.0", "--namespace", "default", "--set", "crds.enabled=false", *settings)
    assert done.returncode == 0, done.stderr
    text, objects = bed.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input_text=done.stdout), []
    while text := text.lstrip():  # kubectl prints one object after the other, not a list
        item, end = json.JSONDecoder().raw_decode(text)
        objects.append(item)
        text = text[end:]
    return objects


def rules(objects):
    return [rule for item in objects if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]


def test_rights_hold_no_wildcard_and_no_listing_of_secrets(bed):
    for rule in rules(rendered(bed)):
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        if "secrets" in rule["resources"]:
            assert not {"list", "watch", "delete"} & set(rule["verbs"])


def test_with_named_namespaces_only_reading_capacity_is_cluster_wide(bed):
    objects = rendered(bed, "--set", "watchNamespaces={default,kube-public}")
    cluster_wide = [item["roleRef"]["name"] for item in objects if item["kind"] == "ClusterRoleBinding"]
    assert cluster_wide == ["other-operator-capacity"]
    bound = [item["metadata"]["namespace"] for item in objects if item["kind"] == "RoleBinding" and item["roleRef"]["name"].endswith("-jobs")]
    assert bound == ["default", "kube-public"]
    capacity = next(item for item in objects if item["kind"] == "ClusterRole" and item["metadata"]["name"].endswith("-capacity"))
    assert rules([capacity]) == [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch"]}]


def test_the_operator_may_do_what_it_needs_and_no_more(bed):
    account = f"system:serviceaccount:{RELEASE_NAMESPACE}:sluice-operator"

    def allowed(verb, resource):
        resource, _, subresource = resource.partition("/")
        question = [verb, resource, *([f"--subresource={subresource}"] if subresource else [])]
        try:
            return bed.kubectl("auth", "can-i", *question, f"--as={account}", "-n", JOBS_NAMESPACE).strip().endswith("yes")
        except DemoError:
            return False

    assert allowed("create", "pods") and allowed("patch", "trainingjobs.sluice.dev/status")
    assert not any(allowed(verb, resource) for verb, resource in [
        ("list", "secrets"), ("delete", "nodes"), ("update", "trainingjobs.sluice.dev"), ("create", "clusterroles"), ("get", "configmaps"), ("create", "pods/exec"),
    ])  # fmt: skip


def test_an_upgrade_restarts_the_operator_only_if_its_configuration_changed(bed):
    def operator_pod():
        pods = bed.cluster.items(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods", labelSelector="app.kubernetes.io/component=operator")
        return {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}

    def upgrade(*settings):
        done = helm("upgrade", "sluice", CHART, "--kubeconfig", bed.cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE, "--reuse-values", "--wait", *settings)
        assert done.returncode == 0, done.stderr
        return operator_pod()

    before = operator_pod()
    assert upgrade("--set", "dashboards.folder=Other") == before
    assert not upgrade("--set", "decisionIntervalSeconds=4") & before
    upgrade("--set", "decisionIntervalSeconds=3")


@pytest.mark.parametrize("namespace", [JOBS_NAMESPACE, RELEASE_NAMESPACE])
def test_namespaces_enforce_restricted_pods(bed, namespace):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root", "namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    with pytest.raises(DemoError, match="violates PodSecurity"):
        bed.kubectl("create", "--dry-run=server", "-f", "-", input_text=json.dumps(pod))
