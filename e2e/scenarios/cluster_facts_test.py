"""Every field of the snapshot and the plan, as `kubectl sluice plan --snapshot` publishes them, is that of the real cluster's objects and metrics.

The fields are those of scheduler/model/snapshot.h and plan.h; docs/scheduling.md names this file for them. cluster_facts.py has the objects.
"""

import collections
import datetime
import json
import re
import time

import cluster_facts as facts
import pytest
from chart_queries import chart_queries
from conftest import JOBS_NAMESPACE
from facts_page import ASKED_SECONDS, Page, is_between, millicores, published, window_of
from machine import RELEASE, delete_jobs
from watch import seconds_of

PATIENCE_SECONDS = 120
LIFE_SECONDS = 15
NODE = {node.name: node for node in facts.NODES}
SPEC = {job["metadata"]["name"]: job["spec"] for job in facts.JOBS}
MEBIBYTE, GIBIBYTE = 1 << 20, 1 << 30

# The nodes of the workers that do not exist yet, and why there are no more.
PLANNED = {
    "careful": (["facts-good"] * 2, None, ""),
    "thrifty": (["facts-priced"], "Budget", "The budget of facts-budgeted limits it to 1 worker"),
    "dear": (["facts-priced"] * 2, "Budget", "The budget limits it to 2 workers"),
    "first": (["facts-contested"] * 2, "NoMetrics", "Holding 2 workers"),
    "second": ([], "Cpu", "No node has room for more than 0 workers"),
    "frugal": (["facts-open"], "Quota", "Quota facts-quoted limits it to 1 worker"),
    "advised": ([], "Min", "Recommends 2 workers (has 0)"),
    "gated": ([], None, "2 workers"),  # of the 3 of its minimum: limited by the gate at first, and then held
    "idle": ([], "NotRunning", "Not running"),
}


def is_in_force(seen, kind):
    """Whether the feeder has the CPU of the plan. The operator leaves it where the difference is small, and gives tens."""
    planned, real = (published(seen.plan("vision")["local"][0], f"LocalCpu::{kind}_millicores"), seen.feeder_cpu(f"{kind}s"))
    return abs(planned - real) <= max(50, 0.1 * real) + 10


def is_settled(seen):
    """Whether all jobs run, the gate has held workers back for long, and the one that trains is measured."""
    vision, measured = seen.job("vision"), seen.measurement()
    return (all(seen.job(name).get("running") for name in [*facts.RUNNING, "vision"]) and seen.job("gated")["heldAtGate"]
            and {"local", "queue", "blockedThreads", "readBytesPerSample"} <= measured.keys() and all(worker["ready"] for worker in seen.job("fleeting")["workers"])
            and {"bytesPerSample", "remainingSamples", "memory"} <= vision.keys() and "kneeCores" in vision["memory"]
            and all(is_in_force(seen, kind) for kind in ("request", "limit"))
            and all(sorted(seen.plan(name)["newWorkerNodes"]) == nodes for name, (nodes, _, _) in PLANNED.items())
            and len(seen.plan("zoned")["newWorkerNodes"]) == 3)  # fmt: skip


def look_until(bed, holds):
    """The first page for which that is true, else the last one within the patience: the tests say what is wrong with it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    next_life = 0
    while not holds(seen := Page(bed)) and time.monotonic() < deadline:
        if time.monotonic() > next_life:
            facts.show_life(bed)
            next_life = time.monotonic() + LIFE_SECONDS
        time.sleep(0.5)
    return seen


@pytest.fixture(scope="module")
def world(bed):
    delete_jobs(bed.cluster)
    facts.set_values(bed)
    try:
        facts.make(bed)
        yield bed
    finally:
        facts.remove(bed)
        delete_jobs(bed.cluster)
        facts.helm(bed, "rollback", RELEASE)


@pytest.fixture(scope="module")
def seen(world):
    look_until(world, lambda seen: all(seen.job(name).get("running") for name in facts.RUNNING))
    facts.open_contested(world)
    bound = lambda: [pod["metadata"]["name"] for pod in world.pods("worker", "fleeting") if pod["spec"].get("nodeName")]  # noqa: E731
    world.wait_for("workers on nodes", lambda: len(bound()) == 2)
    facts.say_ready(world, bound())
    settled = look_until(world, is_settled)
    world.wait_for("the metrics of that decision", lambda: settled.answers("timestamp(sluice_operator_cpu_granted_cores)", 4, 6), 30)
    return settled


def own_node(seen):
    return seen.trainer_pod()["spec"]["nodeName"]


def used_by_quota(seen):
    return seen.bed.cluster.get(f"/api/v1/namespaces/{facts.QUOTED}/resourcequotas/facts")["status"]["used"]["requests.cpu"]


LEFT_FREE_PERCENT = 5  # scheduler.freeCpuPercent, by default


def usable_millicores(cpu):
    """A node of four cores or more keeps a share of its CPU free."""
    return millicores(cpu) * (100 - LEFT_FREE_PERCENT) // 100 if millicores(cpu) >= 4000 else millicores(cpu)


def capacity(seen):
    """Of the nodes that a job's workers may go to, what is neither requested by others nor left free."""
    open_nodes = [node for node in facts.NODES if not node.cordoned and not node.taints and node.pool != "linked"]
    free = sum(usable_millicores(node.cpu) for node in open_nodes) - 700
    node = seen.node(own_node(seen))
    feeders = sum(cpu["requestMillicores"] for job in seen.page["jobs"] for cpu in job["local"] if cpu["node"] == node["name"])
    return free + node["allocatableMillicores"] - node["requestedByOthersMillicores"] - feeders


# A field, the part of the page that has it, and what the cluster says.
SEEN = [
    ("Node::name", lambda s: s.node("facts-good"), lambda s: "facts-good"),
    ("Node::allocatable_millicores", lambda s: s.node("facts-small"), lambda s: 900),
    ("Node::requested_by_others_millicores", lambda s: s.node("facts-good"), lambda s: 700),
    ("Node::requested_by_others_millicores", lambda s: s.node("facts-open"), lambda s: 0),
    ("Node::schedulable", lambda s: s.node("facts-cordoned"), lambda s: False),
    ("Node::schedulable", lambda s: s.node("facts-contested"), lambda s: True),
    ("Node::group", lambda s: s.node("facts-good"), lambda s: s.node("facts-gold")["group"]),
    ("Node::gpus", lambda s: s.node("facts-open"), lambda s: 4),
    ("Node::free_memory_bytes", lambda s: s.node("facts-good"), lambda s: 64 * GIBIBYTE - 256 * MEBIBYTE),
    ("Node::network_bytes_per_second", lambda s: s.node("facts-fast"), lambda s: 100e9 / 8),
    ("Node::price_per_hour", lambda s: s.node("facts-priced"), lambda s: 8),
    ("Node::price_per_hour", lambda s: s.node("facts-gold"), lambda s: facts.GOLD_PRICE),
    ("Node::price_per_hour", lambda s: s.node("facts-good"), lambda s: 0),
    ("Node::spot", lambda s: s.node("facts-spot"), lambda s: True),
    ("Node::spot", lambda s: s.node("facts-steady"), lambda s: False),
    ("Worker::name", lambda s: s.worker(), lambda s: "fleeting-worker-0"),
    ("Worker::node", lambda s: s.worker(), lambda s: s.worker_pod()["spec"]["nodeName"]),
    ("Worker::ready", lambda s: s.worker(), lambda s: True),
    ("Worker::ready", lambda s: s.job("gated")["workers"][0], lambda s: False),
    ("Worker::draining", lambda s: s.worker(), lambda s: False),
    ("TrainerHost::node", lambda s: s.job("vision")["hosts"][0], own_node),
    ("TrainerHost::ranks", lambda s: s.job("idle")["hosts"][0], lambda s: 2),
    ("TrainerHost::gpus", lambda s: s.job("idle")["hosts"][0], lambda s: 2),
    ("TrainerHost::request_millicores", lambda s: s.job("vision")["hosts"][0], lambda s: s.feeder_cpu("requests")),
    ("TrainerHost::limit_millicores", lambda s: s.job("vision")["hosts"][0], lambda s: s.feeder_cpu("limits")),
    ("Job::id", lambda s: s.job("careful"), lambda s: {"namespace": facts.BUDGETED, "name": "careful"}),
    ("Job::running", lambda s: s.job("vision"), lambda s: True),
    ("Job::running", lambda s: s.job("idle"), lambda s: False),
    ("Job::quota", lambda s: s.job("careful"), lambda s: facts.BUDGETED),
    ("Job::ranks", lambda s: s.job("idle"), lambda s: 2),
    ("Job::gpus", lambda s: s.job("idle"), lambda s: 2),
    ("Job::weight", lambda s: s.job("idle"), lambda s: SPEC["idle"]["weight"]),
    ("Job::weight", lambda s: s.job("second"), lambda s: facts.CAPS["maxWeight"]),
    ("Job::priority", lambda s: s.job("first"), lambda s: SPEC["first"]["priority"]),
    ("Job::priority", lambda s: s.job("thrifty"), lambda s: facts.CAPS["maxPriority"]),
    ("Job::mode", lambda s: s.job("advised"), lambda s: "Recommend"),
    ("Job::placement", lambda s: s.job("idle"), lambda s: "Local"),
    ("Job::min_workers", lambda s: s.job("zoned"), lambda s: SPEC["zoned"]["dataWorkers"]["min"]),
    ("Job::max_workers", lambda s: s.job("idle"), lambda s: SPEC["idle"]["dataWorkers"]["max"]),
    ("Job::max_workers", lambda s: s.job("gated"), lambda s: 2),  # that the gate holds back, and go on asking
    ("Job::held_at_gate", lambda s: s.job("gated"), lambda s: True),
    ("Job::held_at_gate", lambda s: s.job("fleeting"), lambda s: False),
    ("Job::worker_millicores", lambda s: s.job("fleeting"), lambda s: 500),
    ("Job::storage", lambda s: s.job("vision"), lambda s: "disk"),
    ("Job::storage", lambda s: s.job("careful"), lambda s: ""),  # none of its pods has the claim
    ("Job::worker_memory_bytes", lambda s: s.job("careful"), lambda s: 9 * GIBIBYTE),
    ("Job::worker_memory_bytes", lambda s: s.job("fleeting"), lambda s: 48 * MEBIBYTE),  # by the LimitRange
    ("Job::local_adjustable", lambda s: s.job("vision"), lambda s: True),
    ("Job::local_adjustable", lambda s: s.job("idle"), lambda s: False),
    ("Job::allocated_workers", lambda s: s.job("fleeting"), lambda s: s.pool("fleeting")["spec"]["replicas"]),
    ("SpreadRule::most_ahead", lambda s: s.spread("zoned"), lambda s: 1),
    ("SpreadRule::counted_domains", lambda s: s.spread("zoned"), lambda s: sorted({s.domain(name, "zoned") for name in ("facts-a1", "facts-b1")})),
    ("SpreadRule::counted_domains", lambda s: s.spread("fleeting"), lambda s: []),
    ("SpreadRule::closed_outside", lambda s: s.spread("zoned"), lambda s: True),
    ("SpreadRule::closed_outside", lambda s: s.spread("fleeting"), lambda s: False),
    ("ClusterSnapshot::budget_per_hour", lambda s: s.snapshot, lambda s: facts.BUDGET),
    ("Storage::name", lambda s: published(s.snapshot, "ClusterSnapshot::storages")[0], lambda s: "archive"),
    ("Storage::bytes_per_second", lambda s: s.snapshot["storages"][0], lambda s: facts.STORAGES["archive"]["bytesPerSecond"]),
    ("Storage::bytes_per_second", lambda s: s.snapshot["storages"][1], lambda s: facts.STORAGES["disk"]["bytesPerSecond"]),
    ("Quota::name", lambda s: s.quota(facts.QUOTED), lambda s: facts.QUOTED),
    ("Quota::worker_millicores", lambda s: s.quota(facts.QUOTED), lambda s: facts.QUOTA_MILLICORES - millicores(used_by_quota(s))),
    ("Quota::budget_per_hour", lambda s: s.quota(facts.BUDGETED), lambda s: facts.NAMESPACE_BUDGET),
    ("LocalCpu::node", lambda s: s.plan("vision")["local"][0], own_node),
    ("JobPlan::id", lambda s: s.plan("careful"), lambda s: "careful"),
    ("JobPlan::workers", lambda s: s.plan("fleeting"), lambda s: s.pool("fleeting")["spec"]["replicas"]),
    ("JobPlan::workers", lambda s: s.plan("advised"), lambda s: 0),
    ("JobPlan::workers", lambda s: s.plan("gated"), lambda s: 2),
    ("JobPlan::recommended", lambda s: s.plan("advised"), lambda s: s.training_job("advised")["status"]["workers"]["recommended"]),
    ("JobPlan::new_worker_nodes", lambda s: s.plan("careful"), lambda s: ["facts-good", "facts-good"]),
    ("JobPlan::reason", lambda s: s.plan("frugal"), lambda s: "Quota"),
    ("Plan::capacity_millicores", lambda s: s.page["cpu"], capacity),
    ("Plan::granted_millicores", lambda s: s.page["cpu"], lambda s: sum(job["workers"] * s.job(job["name"])["workerMillicores"] for job in s.page["jobs"])),
]  # fmt: skip


@pytest.mark.parametrize("field, place, expected", SEEN, ids=[f"{row[0]}-{number}" for number, row in enumerate(SEEN)])
def test_a_field_is_what_the_objects_say(seen, field, place, expected):
    assert published(place(seen), field) == expected(seen)


def test_lists_hold_all_that_is_there(seen):
    names = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in seen.bed.cluster.items("/apis/sluice.dev/v1alpha1/trainingjobs")}
    assert {(job["id"]["namespace"], job["id"]["name"]) for job in published(seen.snapshot, "ClusterSnapshot::jobs")} == names
    assert {(job["namespace"], job["name"]) for job in published(seen.page, "Plan::jobs")} == names
    nodes = {node["metadata"]["name"] for node in seen.bed.cluster.items("/api/v1/nodes")}
    assert {node["name"] for node in published(seen.snapshot, "ClusterSnapshot::nodes")} == nodes
    assert {quota["name"] for quota in published(seen.snapshot, "ClusterSnapshot::quotas")} == {facts.BUDGETED, facts.QUOTED}
    assert len(published(seen.job("vision"), "Job::hosts")) == 1
    bound = {worker["name"]: worker["node"] for worker in published(seen.job("fleeting"), "Job::workers")}
    assert bound == {name: pod["spec"]["nodeName"] for name, pod in seen.pods.items() if pod["metadata"].get("labels", {}).get("facts") == "fleeting"}


def test_nodes_that_a_job_tells_apart_are_of_groups_that_it_closes(seen):
    closed = published(seen.job("careful"), "Job::closed_groups")
    assert {node["name"] for node in seen.snapshot["nodes"] if node["group"] not in closed} == {
        node.name for node in facts.NODES if node.pool == "careful" and node.name not in ("facts-tainted", "facts-cordoned")}  # fmt: skip


def test_domains_are_the_values_of_the_label_that_a_rule_names(seen):
    assert seen.domain("facts-a1", "zoned") == seen.domain("facts-a2", "zoned") != seen.domain("facts-b1", "zoned")
    topology = published(published(seen.job("zoned"), "Job::spread")[0], "SpreadRule::topology")
    assert published(seen.node("facts-good"), "Node::domains")[topology] is None
    assert topology != published(seen.spread("fleeting"), "SpreadRule::topology")
    assert seen.domain("facts-steady", "fleeting") != seen.domain("facts-spot", "fleeting")


def test_times_are_those_of_the_objects(seen):
    decided = datetime.datetime.fromisoformat(seen.page["decidedAt"].replace("Z", "+00:00")).timestamp()
    assert 0 <= published(seen.snapshot, "ClusterSnapshot::taken_at_seconds") - decided < 1
    condition = next(each for each in seen.worker_pod()["status"]["conditions"] if each["type"] == "Ready")
    # The objects have whole seconds; what the operator sees happen is more exact.
    for field, stamp in (("Worker::created_at_seconds", seen.worker_pod()["metadata"]["creationTimestamp"]),
                         ("Worker::ready_since_seconds", condition["lastTransitionTime"])):  # fmt: skip
        assert 0 <= published(seen.worker(), field) - seconds_of(stamp) <= 5, field


@pytest.mark.parametrize("field, kind", [("LocalCpu::request_millicores", "request"), ("LocalCpu::limit_millicores", "limit")])
def test_the_feeder_has_the_cpu_of_the_plan(seen, field, kind):
    assert published(seen.plan("vision")["local"][0], field) > 0 and is_in_force(seen, kind)
    assert len(published(seen.plan("vision"), "JobPlan::local")) == 1


# A field of what vision is measured by, the part of the page that has it, the chart's query for it, and the placement of the executors.
MEASURED = [
    ("Measurement::samples_per_second", Page.measurement, "samplesPerSecond", ""),
    ("Measurement::compute_share", Page.measurement, "computeShare", ""),
    ("Measurement::wait_share", Page.measurement, "dataWaitShare", ""),
    ("Measurement::batches_in_window", Page.measurement, "batchesInWindow", ""),
    ("Measurement::blocked_threads", Page.measurement, "blockedThreads", ""),
    ("Measurement::read_bytes_per_sample", Page.measurement, "readBytesPerSample", ""),
    ("SourceRate::samples_per_second", lambda s: published(s.measurement(), "Measurement::local"), "workerSamplesPerSecond", "local"),
    ("SourceRate::busy_cores", lambda s: published(s.measurement(), "Measurement::local"), "workerBusyCores", "local"),
    ("PrefetchQueue::depth", lambda s: published(s.measurement(), "Measurement::queue"), "queueDepth", ""),
    ("PrefetchQueue::capacity", lambda s: published(s.measurement(), "Measurement::queue"), "queueCapacity", ""),
    ("Job::remaining_samples", lambda s: s.job("vision"), "remainingSamples", ""),
    ("Job::bytes_per_sample", lambda s: s.job("vision"), "bytesPerSample", ""),
]


@pytest.mark.parametrize("field, place, query, placement", MEASURED, ids=[f"{row[0]}-{row[3]}" for row in MEASURED])
def test_a_measured_field_is_prometheus_own_answer(seen, field, place, query, placement):
    labels = {"training_job": "vision", **({"placement": placement} if placement else {})}
    answers = seen.answers(chart_queries(window_of(seen))[query], -ASKED_SECONDS, 0.2, **labels)
    assert is_between(published(place(seen), field), answers), answers


def test_the_window_is_that_of_the_values_and_ends_with_the_newest_scrape(seen):
    measured = published(published(seen.job("vision"), "Job::observation"), "Observation::measurement")
    assert published(measured, "Measurement::window_seconds") == int(window_of(seen).rstrip("s"))
    scrapes = seen.answers('timestamp(sluice_trainer_samples_total{training_job="vision"})', -ASKED_SECONDS, 0.2)
    assert is_between(published(measured, "Measurement::window_end_seconds") - seen.at, [each - seen.at for each in (*scrapes, seen.at)])


def test_a_job_without_metrics_says_why(seen):
    reason = published(seen.job("careful")["observation"], "Observation::missing_reason")
    told = next(each for each in seen.training_job("careful")["status"]["conditions"] if each["type"] == "MetricsAvailable")
    assert reason and reason == told["message"]


def test_the_status_has_the_explanation(seen):
    assert seen.training_job("dear")["status"]["explanation"].startswith(published(seen.plan("dear"), "JobPlan::explanation"))


ESTIMATE = 'sluice_job_estimate{training_job="vision", quantity="%s"}'


def test_the_figures_of_the_decision_are_those_that_prometheus_is_told(seen):
    plan, estimate = seen.plan("vision"), published(seen.plan("vision"), "JobPlan::estimate")
    assert is_between(estimate["kneeCores"], seen.answers(ESTIMATE % "knee_cores", 0, 4))
    assert is_between(published(seen.job("vision"), "Job::memory")["demandSamplesPerSecond"], seen.answers(ESTIMATE % "demand_samples_per_second", -6, 1))
    assert is_between(published(plan, "JobPlan::supply_ratio"), seen.answers(ESTIMATE % "supply_ratio", 0, 4))
    gains = seen.answers('100 * sluice_job_gain_ratio{training_job="vision", more_workers="1"}', 0, 4)
    # Beyond the knee a gain goes with the sixth power of supply: 2 % of supply are 13 % of it.
    assert is_between(published(plan, "JobPlan::next_worker_gain_percent"), gains, change=0.13)
    assert published(plan, "JobPlan::planned_supply_ratio") > 0
    # The only job that is measured: its speed is what the plan makes of all accelerators.
    speed = (1 + published(plan, "JobPlan::planned_supply_ratio") ** -6) ** (-1 / 6)
    assert seen.page["utilisation"]["planPercent"] == pytest.approx(100 * speed, abs=0.1)
    assert published(plan, "JobPlan::bottleneck") in seen.told("bottleneck")
    assert published(plan, "JobPlan::reason") in seen.told("reason")


def test_the_evidence_is_what_was_measured(seen):
    measured = seen.measurement()
    wait = 100 * measured["waitShare"] / (measured["waitShare"] + measured["computeShare"])
    assert int(re.match(r"waits (\d+) %", published(seen.plan("vision"), "JobPlan::evidence")).group(1)) == pytest.approx(wait, abs=0.6)


@pytest.mark.parametrize("name", PLANNED)
def test_the_plan_obeys_the_facts(seen, name):
    """Of `careful`: no worker on a node that is tainted, cordoned, too small, too expensive or short of memory. `first` before `second`, by priority."""
    nodes, reason, explanation = PLANNED[name]
    plan = seen.plan(name)
    assert (plan["newWorkerNodes"], reason or plan["reason"]) == (nodes, plan["reason"])
    assert explanation in plan["explanation"]


def test_zones_get_equal_numbers_of_workers(seen):
    plan = seen.plan("zoned")
    assert collections.Counter(NODE[name].labels[facts.ZONE] for name in plan["newWorkerNodes"]) == {"a": 2, "b": 1}
    assert (plan["reason"], "Anti-affinity or topology spread of its workers limits it to 3" in plan["explanation"]) == ("Spread", True)


def test_workers_prefer_the_nodes_that_the_plan_has_found_and_get_them(world, seen):
    preferred = {}
    for pod in world.pods("worker", "fleeting"):
        (preference,) = pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
        (field,) = preference["preference"]["matchFields"]
        preferred[pod["spec"]["nodeName"]] = field["values"]
    assert preferred == {"facts-spot": ["facts-spot"], "facts-steady": ["facts-steady"]}


def test_of_two_workers_the_one_on_a_spot_node_goes(world, seen):
    on_spot = next(worker["name"] for worker in seen.job("fleeting")["workers"] if worker["node"] == "facts-spot")
    fewer = json.dumps({"spec": {"dataWorkers": {"min": 1, "max": 1}}})
    world.kubectl("-n", JOBS_NAMESPACE, "patch", "trainingjob", "fleeting", "--type=merge", "-p", fewer)
    asked = look_until(world, lambda page: page.plan("fleeting")["victims"])
    assert published(asked.plan("fleeting"), "JobPlan::victims") == [on_spot]
    leaving = look_until(world, lambda page: not page.plan("fleeting")["victims"])
    assert {worker["name"]: published(worker, "Worker::draining") for worker in leaving.job("fleeting")["workers"]}[on_spot]


def test_a_node_whose_network_is_full_gets_no_worker(world, seen):
    """Vision's workers may now go to two nodes, and the fast one has room for one of them."""
    pod = {"nodeSelector": {"facts": "linked"}, "tolerations": [{"key": "facts", "operator": "Exists"}]}
    resources = {"requests": {"cpu": "600m", "memory": facts.REFUSED_MEMORY}, "limits": None}
    change = {"spec": {"dataWorkers": {"min": 3, "resources": resources, "template": {"spec": pod}}}}
    world.kubectl("-n", JOBS_NAMESPACE, "patch", "trainingjob", "vision", "--type=merge", "-p", json.dumps(change))
    page = look_until(world, lambda page: page.plan("vision")["newWorkerNodes"])
    plan = page.plan("vision")
    assert page.node("facts-slow")["networkBytesPerSecond"] == 125
    assert (plan["newWorkerNodes"], plan["reason"]) == (["facts-fast"], "Network"), plan


def test_a_job_whose_storage_is_full_gets_no_worker(world, seen):
    """Vision's feeder reads more than the whole archive gives. Its minimum finds nothing to read either."""
    archive = {"name": "archive", "persistentVolumeClaim": {"claimName": "archive"}}
    pod = {"nodeSelector": {"facts": "linked"}, "tolerations": [{"key": "facts", "operator": "Exists"}], "volumes": [archive]}
    change = {"spec": {"dataWorkers": {"min": 1, "template": {"spec": pod}}}}
    world.kubectl("-n", JOBS_NAMESPACE, "patch", "trainingjob", "vision", "--type=merge", "-p", json.dumps(change))
    plan = look_until(world, lambda page: page.plan("vision")["reason"] == "Storage").plan("vision")
    assert (plan["workers"], plan["newWorkerNodes"]) == (0, []), plan
    assert plan["explanation"].startswith("Storage archive limits it to 0 workers: other jobs have the rest of its bandwidth"), plan
