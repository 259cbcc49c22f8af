"""A data worker that runs out of memory: seen on a real node, replaced by larger ones, and no batch is lost.

Nodes with cgroup v2 end the whole container. With v1 the kernel kills one process of it, mostly a Python executor, and the worker ends by itself.
"""

import json
import re
import time

import pytest
from cluster_api import pods_path
from conftest import JOBS_NAMESPACE, NUMBERED
from jobs import PHASES, manifest
from machine import delete_jobs
from watch import condition

EPOCHS = 3
FIRST_MEBIBYTES = 32  # less than an interpreter with PyTorch takes
SIZES = {"cpu": "500m", "firstMemory": f"{FIRST_MEBIBYTES}Mi", "minMemory": f"{FIRST_MEBIBYTES}Mi"}


def of_chosen_size(text, name):
    """A manifest of the demo's that leaves the size of its workers to Sluice."""
    stated = r"(  dataWorkers:\n(?:    \w+: \d+\n)+)    resources:\n(?:      .*\n)+"
    for pattern, replacement in [(stated, rf"\1    autoResources: {json.dumps(SIZES)}\n"), (r"\n  name: vision\n", f"\n  name: {name}\n")]:
        text, found = re.subn(pattern, replacement, text)
        assert found == 1
    return text


@pytest.fixture
def narrow(bed):
    """The name of a job that never ran: Prometheus remembers for an hour how much memory the workers of a name used."""
    name = f"narrow-{int(time.time())}"
    delete_jobs(bed.cluster)
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(EPOCHS)]
    text = manifest("vision", PHASES[1], bed.site, digest="full", arguments=arguments, min_workers=1)
    bed.cluster.apply(of_chosen_size(text, name))
    yield name
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "trainingjob", name, "--timeout=60s")
    bed.wait_for("the end of its pods", lambda: not bed.cluster.items(pods_path(JOBS_NAMESPACE), labelSelector=f"sluice.dev/job={name}"))


def sizings(bed, name):
    told = bed.cluster.items(f"/api/v1/namespaces/{JOBS_NAMESPACE}/events", fieldSelector="reason=WorkersSized")
    return [event["message"] for event in told if event["involvedObject"]["name"] == name]


def test_workers_without_enough_memory_get_twice_as_much(bed, narrow):
    def ended():
        assert not condition(bed.job(narrow), "Failed"), bed.events(narrow)
        return condition(bed.job(narrow), "Succeeded")

    bed.wait_for("the job's success", ended, 180)
    # The first one may be seen to use more than it has before it ends.
    ends = [re.search(r"and (\d+)Mi of memory: one ran out of memory with a request of (\d+)Mi", message) for message in sizings(bed, narrow)]
    assert any(end and int(end[1]) == 2 * int(end[2]) for end in ends), sizings(bed, narrow)
    result = bed.events(narrow)[-1]
    assert result["complete"] and result["samples"] == EPOCHS * NUMBERED, result
