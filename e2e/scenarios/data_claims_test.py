"""A claim that one node at a time can mount: the job is told that it trains without data workers, why, and what helps."""

import json
import subprocess

import pytest
from api_test import JOB, changed
from conftest import ROOT

NAME = "one-node"
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "disk", "namespace": "default"},
    "spec": {"storageClassName": "none", "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}
POD = {
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "disk"}}],
    "containers": [{"name": "trainer", "image": "localhost/none:1", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
}


@pytest.fixture
def job(bed):
    """Its trainer waits for the claim, which no volume will serve."""
    made = changed(changed(JOB, "metadata.name", NAME), "spec.trainer.template.spec", POD)
    for each in (CLAIM, made):
        bed.kubectl("apply", "-f", "-", input_text=json.dumps(each))
    yield f"tjob/{NAME}"
    bed.kubectl("-n", "default", "delete", f"tjob/{NAME}", "pvc/disk")


def condition_of(bed, kind):
    """Empty until there is one."""
    found = bed.cluster.get(f"/apis/sluice.dev/v1alpha1/namespaces/default/trainingjobs/{NAME}").get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == kind), {})


def blocked(bed):
    condition = condition_of(bed, "WorkersBlocked")
    return f"{condition['status']}/{condition['reason']}" if condition else ""


def test_a_trainer_says_that_it_waits_for_its_claim(bed, job):
    bed.wait_for("the reason", lambda: "cannot start: Unschedulable: " in condition_of(bed, "Ready").get("message", ""), 60)
    assert "PersistentVolumeClaim" in condition_of(bed, "Ready")["message"]


def test_a_claim_of_one_node_is_told_of_until_the_workers_have_another_volume(bed, job):
    bed.wait_for("the condition", lambda: blocked(bed) == "True/DataOnlyInTrainer", 30)
    why = subprocess.run([ROOT / "build/cli/kubectl-sluice", "why", NAME, "-n", "default", "--kubeconfig", bed.machine.kubeconfig],
                         capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=True).stdout  # fmt: skip
    assert "the volume data is the claim disk" in why and "[{name: data, emptyDir: {}}]" in why
    template = {"spec": {"dataWorkers": {"template": {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}}}}
    bed.kubectl("-n", "default", "patch", job, "--type=merge", "-p", json.dumps(template))
    bed.wait_for("its end", lambda: blocked(bed) == "False/NotBlocked", 30)
