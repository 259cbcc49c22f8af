"""src/kube against the real API server: the tests that `make test` leaves out of the unit stage, for want of a cluster there."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
