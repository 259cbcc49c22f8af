"""One cache for all nodes, on two of them: each photograph is read from its store once, and no job minds what becomes of the other node's daemon.

The jobs train one after the other, each of them for the same epoch. So the batches of the first one, which come from the store, are those of all."""

import jobs
import pytest
from cache_daemons import counted, daemon, gained, on_two_nodes, shown, store_of_photographs
from machine import SECOND_NODE, delete_jobs
from slow_store import PHASE, PHOTOGRAPHS
from watch import condition

JOB = "photos-1"
LONG = 50  # times the usual step: 22 s for the epoch, so that something can happen in it, and end, on a fast machine too
A_FEW = 0.1  # of the photographs: on a busy machine an answer comes late at times, and is a miss


@pytest.fixture(scope="module")
def store(bed):
    """What it is asked for is seen there."""
    with store_of_photographs(bed) as made:
        yield made


@pytest.fixture(scope="module")
def node(bed, store):
    """The first of two nodes, whose caches are one."""
    with on_two_nodes(bed, "cluster") as first:
        for each in (first, SECOND_NODE):
            bed.wait_for("the daemons to know each other", lambda there=each: counted(bed, there)["peers"] == 1)
        yield first


def train(bed, store, node, steps=1, meanwhile=lambda: None):
    """One epoch on that node: the digest of its batches, and what part of the photographs it has read from the store. `meanwhile` is called in the epoch."""
    text = jobs.manifest(JOB, PHASE, bed.site, digest="full", arguments=["--data", store.urls, "--epochs", "1", "--step-factor", str(steps)])
    bed.cluster.apply(jobs.on_node(text, node))

    def result():
        assert not condition(bed.job(JOB), "Failed"), bed.events(JOB)
        events = bed.events(JOB)
        if events and events[-1]["event"] == "progress":
            meanwhile()
        return events[-1] if events and events[-1]["event"] == "result" else None

    found = bed.wait_for("the job's end", result, 110)
    assert found["complete"] and found["samples"] == PHOTOGRAPHS, found
    fetched = share_read(bed, store)
    delete_jobs(bed.cluster)
    return found["epochs"][0]["digest"], fetched


def share_read(bed, store):
    """What the job's training has read of the store so far: before it, the job reads the shards' index."""
    start = next(event["time"] for event in bed.events(JOB) if event["event"] == "start")
    return sum(nbytes for at, _, nbytes in store.reads() if at >= start) / store.nbytes


@pytest.fixture(scope="module")
def from_store(bed, store, node):
    """The batches of a job on the second node, which finds nothing. What it has read is kept by both daemons."""
    digest, fetched = train(bed, store, SECOND_NODE)
    assert 0.9 < fetched <= 1 + A_FEW, "each photograph once"
    return digest


def test_what_one_node_has_read_the_other_one_finds(bed, node, store, from_store):
    before, of_other = counted(bed, node), counted(bed, SECOND_NODE)
    digest, fetched = train(bed, store, node)
    now = gained(bed, before, node)
    assert digest == from_store
    assert now["announced"] == gained(bed, of_other, SECOND_NODE)["announced"] > 0, "each daemon knows the order of the epoch, and of the next one"
    assert fetched <= A_FEW and now["peer_hits"] > PHOTOGRAPHS // 4, now
    assert now["records"] == 0, "each photograph has one home"


class Hanging:
    """All processes of the second node stop, and go on once a question of the first node has met that."""

    def begin(self, bed):
        done = bed.cluster_script("freeze")
        assert done.returncode == 0, done.stderr

    def end(self, bed):
        bed.cluster_script("thaw")


class Killed(Hanging):
    """The daemon of the second node is killed. Its kubelet starts it again, with the records that it has on its disk.

    The kubelet hangs until then: a fast machine's starts the daemon again between two questions."""

    def begin(self, bed):
        identity = daemon(bed, SECOND_NODE)["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
        done = bed.cluster_script("exec", "ctr", "-a", "/run/second/containerd.sock", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", identity)
        assert done.returncode == 0, done.stderr
        super().begin(bed)


@pytest.mark.parametrize("fault", [Killed(), Hanging()], ids=lambda fault: type(fault).__name__)
def test_a_job_goes_on_while_the_other_node_is_away_and_finds_its_records_after_that(bed, node, store, from_store, fault):
    before, seen = counted(bed, node), {}

    def meanwhile():
        if not seen:
            seen["hits"] = 0
            seen["fetched"] = share_read(bed, store)
            fault.begin(bed)
        elif not seen["hits"] and (now := gained(bed, before, node))["peer_errors"]:
            seen["hits"] = now["peer_hits"]
            fault.end(bed)

    digest, fetched = train(bed, store, node, LONG, meanwhile)
    now = gained(bed, before, node)
    assert digest == from_store
    assert seen["fetched"] <= A_FEW
    assert 0 < seen["hits"] < now["peer_hits"], "found before the fault, and after it"
    assert now["peer_errors"] > 0 and now["misses"] > 0, now
    assert seen["fetched"] < fetched < 0.9


def test_the_dashboard_shows_what_the_daemons_ask_each_other(bed, node):
    assert shown(bed, of_peers=True) == 3
