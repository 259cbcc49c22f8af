"""The API server refuses a wrong object with a message that names the field and the way out."""

import copy
import json

import pytest
from console import DemoError

JOB = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "TrainingJob",
    "metadata": {"name": "sample", "namespace": "default"},
    "spec": {
        "trainer": {"template": {"spec": {"containers": [{"name": "trainer", "image": "localhost/none:1"}]}}},
        "dataWorkers": {"resources": {"requests": {"cpu": "500m"}}},
    },
}
IGNORE_DISRUPTIONS = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
POOL = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "DataWorkerPool",
    "metadata": {"name": "sample", "namespace": "default"},
    "spec": {"jobName": "sample", "template": {"spec": {"containers": [{"name": "worker"}]}}},
}


def changed(original, path, value):
    """A copy with the field at the dotted `path` set, or removed where value is None."""
    made = copy.deepcopy(original)
    *parents, last = path.split(".")
    target = made
    for key in parents:
        target = target.setdefault(key, {})
    if value is None:
        del target[last]
    else:
        target[last] = value
    return made


def try_apply(bed, manifest):
    """The refusal's text, or an empty one."""
    try:
        bed.kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", input_text=json.dumps(manifest))
    except DemoError as refusal:
        return str(refusal)
    return ""


@pytest.mark.parametrize("path, value, field, way_out", [
    ("metadata.name", "a" * 51, "metadata.name", "choose a shorter name"),
    ("metadata.name", "1st", "metadata.name", "rename the job"),
    ("spec.trainer.replicas", 0, "spec.trainer.replicas", "greater than or equal to 1"),
    ("spec.trainer.container", "other", "spec.trainer.container", "correct it or leave it out"),
    ("spec.trainer.elasticPolicy", {"minReplicas": 2}, "spec.trainer.elasticPolicy", "lower it or raise replicas"),
    ("spec.trainer.podFailurePolicy", {"rules": [{"action": "FailIndex"}]}, "spec.trainer.podFailurePolicy", "FailJob"),
    ("spec.trainer", {**JOB["spec"]["trainer"], "replicas": 2, "podFailurePolicy": IGNORE_DISRUPTIONS}, "spec.trainer.podFailurePolicy", "use Count or FailJob"),
    ("spec.trainer.backoffLimit", -1, "spec.trainer.backoffLimit", "greater than or equal to 0"),
    ("spec.trainer.template.spec.containers", [], "spec.trainer.template.spec.containers", "add the one that trains"),
    ("spec.trainer.template.spec.containers", [{"name": "sluice-feeder"}], "spec.trainer.template.spec.containers", "rename the container"),
    ("spec.trainer.template.spec.restartPolicy", "Always", "spec.trainer.template.spec.restartPolicy", "must be Never or OnFailure"),
    ("spec.dataWorkers.autoResources", {}, "spec.dataWorkers.autoResources", "leave one of them out"),
    ("spec.dataWorkers", {"autoResources": {"minMemory": "9Gi"}}, "spec.dataWorkers.autoResources", "lower it or raise maxMemory"),
    ("spec.dataWorkers", {"autoResources": {"minMemory": "1Mi"}}, "spec.dataWorkers.autoResources", "at least 16Mi"),
    ("spec.dataWorkers", {"autoResources": {"cpu": "50m"}}, "spec.dataWorkers.autoResources", "at least 100m"),
    ("spec.dataWorkers.resources", {"requests": {"memory": "1Gi"}}, "spec.dataWorkers.resources.requests", "set it, for example cpu: 500m"),
    ("spec.dataWorkers.resources.requests.cpu", "0", "spec.dataWorkers.resources.requests", "must be positive"),
    ("spec.dataWorkers.resources.requests.cpu", "half", "spec.dataWorkers.resources.requests.cpu", "should match"),
    ("spec.dataWorkers.resources.limits", {"cpu": "100m"}, "spec.dataWorkers.resources.limits", "raise the limit or lower the request"),
    ("spec.dataWorkers.min", 9, "spec.dataWorkers.min", "lower min or raise max"),
    ("spec.dataWorkers.max", 1.5, "spec.dataWorkers.max", "type integer"),
    ("spec.dataWorkers", {"placement": "Local", "min": 1, "resources": {"requests": {"cpu": 1}}}, "spec.dataWorkers.placement", "set min to 0"),
    ("spec.dataWorkers", {"placement": "Remote", "max": 0, "resources": {"requests": {"cpu": 1}}}, "spec.dataWorkers.placement", "raise max"),
    ("spec.dataWorkers.placement", "Elsewhere", "spec.dataWorkers.placement", "Local"),
    ("spec.feeder", {"arena": "1Ki"}, "spec.feeder.arena", "at least 1Mi"),
    ("spec.feeder", {"resources": {"limits": {"memory": "256Mi"}}}, "spec.feeder.resources.limits.memory must hold", "raise the limit or lower the arena"),
    ("spec.mode", "auto", "spec.mode", "Recommend"),
    ("spec.weight", 0, "spec.weight", "100 is normal"),
    ("spec.weight", 10001, "spec.weight", "between 1 and 10000"),
    ("spec.workers", 3, "spec.workers", "not declared in schema"),
])  # fmt: skip
def test_a_wrong_training_job_is_refused(bed, path, value, field, way_out):
    refusal = try_apply(bed, changed(JOB, path, value))
    assert field in refusal and way_out in refusal


@pytest.mark.parametrize("path, value", [
    ("spec.dataWorkers.resources.requests.cpu", 2),
    ("spec.dataWorkers", {"max": 4}),
    ("spec.dataWorkers", {"autoResources": {"cpu": 1, "firstMemory": "2Gi", "minMemory": "1Gi", "maxMemory": "4Gi"}}),
    ("spec.dataWorkers.placement", "Remote"),
    ("spec.feeder", {"resources": {"limits": {"cpu": "1"}}, "arena": "2Gi"}),
    ("spec.feeder", {"resources": {"limits": {"memory": "576Mi"}}}),
    ("spec.feeder", {"resources": {"limits": {"memory": 1100000000}}, "arena": "1e9"}),
    ("spec.trainer.container", "trainer"),
    ("spec.trainer.podFailurePolicy", IGNORE_DISRUPTIONS),
    ("spec.trainer", {**JOB["spec"]["trainer"], "replicas": 4, "elasticPolicy": {"minReplicas": 2}, "podFailurePolicy": IGNORE_DISRUPTIONS}),
    ("metadata.name", "a" * 50),
])  # fmt: skip
def test_a_right_training_job_is_accepted(bed, path, value):
    assert try_apply(bed, changed(JOB, path, value)) == ""


@pytest.mark.parametrize("path, value, field", [
    ("spec.template.spec.containers", [], "spec.template.spec.containers"),
    ("spec.replicas", -1, "spec.replicas"),
    ("spec.jobName", None, "spec.jobName"),
])  # fmt: skip
def test_a_wrong_pool_is_refused(bed, path, value, field):
    assert field in try_apply(bed, changed(POOL, path, value))


def test_the_trainer_is_immutable_and_the_rest_is_not(bed):
    held = {**JOB, "metadata": {"name": "held", "namespace": "default"}, "spec": {**JOB["spec"], "suspend": True}}
    bed.cluster.apply(json.dumps(held))
    try:
        assert "spec.trainer is immutable" in try_apply(bed, changed(held, "spec.trainer.replicas", 2))
        other_image = changed(held, "spec.trainer.template.spec.containers", [{"name": "trainer", "image": "localhost/none:2"}])
        assert "delete the job and create it again" in try_apply(bed, other_image)
        assert try_apply(bed, changed(held, "spec.weight", 200)) == ""
    finally:
        bed.kubectl("-n", "default", "delete", "trainingjob", "held")


def test_defaults_and_printer_columns(bed):
    stored = json.loads(bed.kubectl("apply", "--server-side", "--dry-run=server", "-o", "json", "-f", "-", input_text=json.dumps(JOB)))["spec"]
    assert (stored["mode"], stored["weight"], stored["priority"], stored["suspend"]) == ("Auto", 100, 0, False)
    assert (stored["dataWorkers"]["min"], stored["dataWorkers"]["max"], stored["dataWorkers"]["placement"]) == (0, 8, "Auto")
    assert stored["trainer"]["replicas"] == 1 and stored["feeder"]["arena"] == "512Mi"
    columns = bed.cluster.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.sluice.dev")["spec"]["versions"][0]
    shown = [column["name"] for column in columns["additionalPrinterColumns"] if not column.get("priority")]
    assert shown == ["Workers", "Desired", "Util %", "Wait %", "Bottleneck", "Succeeded", "Age"]
