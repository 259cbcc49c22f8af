"""The watcher against a cluster of dictionaries, and the report from what it recorded."""

import io
import json

import pytest
import report
from cluster_api import cores, jobs_path, pod_cpu_request, pods_path
from console import Console, DemoError
from jobs import PHASES
from own_cores import neighbour_cores
from watch import Watcher, condition, log_events

RESULT = {"event": "result", "time": 150.0, "accelerator": "emulated", "loader": "torch", "samples": 10, "samples_per_second": 5.0,
          "compute_seconds": 20.0, "wait_seconds": 5.0, "utilisation_percent": 80.0, "second_half_percent": 90.0, "complete": True,
          "epochs": [{"epoch": 0, "digest": "aa"}]}  # fmt: skip


class FakeCluster:
    """Answers like cluster_api.Cluster, from a status and a log that the test sets."""

    def __init__(self):
        self.status, self.log, self.metrics, self.worker_request, self.events = {}, "", "", "200m", []

    def items(self, path, **query):
        trainer = {"metadata": {"name": "vision-0-abc", "labels": {"sluice.dev/job": "vision", "sluice.dev/component": "trainer"}},
                   "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": "400m"}}}]},
                   "status": {"startTime": "1970-01-01T00:01:42Z", "phase": "Running"}}  # fmt: skip
        worker = {"metadata": {"name": "vision-worker-0", "labels": {"sluice.dev/component": "worker"}},
                  "spec": {"nodeName": "n", "containers": [{"resources": {"requests": {"cpu": self.worker_request}}}]}, "status": {}}  # fmt: skip
        return {
            jobs_path("ns"): [{"metadata": {"name": "vision", "uid": "uid-2"}, "status": self.status}],
            "/api/v1/namespaces/ns/events": self.events,
            pods_path("ns"): [trainer],
            "/api/v1/pods": [trainer, worker],
            "/api/v1/nodes": [{"status": {"allocatable": {"cpu": "1700m"}}}],
        }.get(path, [])

    def get_text(self, path, **query):
        return self.metrics if path.endswith("/proxy/metrics") else self.log


@pytest.fixture
def cluster():
    return FakeCluster()


@pytest.fixture
def watcher(cluster):
    return Watcher(cluster, "ns", Console(io.StringIO()), "(c)", ["vision"], applied=100.0, wall=lambda: 130.0)


def test_a_job_is_followed_from_first_worker_to_result(cluster, watcher):
    cluster.status = {"workers": {"desired": 3, "ready": 0}, "explanation": "starved"}
    watcher.look()
    cluster.status = {"workers": {"desired": 3, "ready": 2}, "explanation": "starved"}
    cluster.metrics = 'sluice_feeder_first_remote_batch_timestamp_seconds{training_job="vision"} 109.5\n'
    watcher.look()
    cluster.status = {"workers": {"desired": 0, "ready": 0}, "conditions": [{"type": "Succeeded", "status": "True"}], "explanation": "over"}
    cluster.log = "some library's warning\n" + json.dumps(RESULT) + "\n"
    watcher.look()

    job = watcher.jobs["vision"]
    assert job.decisions == [(30.0, 0, 3, "starved"), (30.0, 3, 0, "over")]
    assert (job.most_desired, job.most_ready, job.first_remote, job.finished) == (3, 2, 109.5, 150.0)
    figures = report.phase_figures(PHASES[2], watcher)
    assert figures["jobs"]["vision"]["first_remote_batch_seconds"] == 9.5
    assert figures["jobs"]["vision"]["completion_seconds"] == 50.0
    assert figures["jobs"]["vision"]["allocated_percent"] == 41.7  # 20 s of computing in the 48 s since the pod started
    assert figures["cluster"]["wall_percent"] == 40.0  # 20 s of 50 s
    assert figures["cpu"]["most_requested_cores"] == 0.6


def test_bottlenecks_are_those_that_the_operator_was_sure_of(cluster, watcher):
    for bottleneck, known in [("Unknown", "Unknown"), ("DataBoundCpu", "True"), ("GpuBound", "False"), ("DataBoundStorage", "Unknown")]:
        cluster.status = {"bottleneck": bottleneck, "conditions": [{"type": "DataBound", "status": known}]}
        watcher.look()
    assert watcher.jobs["vision"].bottlenecks == {"DataBoundCpu": 30.0, "GpuBound": 30.0}


def test_a_failed_job_ends_the_run_with_its_log(cluster, watcher):
    cluster.status = {"conditions": [{"type": "Failed", "status": "True"}]}
    cluster.log = "Traceback: out of memory"
    with pytest.raises(DemoError, match="out of memory"):
        watcher.look()


def test_a_job_that_never_ends_is_an_error(watcher):
    with pytest.raises(DemoError, match="vision did not end"):
        watcher.follow(-1)


def test_condition_is_unknown_until_it_is_written():
    assert condition({}, "Ready") is None
    assert condition({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "Ready") is False


def test_warnings_are_told_once_and_only_those_of_this_phase(cluster):
    def warning(uid, reason):
        return {"involvedObject": {"kind": "TrainingJob", "name": "vision", "uid": uid}, "reason": reason, "message": "because"}

    out = io.StringIO()
    watcher = Watcher(cluster, "ns", Console(out), "(c)", ["vision"], applied=100.0, wall=lambda: 130.0)
    cluster.events = [warning("uid-1", "MetricsLost"), warning("uid-2", "ChildConflict")]
    watcher.look()
    watcher.look()
    assert out.getvalue().count("warning ChildConflict: because") == 1
    assert "MetricsLost" not in out.getvalue()


def test_log_lines_that_are_not_events_are_skipped():
    assert log_events('{"event": "a"}\n{broken\nplain\n{"event": "b"}') == [{"event": "a"}, {"event": "b"}]
    assert log_events(None) == []


@pytest.mark.parametrize("quantity, want", [("250m", 0.25), ("2", 2.0), (1, 1.0), ("1500m", 1.5)])
def test_cores(quantity, want):
    assert cores(quantity) == want


def container(cpu, **fields):
    return {"resources": {"requests": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize("name, spec, want", [
    ("containers add up", {"containers": [container("100m"), container("200m")]}, 0.3),
    ("a sidecar counts as a container", {"containers": [container("100m")], "initContainers": [container("300m", restartPolicy="Always")]}, 0.4),
    ("a first container counts alone", {"containers": [container("100m")], "initContainers": [container("50m")]}, 0.1),
    ("unless it is larger", {"containers": [container("100m")], "initContainers": [container("500m")]}, 0.5),
    ("a pod's own request rules", {"resources": {"requests": {"cpu": "400m"}}, "containers": [container("100m")]}, 0.4),
    ("nothing asked", {"containers": [{}]}, 0.0),
])  # fmt: skip
def test_pod_cpu_request(name, spec, want):
    assert pod_cpu_request({"spec": spec}) == pytest.approx(want)


def figures(key, digest, desired, requested=1.0, complete=True):
    job = {"complete": complete, "digests": [digest], "most_workers_desired": desired, "most_workers_ready": desired, "in_loop_percent": 50.0, "second_half_percent": None,
           "allocated_percent": 40.0, "wall_percent": 30.0, "completion_seconds": 100.0, "first_remote_batch_seconds": 9.0, "accelerator": "emulated",
           "decisions": [(30.0, 0, desired, "starved")] if desired else []}
    text = {**job, "most_workers_desired": 0, "most_workers_ready": 0, "decisions": []}
    cluster = {"in_loop_percent": 50.0, "allocated_percent": 40.0, "wall_percent": 30.0, "completion_seconds": 100.0, "mean_completion_seconds": 90.0}
    return {"key": key, "title": key, "jobs": {"vision": job, "text": text}, "cluster": cluster,
            "cpu": {"allocatable_cores": 1.7, "most_requested_cores": requested, "most_for_workers_cores": 0.4}}  # fmt: skip


@pytest.mark.parametrize("name, phases, failing", [
    ("all well", [figures("a", "x", 0), figures("b", "y", 2), figures("c", "y", 3)], []),
    ("samples missing", [figures("a", "x", 0, complete=False)], ["(a) every sample"]),
    ("too much CPU", [figures("a", "x", 0, requested=1.8)], ["(a) CPU requested"]),
    ("vision without workers", [figures("c", "y", 0)], ["(c) vision"]),
    ("lowering shows", [figures("b", "y", 2), figures("c", "z", 3)], ["batches of (b) and (c)"]),
])  # fmt: skip
def test_checks(name, phases, failing):
    failed = [what for what, holds in report.checks(phases) if not holds]
    assert len(failed) == len(failing) and all(what.startswith(start) for what, start in zip(failed, failing))


def test_a_worker_that_text_was_given_is_named_with_its_reason():
    phase = figures("c", "y", 3)
    phase["jobs"]["text"].update(most_workers_desired=1, decisions=[(20.0, 0, 1, "Probing: it waits 6 %"), (40.0, 1, 0, "NotDataBound")])
    failed = [what for what, holds in report.checks([phase]) if not holds]
    assert failed == ["(c) text, which is not data-bound, was given no remote worker; at 20.0 s 0 to 1: Probing: it waits 6 %"]


def test_the_report_shows_ratios_to_the_plain_phase():
    phases = [figures("a", "x", 0), figures("b", "y", 2), figures("c", "y", 3)]
    phases[2]["jobs"]["vision"].update(in_loop_percent=90.0, completion_seconds=50.0)
    run = {"date": "today", "machine": "m", "versions": "v", "phases": phases, "checks": report.checks(phases)}
    text = report.text(run)
    assert "1.80x" in text and "2.00x" in text and "FAILS" not in text


def own_cores(**changes):
    found = {"title": "own cores", "feeder_cores_at_start": 0.3, "complete": True, "digests": ["y", "z"],
             "on_host": {"utilisation_percent": 95.0, "feeder_cores": 1.0, "most_workers_desired": 0},
             "with_workers": {"utilisation_percent": 95.5, "feeder_cores": 0.4, "most_workers_ready": 2},
             "neighbour": {"alone_seconds_per_step": [0.0197, 0.0200], "seconds_per_step": 0.0202,
                           "alone_waiting_share": [0.010, 0.012], "waiting_share": 0.031, "machine_busy_share": 0.3},
             "cpu": {"most_requested_cores": 1.6, "allocatable_cores": 1.7}}  # fmt: skip
    for name, value in changes.items():
        found[name] = {**found[name], **value} if isinstance(value, dict) else value
    return found


@pytest.mark.parametrize("name, changes, failing", [
    ("all well", {}, []),
    ("the feeder did not grow", {"on_host": {"feeder_cores": 0.3}}, ["(d) free cores", "(d) a second trainer had"]),
    ("a worker started beside free cores", {"on_host": {"most_workers_desired": 1}}, ["(d) free cores"]),
    ("slow on its host", {"on_host": {"utilisation_percent": 80.0}}, ["(d) utilisation"]),
    ("the feeder kept the cores", {"with_workers": {"feeder_cores": 1.0}}, ["(d) a second trainer had"]),
    ("no worker took over", {"with_workers": {"most_workers_ready": 0}}, ["(d) a second trainer had"]),
    ("the second trainer waits for a core and is slower", {"neighbour": {"waiting_share": 0.033, "seconds_per_step": 0.0205}}, ["(d) the second trainer's steps"]),
    ("it waits and is as fast as alone", {"neighbour": {"waiting_share": 0.133, "seconds_per_step": 0.0203}}, []),
    ("it is slow on a machine that is busy", {"neighbour": {"waiting_share": 0.133, "seconds_per_step": 0.0408, "machine_busy_share": 0.41}}, []),
    ("a machine that is slow meanwhile", {"neighbour": {"seconds_per_step": 0.0408}}, []),
    ("a kernel that does not tell", {"neighbour": {"waiting_share": None, "alone_waiting_share": [None, None]}}, []),
    ("samples missing", {"complete": False}, ["(d) every sample"]),
    ("too much CPU", {"cpu": {"most_requested_cores": 1.8}}, ["(d) CPU requested"]),
    ("another order", {"digests": ["z", "y"]}, ["batches of (d)"]),
])  # fmt: skip
def test_checks_of_the_fourth_situation(name, changes, failing):
    shipped = figures("c", "y", 3)
    shipped["jobs"]["vision"]["digests"] = ["y", "z"]
    failed = [what for what, holds in report.own_cores_checks(own_cores(**changes), [shipped]) if not holds]
    assert len(failed) == len(failing) and all(what.startswith(start) for what, start in zip(failed, failing))
    assert report.own_cores_checks(None, [shipped]) == []


def test_the_fourth_situation_alone_has_a_report_of_its_own():
    run = {"date": "today", "machine": "m", "versions": "v", "phases": [], "own_cores": own_cores(), "checks": report.own_cores_checks(own_cores(), [])}
    assert "alone 0.0197 and 0.0200, beside vision 0.0202" in report.text(run)
    assert "without a core 1.0 % and 1.2 %, beside vision 3.1 % of that time" in report.text(run)


def test_batches_are_compared_by_whole_epochs_only():
    names = [what for what, _ in report.own_cores_checks(own_cores(), [figures("c", "y", 3)])]
    assert not any("batches" in name for name in names)
    assert "second trainer" in "\n".join(report.own_cores_lines(own_cores()))


@pytest.mark.parametrize("feeder_cores, needed_millicores, expected", [(0.98, 143, 0.9085), (0.98, 400, 0.8), (0.98, 900, 0.8), (0.98, None, 0.8)])
def test_beside_the_second_trainer_vision_lacks_cores_on_a_fast_machine_too(feeder_cores, needed_millicores, expected):
    status = {} if needed_millicores is None else {"observed": {"kneeMilliCores": needed_millicores}}
    assert neighbour_cores(feeder_cores, status) == pytest.approx(expected)
