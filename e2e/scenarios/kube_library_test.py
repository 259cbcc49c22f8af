"""src/kube against the real API server: the tests that `make test` leaves out of the unit stage, for want of a cluster there."""

import os
import pathlib
import subprocess

import pytest
from machine import RELEASE_NAMESPACE

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def no_other_writer(bed):
    """The suites say what a server does by itself: the operator, which would answer their TrainingJobs, stands aside."""
    operator = ["-n", RELEASE_NAMESPACE, "scale", "deployment", "-l", "app.kubernetes.io/component=operator"]
    pods = f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods"
    bed.kubectl(*operator, "--replicas=0")
    bed.wait_for("the end of the operator", lambda: not bed.cluster.items(pods, labelSelector="app.kubernetes.io/component=operator"))
    yield
    bed.kubectl(*operator, "--replicas=1")
    bed.kubectl("-n", RELEASE_NAMESPACE, "rollout", "status", "deployment", "-l", "app.kubernetes.io/component=operator", "--timeout=90s")


@pytest.mark.usefixtures("no_other_writer")
@pytest.mark.parametrize("program", [
    "src/kube/sluice_kube_test",
    "src/kube/fake/sluice_kube_fake_test",  # the suite that the fake API server passes, too
])  # fmt: skip
def test_on_a_real_api_server(bed, program):
    path = ROOT / "build/asan" / program
    assert path.exists(), f"build it: ninja -C build/asan {path.name} (make test does)"
    done = subprocess.run([path, "[cluster]"], cwd=ROOT, env={**os.environ, "SLUICE_TEST_KUBECONFIG": bed.machine.kubeconfig},
                          capture_output=True, text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "All tests passed" in done.stdout
