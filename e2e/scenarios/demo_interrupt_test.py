"""`make demo`, interrupted at any moment, leaves nothing on the machine. On a second cluster, beside the first."""

import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import ROOT

# The demo from the start of its cluster on; the jobs themselves are a sleep.
DEMO = """
import sys, time
import demo
class Machine(demo.LocalMachine):
    def prepare(self): self.start_cluster()
    def install(self, cluster): time.sleep(60)
demo.LocalMachine = Machine
sys.exit(demo.main())
"""
ENVIRONMENT = {**os.environ, "CLUS_NAME": "sluice-int", "CLUS_INDEX": "23", "PYTHONPATH": str(ROOT / "e2e/demo")}


@pytest.mark.parametrize("seconds, number", [(0.5, signal.SIGINT), (3, signal.SIGTERM), (15, signal.SIGHUP)])
def test_an_interrupt_leaves_nothing(seconds, number):
    demo = subprocess.Popen([sys.executable, "-c", DEMO], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            start_new_session=True)  # fmt: skip
    time.sleep(seconds)  # a moment in the demo's life, not a wait for something
    demo.send_signal(number)
    output, _ = demo.communicate(timeout=90)
    assert demo.returncode == 130 and "interrupted" in output, output
    left = subprocess.run([ROOT / "e2e/cluster/cluster.sh", "leftovers"], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert left.returncode == 0, left.stdout + left.stderr
