"""The runner's own counting: a test that fails, crashes or vanishes is never counted as passed, in the background neither."""

import os
import subprocess
import sys
import threading
import time
import types

import pytest
import run

REPORT = """<Catch name="x"><Group name="x">
<TestCase name="a"><OverallResult success="true"/></TestCase>
<TestCase name="b"><OverallResult success="{success}"/></TestCase>
<OverallResultsCases successes="{passed}" failures="{failed}" expectedFailures="0"/></Group></Catch>"""


def tally_of(tmp_path, text, ok):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    tally = run.count_catch("x", report, ok)
    return tally.passed, tally.failed


def test_passes_and_failures_are_counted_by_test_case(tmp_path):
    assert tally_of(tmp_path, REPORT.format(success="true", passed=2, failed=0), True) == (2, 0)
    assert tally_of(tmp_path, REPORT.format(success="false", passed=1, failed=1), False) == (1, 1)


def test_a_sanitizer_report_after_the_last_test_is_a_failure(tmp_path):
    assert tally_of(tmp_path, REPORT.format(success="true", passed=2, failed=0), False) == (2, 1)


def test_a_crash_that_leaves_no_report_is_a_failure(tmp_path):
    assert tally_of(tmp_path, None, False) == (0, 1)
    assert tally_of(tmp_path, "<Catch name='x'><Group", False) == (0, 1)


def test_the_summary_names_each_failed_case_and_why(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "FAILURES", [])
    monkeypatch.setattr(run, "LOGS", tmp_path)
    because = '<Expression success="false" filename="a_test.cc" line="7"><Expanded>\n 1 == 2\n</Expanded></Expression>'
    tally_of(tmp_path, REPORT.format(success="false", passed=1, failed=1).replace('<OverallResult success="false"/>',
                                                                                  because + '<OverallResult success="false"/>'), False)  # fmt: skip
    (tmp_path / "adding_test.py").write_text("def test_adds():\n    assert 1 + 1 == 3, 'the sum'\n")
    assert run.pytest("adding", [str(tmp_path / "adding_test.py")], python=sys.executable).failed == 1
    assert run.FAILURES[0] == "x: b: a_test.cc:7: 1 == 2"
    assert run.FAILURES[1] == "adding: exit status 1"
    assert run.FAILURES[2].startswith("adding: ") and "test_adds: AssertionError: the sum" in run.FAILURES[2]


@pytest.fixture
def ran(monkeypatch):
    """Commands are recorded by name instead of run; those in `failing` fail."""
    recorded = types.SimpleNamespace(names=[], failing=set())

    def record(name, *_, **__):
        recorded.names.append(name)
        return name not in recorded.failing

    monkeypatch.setattr(run, "run", record)
    return recorded


def test_the_background_runs_stages_in_order_and_at_the_lowest_priority_but_not_the_others():
    before = os.nice(0)
    background = run.Background()
    order = []

    def niceness(number):
        order.append(number)
        return int(subprocess.run(["nice"], capture_output=True, text=True).stdout)

    results = [background.start(lambda number=number: niceness(number)) for number in range(3)]
    assert [result.result(60) for result in results] == [19, 19, 19]
    assert order == [0, 1, 2]
    assert os.nice(0) == before


def test_an_exception_in_the_background_is_not_lost_and_does_not_end_it():
    background = run.Background()
    broken = background.start(lambda: 1 // 0)
    assert background.start(lambda: "next").result(60) == "next"
    with pytest.raises(ZeroDivisionError):
        broken.result(60)


def test_every_fuzz_target_is_a_test(ran):
    listed = [path.name.removesuffix("_fuzz.cc") for path in (run.ROOT / "src").glob("*/fuzz/*_fuzz.cc")]
    assert len(listed) >= 9
    assert run.fuzzing() == run.Tally(passed=len(listed))
    assert ran.names == ["build-fuzz", *(f"fuzz-{target}" for target in sorted(listed))]


def test_a_fuzz_target_that_fails_or_is_not_built_is_a_failure(ran):
    ran.failing.add("fuzz-watch")
    assert run.fuzzing().failed == 1
    ran.failing.add("build-fuzz")
    assert run.fuzzing() == run.Tally(failed=1)


def test_the_seeds_are_a_test_and_the_themes_are_one(ran):
    ran.failing.add("simulation-seeds")
    assert run.simulation_runs() == run.Tally(passed=1, failed=1)
    assert ran.names == ["build-simulation", "simulation-themes", "simulation-seeds"]


def test_what_runs_in_the_background_is_in_the_total(ran):
    sound = run.fuzzing().passed + run.simulation_runs().passed
    ran.failing.add("fuzz-status")
    ran.failing.add("simulation-seeds")
    total = run.run_stages(["fuzz", "simulation"])
    assert (total.passed, total.failed) == (sound - 2, 2)


def test_the_cluster_has_the_machine_for_itself(ran, monkeypatch):
    """What ran beside its tests took the processors that they measure."""
    before_the_cluster = []

    def slow(name):
        time.sleep(0.2)
        ran.names.append(name)
        return run.Tally(passed=1)

    for stage in ("fuzzing", "simulation_runs", "unit_tests", "thread_tests"):
        monkeypatch.setattr(run, stage, lambda stage=stage: slow(stage))
    monkeypatch.setattr(run, "pytest", lambda name, *_, **__: before_the_cluster.append((name, set(ran.names))) or run.Tally(passed=1))
    assert run.run_stages(run.STAGES).failed == 0
    for name, done in before_the_cluster:
        if name in ("cluster", "e2e"):
            assert done >= {"fuzzing", "simulation_runs", "unit_tests", "thread_tests", "cluster-binaries"}


def test_c_and_python_have_a_lane_each(ran, monkeypatch):
    both = threading.Barrier(2)

    def meets(*_):
        both.wait(60)
        return run.Tally(passed=1)

    monkeypatch.setattr(run, "unit_tests", meets)
    monkeypatch.setattr(run, "python_tests", meets)
    assert run.run_stages(["unit", "python"]) == run.Tally(passed=2)


@pytest.mark.parametrize("missing", ["cluster-binaries", "data-set-speech"])
def test_without_what_the_cluster_needs_the_end_to_end_tests_fail_rather_than_vanish(ran, monkeypatch, missing):
    monkeypatch.setattr(run, "pytest", lambda *_, **__: pytest.fail("there is no cluster to run on"))
    ran.failing.add(missing)
    assert run.run_stages(["e2e"]).failed == 1


@pytest.mark.parametrize("failing", [None, "dataset-packages", "photographs"])
def test_what_looks_at_photographs_waits_for_them_and_fails_without_them(ran, monkeypatch, failing):
    order = []
    monkeypatch.setattr(run, "pytest", lambda name, *_: order.append((name, "photographs" in ran.names)) or run.Tally(passed=1))
    if failing:
        ran.failing.add(failing)
    total = run.run_stages(["python"])
    waiting = {"pipeline", "datasets"}
    assert {name for name, made in order if name in waiting and made} == (set() if failing else waiting)
    assert (total.passed, total.failed) == (len(order), len(waiting) if failing else 0)


def test_a_build_that_fails_is_a_failure(ran):
    ran.failing.update({"build-build", "build-asan", "build-tsan"})
    assert run.run_stages(["unit", "threads"]) == run.Tally(failed=3)


def test_a_test_that_hangs_fails_with_its_stack_and_the_next_one_runs(tmp_path, monkeypatch):
    (tmp_path / "waiting_test.py").write_text("import time\ndef test_hangs(): time.sleep(100)\ndef test_next(): pass\n")
    for name, value in {"LOGS": tmp_path, "TEST_SECONDS": 1, "PYTHON": sys.executable}.items():
        monkeypatch.setattr(run, name, value)
    assert run.pytest("waiting", [str(tmp_path / "waiting_test.py")]) == run.Tally(passed=1, failed=1)
    assert "def test_hangs(): time.sleep(100)" in (tmp_path / "waiting.log").read_text()
