"""Accelerators that a trainer asks for by dynamic resource allocation: the operator counts them where the claim says how many they are."""

import json

import pytest
from api_test import JOB, changed

NAME = "claims"
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "eight", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu.example.com", "count": 8}}]}}},
}
POD = {
    "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "eight"}],
    "containers": [{"name": "trainer", "image": "localhost/none:1", "resources": {"claims": [{"name": "gpus"}]}}],
}


@pytest.fixture
def job(bed):
    """Its trainer waits for devices that no driver has."""
    made = changed(changed(JOB, "metadata.name", NAME), "spec.trainer.template.spec", POD)
    for each in (TEMPLATE, made):
        bed.kubectl("apply", "-f", "-", input_text=json.dumps(each))
    yield
    bed.kubectl("-n", "default", "delete", f"tjob/{NAME}", "resourceclaimtemplate/eight")


def test_the_accelerators_of_a_claim_are_counted(bed, job):
    def status():
        return bed.cluster.get(f"/apis/sluice.dev/v1alpha1/namespaces/default/trainingjobs/{NAME}").get("status", {})

    bed.wait_for("the number", lambda: status().get("claimedAccelerators"), 30)
    assert status()["claimedAccelerators"] == 8
    # No data worker has a claim, and no claim is made for one.
    pool = bed.cluster.get(f"/apis/sluice.dev/v1alpha1/namespaces/default/dataworkerpools/{NAME}")
    assert "resourceClaims" not in pool["spec"]["template"]["spec"]
