"""src/kube against the real API server: the tests that `make test` leaves out of the unit stage, for want of a cluster there."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_kubernetes_client_on_a_real_api_server(bed):
    program = ROOT / "build/asan/src/kube/sluice_kube_test"
    assert program.exists(), "build it: ninja -C build/asan sluice_kube_test (make test does)"
    done = subprocess.run([program, "[cluster]"], env={**os.environ, "SLUICE_TEST_KUBECONFIG": bed.machine.kubeconfig},
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "All tests passed" in done.stdout
