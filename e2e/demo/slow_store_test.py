"""The fifth situation: its figures from what the store and the trainers tell, and its checks."""

import json
import pathlib

import jobs
import pytest
import report
import slow_store
import slow_store_report
from watch import CpuRecord, JobRecord

MEGABYTE = 1_000_000


def record(name, finished):
    found = JobRecord(name, applied=90.0, finished=finished, bottlenecks={"DataBoundStorage": 17.0})
    found.result = {"utilisation_percent": 33.0, "samples_per_second": 100.0, "complete": True, "epochs": [{"digest": "aa"}, {"digest": "bb"}]}
    return found


def test_reads_belong_to_the_epoch_of_their_job_in_which_they_were_asked_for():
    events = [{"event": "start", "time": 100.0}, {"event": "progress", "time": 104.0}, {"event": "epoch", "time": 110.0}, {"event": "epoch", "time": 120.0}]
    reads = [[95.0, "10.0.0.1", 7 * MEGABYTE], [100.0, "10.0.0.1", 2 * MEGABYTE], [109.9, "10.0.0.1", MEGABYTE], [110.0, "10.0.0.1", 4 * MEGABYTE],
             [105.0, "10.0.0.2", 50 * MEGABYTE], [120.0, "10.0.0.1", 60 * MEGABYTE]]  # fmt: skip
    figures = slow_store_report.job_figures(record("photos-1", 120.0), "10.0.0.1", events, reads)
    assert (figures["megabytes_for_index"], figures["megabytes_by_epoch"]) == (7.0, [3.0, 4.0])
    assert (figures["completion_seconds"], figures["digests"], figures["in_loop_percent"]) == (30.0, ["aa", "bb"], 33.0)


def test_a_run_takes_from_the_first_start_to_the_last_end():
    run = slow_store_report.run_figures("no cache", {"photos-1": {"started": 100.0, "ended": 120.0}, "photos-2": {"started": 103.0, "ended": 124.5}}, CpuRecord())
    assert run["first_start_to_last_end_seconds"] == 24.5
    assert run["jobs"] == {"photos-1": {}, "photos-2": {}}


def a_run(name, seconds, reads, digests=(("a", "b"), ("c", "d")), bottlenecks=None, complete=True, requested=1.2):
    """`reads`: megabytes of each job, by epoch."""
    made = {job: {"megabytes_by_epoch": reads, "complete": complete, "digests": list(own), "in_loop_percent": 33.3,
                  "bottlenecks": {"DataBoundStorage": 17.0} if bottlenecks is None else bottlenecks}
            for job, own in zip(jobs.PHOTOS, digests, strict=True)}  # fmt: skip
    return {"name": name, "first_start_to_last_end_seconds": seconds, "jobs": made, "cpu": {"allocatable_cores": 1.7, "most_requested_cores": requested}}


def figures(without=None, full=None, part=None):
    runs = [{"name": "no cache", "seconds": 23.0, "reads": [38.0, 38.0], **(without or {})},
            {"name": "room for all", "seconds": 10.0, "reads": [20.0, 0.1], **(full or {})},
            {"name": "room for 0.4", "seconds": 14.0, "reads": [34.0, 17.0], **(part or {})}]  # fmt: skip
    return {"title": "two jobs", "photographs": 400, "epochs": 2, "megabytes": 37.0, "runs": [a_run(**run) for run in runs]}


@pytest.mark.parametrize("name, changes, failing", [
    ("all well", {}, []),
    ("another order with a cache", {"full": {"digests": (("b", "a"), ("c", "d"))}}, ["(e) batches"]),
    ("both jobs in one order", {run: {"digests": (("a", "b"), ("a", "b"))} for run in ("without", "full", "part")}, ["(e) batches"]),
    ("samples missing", {"part": {"complete": False}}, ["(e) every sample"]),
    ("a job that reads less than its data set", {"without": {"reads": [38.0, 28.0]}, "part": {"reads": [20.0, 10.0]}}, ["(e) without a cache both jobs read"]),
    ("a cache that loses", {"full": {"reads": [20.0, 4.0]}}, ["(e) with room for all"]),
    ("one that keeps nothing of use", {"part": {"reads": [38.0, 20.0]}}, ["(e) with room for 0.4"]),
    ("one that is slower than none", {"full": {"seconds": 24.0}}, ["(e) from the first start"]),
    ("another bottleneck", {"without": {"bottlenecks": {"DataBoundOther": 17.0}}}, ["(e) without a cache the operator named"]),
    ("too much CPU", {"part": {"requested": 1.8}}, ["(e) CPU requested"]),
])  # fmt: skip
def test_checks(name, changes, failing):
    failed = [what for what, holds in slow_store_report.checks(figures(**changes)) if not holds]
    assert len(failed) == len(failing) and all(what.startswith(start) for what, start in zip(failed, failing)), failed
    assert slow_store_report.checks(None) == []


def test_a_failed_check_says_what_was_seen():
    failed = [what for what, holds in slow_store_report.checks(figures(without={"bottlenecks": {}}, full={"reads": [20.0, 9.0]})) if not holds]
    assert any("the epochs behind the first read 18.0 MB from the store, at most 0.1 of the 76.0 MB" in what for what in failed)
    assert any(what.endswith("(DataBoundStorage), but said nothing; nothing") for what in failed)


def test_the_fifth_situation_alone_has_a_report_of_its_own():
    found = figures()
    text = report.text({"date": "today", "machine": "m", "versions": "v", "phases": [], "slow_store": found, "checks": slow_store_report.checks(found)})
    assert "no cache           23.0  33.3 and 33.3  76.0  76.0" in text and "room for all       10.0" in text
    assert "called photos-1 DataBoundStorage after 17 s" in text and "FAILS" not in text


def test_the_jobs_differ_in_their_order_alone():
    site = jobs.own_cluster_site("sluice-demo", "registry.example/trainer:1")
    store = slow_store.Store(None, site)
    store.urls = "http://10.0.0.9:9000/photographs/{0..3}.tar"
    first, second = (jobs.manifest(job, slow_store.PHASE, site, arguments=slow_store.arguments(store, seed)).splitlines() for seed, job in enumerate(jobs.PHOTOS, 1))
    changed = [(here.strip(), there.strip()) for here, there in zip(first, second, strict=True) if here != there]
    assert [here.split(":")[0] for here, _ in changed] == ["name", "args"]
    assert json.loads(changed[1][0].split(": ", 1)[1])[:2] == ["--data", store.urls]


def test_the_store_runs_the_benches_program_from_the_config_map():
    files = json.loads(jobs.scripts_config_map("sluice-demo"))["data"]
    assert "from paced_store import" in files["store.py"] and "class PacedStore" in files["paced_store.py"]
    assert pathlib.Path(jobs.PACED_STORE).name == "paced_store.py"
    text = jobs.filled("store", slow_store.STORE, jobs.own_cluster_site("sluice-demo", "registry.example/trainer:1"), ["/data/photographs"])
    assert "sluice.dev" not in text and "/demo/store.py" in text
