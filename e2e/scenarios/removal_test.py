"""The last scenario: what was started is gone without a trace."""

import pytest
from machine import delete_jobs


def test_deleted_jobs_leave_no_object(bed, namespaces):
    delete_jobs(bed.cluster)
    for path in ("/apis/sluice.dev/v1alpha1/namespaces/{}/dataworkerpools", "/api/v1/namespaces/{}/services", "/apis/batch/v1/namespaces/{}/jobs"):
        bed.wait_for(path, lambda path=path: not bed.cluster.items(path.format(namespaces[0])), 30)
    secrets = bed.cluster.items(f"/api/v1/namespaces/{namespaces[0]}/secrets")
    assert [secret["metadata"]["name"] for secret in secrets if secret["metadata"]["name"].endswith("-sluice-tls")] == []


def test_down_leaves_nothing_on_the_machine(bed):
    if not bed.machine.started_cluster:
        pytest.skip("the cluster was up before the tests, and stays")
    assert bed.cluster_script("down").returncode == 0
    left = bed.cluster_script("leftovers")
    assert left.returncode == 0, left.stdout + left.stderr
