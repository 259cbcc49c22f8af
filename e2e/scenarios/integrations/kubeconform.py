"""Every object that Sluice asks its users to apply, or makes itself, in the eyes of kubeconform -strict.

`make test-integrations` runs it; `make test` does not, since kubeconform is built first.
"""

import json
import subprocess

import pytest
import published_schemas
from conftest import JOBS_NAMESPACE, MANY_EPOCHS, RELEASE_NAMESPACE, ROOT
from guide_test import DOCUMENTS, blocks
from jobs import PHASES, WORK, manifest
from machine import cache_folder, delete_jobs, tool

CHART = ROOT / "helm/sluice"
MADE = ("jobs", "pods", "services", "secrets", "networkpolicies", "dataworkerpools", "trainingjobs", "configmaps", "leases")
# The whole chart: what is off by default, too.
EVERYTHING = {"cache.enabled": "true", "podMonitor.enabled": "true", "alerts.enabled": "true", "replicas": "2", "watchNamespaces": "{team-a,team-b}",
              "metrics.url": "http://prometheus:9090"}  # fmt: skip


@pytest.fixture(scope="module")
def conform(bed, tmp_path_factory):
    """Calls kubeconform on a text. Returns its report: the objects, and what is wrong with any."""
    bed.kubectl("apply", "--server-side", "-f", str(cache_folder() / "charts/prometheus-operator"))
    kinds = {"PodMonitor", "PrometheusRule", "TrainingJob", "DataWorkerPool"}

    def published():
        openapi = json.loads(bed.cluster.get_text("/openapi/v2"))
        shown = {kind["kind"] for each in openapi["definitions"].values() for kind in each.get("x-kubernetes-group-version-kind", ())}
        return openapi if kinds <= shown else None

    folder = tmp_path_factory.mktemp("schemas")
    published_schemas.write(bed.wait_for("the CRDs' schemas", published, 120), folder)

    def ask(text):
        done = subprocess.run([tool("kubeconform"), "-strict", "-output", "json", "-verbose", "-schema-location",
                               f"{folder}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"], input=text, capture_output=True, text=True, check=False)  # fmt: skip
        resources = json.loads(done.stdout)["resources"]
        return [each for each in resources if each["status"] == "statusValid"], [each for each in resources if each["status"] != "statusValid"]

    yield ask
    bed.kubectl("delete", "-f", str(cache_folder() / "charts/prometheus-operator"), "--timeout=60s")


def rendered(settings):
    words = [word for each in settings.items() for word in ("--set", "=".join(each))]
    return subprocess.run([tool("helm"), "template", "sluice", str(CHART), "--kube-version", "1.34.0", "--namespace", RELEASE_NAMESPACE, *words],
                          capture_output=True, text=True, check=True).stdout  # fmt: skip


def test_it_finds_a_field_that_is_not_there(bed, conform):
    valid, wrong = conform(manifest("vision", PHASES[2], bed.site).replace("spec:\n", "spec:\n  trainers: 2\n", 1))
    assert len(wrong) == 1 and "trainers" in wrong[0]["msg"], (valid, wrong)


@pytest.mark.parametrize("settings", [{}, EVERYTHING], ids=["as it comes", "with everything"])
def test_the_chart(conform, settings):
    valid, wrong = conform(rendered(settings))
    assert not wrong and len(valid) > 10, wrong


def test_the_custom_resource_definitions(conform):
    valid, wrong = conform("---\n".join(path.read_text() for path in sorted((ROOT / "crds").glob("*.yaml"))))
    assert not wrong and len(valid) == 2, wrong


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_the_guide_shows(conform, document):
    valid, wrong = conform("---\n".join(block for block in blocks(document, "yaml") if "apiVersion: sluice.dev" in block))
    assert not wrong and valid, wrong


@pytest.mark.parametrize("name", WORK)
def test_the_demos_jobs(bed, conform, name):
    valid, wrong = conform(manifest(name, PHASES[2], bed.site))
    assert not wrong and valid, wrong


def test_what_a_job_and_its_installation_consist_of(bed, conform):
    bed.start_numbered(MANY_EPOCHS, min_workers=1, digest="sampled")
    bed.wait_for("a worker", lambda: bed.ready_workers() > 0, 120)
    for namespace in (JOBS_NAMESPACE, RELEASE_NAMESPACE):
        listed = bed.kubectl("get", ",".join(MADE), "-n", namespace, "-o", "json")
        valid, wrong = conform(listed)
        assert not wrong and len(valid) > 5, wrong
    delete_jobs(bed.cluster)
