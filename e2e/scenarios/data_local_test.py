"""A data worker goes to the node whose cache has the job's data, though another node is emptier. An earlier job has left it there."""

import json

import jobs
import pytest
from cache_daemons import counted, on_two_nodes, store_of_photographs
from conftest import JOBS_NAMESPACE
from facts_page import ask, published
from machine import SECOND_NODE, delete_jobs
from slow_store import PHASE, PHOTOGRAPHS
from watch import condition

EARLIER, LATER = "photos-1", "photos-2"
SLOW = 400  # times the usual step: the job runs for longer than the test
WORKER_MILLICORES = 200


@pytest.fixture(scope="module")
def store(bed):
    with store_of_photographs(bed) as made:
        yield made


@pytest.fixture(scope="module")
def node(bed, store):
    """The first of two nodes, each of which has a cache of its own."""
    with on_two_nodes(bed, "node") as first:
        yield first


def start(bed, store, name, node, steps):
    text = jobs.manifest(name, PHASE, bed.site, arguments=["--data", store.urls, "--epochs", "1", "--step-factor", str(steps)])
    bed.cluster.apply(jobs.on_node(text, node))


def snapshot(bed):
    return json.loads(bed.wait_for("an operator with a plan", lambda: (made := ask(bed)).returncode == 0 and made, 30).stdout)["snapshot"]


def free_millicores(seen, name):
    (node,) = (node for node in seen["nodes"] if node["name"] == name)
    return node["allocatableMillicores"] - node["requestedByOthersMillicores"]


def kept_bytes(seen, name):
    """By node."""
    (job,) = (job for job in seen["jobs"] if job["id"]["name"] == name)
    return {published(kept, "KeptData::node"): published(kept, "KeptData::bytes") for kept in published(job, "Job::kept")}


def test_the_worker_of_a_later_job_goes_where_an_earlier_one_has_left_its_data(bed, node, store):
    # 1. An epoch, of which the first node's cache keeps all. (It is asked by the pods of both nodes, as one kube-proxy serves both.)
    start(bed, store, EARLIER, node, 1)
    bed.wait_for("the earlier job's end", lambda: condition(bed.job(EARLIER), "Succeeded"), 110)
    delete_jobs(bed.cluster)
    assert counted(bed, node)["records"] > 0.9 * PHOTOGRAPHS

    # 2. The operator knows what is there for another job. The second node has none of it, and more room.
    start(bed, store, LATER, node, SLOW)
    has_data = lambda seen: any(job["id"]["name"] == LATER for job in seen["jobs"]) and kept_bytes(seen, LATER) and seen  # noqa: E731
    seen = bed.wait_for("what the caches have kept", lambda: has_data(snapshot(bed)), 60)
    kept = kept_bytes(seen, LATER)
    assert kept.keys() == {node} and 0.9 * store.nbytes < kept[node] < 1.1 * store.nbytes
    assert WORKER_MILLICORES <= free_millicores(seen, node) < free_millicores(seen, SECOND_NODE)

    # 3. A worker goes to the data.
    bed.kubectl("-n", JOBS_NAMESPACE, "patch", "trainingjob", LATER, "--type=merge", "-p", '{"spec": {"dataWorkers": {"min": 1, "max": 1}}}')
    worker = bed.wait_for("a worker on a node", lambda: [pod for pod in bed.pods("worker", LATER) if pod["spec"].get("nodeName")])[0]
    assert worker["spec"]["nodeName"] == node
    bed.wait_for("the sentence", lambda: "1 of 1 worker is where the node's cache has its data" in bed.job(LATER)["status"].get("explanation", ""), 30)
