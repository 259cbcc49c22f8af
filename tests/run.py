#!/usr/bin/env python3
"""Builds and runs every test of Sluice and prints `N passed, M failed` as the last line.

A stage is a command with a log file and a way to count its tests. Stages that do not need each other overlap: C++ and Python have a lane each. The Go
parts of the local cluster, the fuzzers and the simulation's runs take what these leave over. The cluster then has the machine for itself. A stage that
cannot run is a failure, never a silent skip.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "toolchain"), str(ROOT / "e2e/demo")]
import limits  # noqa: E402
from cache_folder import cache_folder  # noqa: E402
from jobs import WORK  # noqa: E402
from machine import dataset_command  # noqa: E402

START = time.monotonic()
PYTHON = str(cache_folder() / "venv/bin/python")
LOGS = ROOT / "build/test-logs"
# The libraries whose tests also run under ThreadSanitizer: everything that shares memory between threads.
THREADED_TESTS = ["sluice_base_test", "sluice_http_test", "sluice_kube_test", "sluice_kube_fake_test", "sluice_prom_test", "sluice_cache_test",
                  "sluice_transport_test", "sluice_executor_test", "sluice_feeder_test", "sluice_worker_test"]
# What a command may use: see limits.py.
CPU_SECONDS = 1800  # a test program: thirty times the longest, under a sanitizer, on a slow machine
BUILD_CPU_SECONDS = 3 * 3600  # a whole tree, or a cluster with what runs on it
TEST_SECONDS = 600  # a Python test and what it sets up: the longest make a cluster, 40 s, or wait for a job, 120 s
SIMULATION_SEEDS = 1000  # of random faults, for the time of a bare run; more: `make soak`
REASON_CHARACTERS = 500  # of a failed test, in the summary
STAGES = ["unit", "fuzz", "simulation", "threads", "python", "e2e"]


@dataclasses.dataclass
class Tally:
    passed: int = 0
    failed: int = 0
    skipped: list = dataclasses.field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


# What failed and why, a line each: the summary at the end repeats it, since a kept log may hold the end alone.
FAILURES = []


class Background:
    """Runs stages one after another with the processor time that the others leave over.

    Their processes are at nice 19, in this one's session: between sessions niceness counts for nothing where the kernel
    schedules by session (autogroup). They end with this process when a terminal interrupts it.
    """

    def __init__(self):
        self._stages = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def start(self, stage):
        """A future of the function's result."""
        result = concurrent.futures.Future()
        self._stages.put((stage, result))
        return result

    def _run(self):
        os.nice(19)  # on Linux that of this thread, and of what it starts
        while True:
            stage, result = self._stages.get()
            try:
                result.set_result(stage())
            except Exception as failure:
                result.set_exception(failure)


def say(text):
    print(f"[{time.monotonic() - START:7.1f}s] {text}", flush=True)


def busy_minutes():
    """Of this machine's processors since it started, with whatever else it ran: a pod is no child of this process."""
    user, nice, system, _, _, interrupts, soft_interrupts = map(int, pathlib.Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK") / 60


def tail(log, lines=60):
    return "\n".join("    " + line for line in log.read_text(errors="replace").split("\n")[-lines:])


def run(name, command, cpu_seconds=CPU_SECONDS, environment=None):
    """Runs one command with its output in a log. Returns True on exit status 0, else prints the end of the log."""
    log = LOGS / f"{name}.log"
    began = time.monotonic()
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                   env={**os.environ, **(environment or {})})  # fmt: skip
        status, spent_seconds = limits.wait_for(process, log, cpu_seconds)
    verdict = "ok" if status == 0 else f"FAILED (exit status {status})"
    say(f"{name}: {verdict} in {time.monotonic() - began:.0f} s, {spent_seconds:.0f} CPU-s" + ("" if status == 0 else "\n" + tail(log)))
    if status != 0:
        FAILURES.append(f"{name}: exit status {status}")
    return status == 0


def build(directory, targets, *options):
    name = "build-" + directory.rsplit("/", 1)[-1]
    configured = run(name + "-configure", ["cmake", "-S", ".", "-B", directory, "-G", "Ninja", *options])
    return configured and run(name, ["ninja", "-C", directory, *targets], BUILD_CPU_SECONDS)


def catch_tests(directory, only=None, environment=None, without=("[cluster]",)):
    """Runs the Catch2 programs that ctest knows of in a build directory; counts their test cases. Those tagged [cluster] run in
    e2e/scenarios, where there is one. `without`: the tags that are left out."""
    listing = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    tests = json.loads(listing.stdout).get("tests", []) if listing.returncode == 0 else []
    tally = Tally()
    ran = set()
    for test in tests:
        if "command" not in test or (only is not None and test["name"] not in only):
            continue
        ran.add(test["name"])
        label = f"{directory.rsplit('/', 1)[-1]}-{test['name']}"
        report = LOGS / f"{label}.xml"
        report.unlink(missing_ok=True)
        ok = run(label, [*test["command"], *(f"~{tag}" for tag in without), "-r", "xml", "-o", str(report)], environment=environment)
        tally.add(count_catch(label, report, ok))
    if not ran or (only is not None and ran != set(only)):
        say(f"{directory}: missing test programs {sorted(set(only or ['any']) - ran)}")
        tally.failed += 1
    return tally


def count_catch(label, report, ok):
    try:
        root = ElementTree.parse(report).getroot()
        cases = root.find(".//OverallResultsCases")
        passed, failed = int(cases.get("successes")), int(cases.get("failures"))
    except (OSError, ElementTree.ParseError, AttributeError):
        FAILURES.append(f"{label}: no report: it ended before its tests did")
        return Tally(failed=1)
    for case in root.iter("TestCase"):
        result = case.find("OverallResult")
        if result is not None and result.get("success") == "false":
            FAILURES.append(f"{label}: {case.get('name')}: {catch_reason(case)}")
    return Tally(passed, failed if failed else int(not ok))


def catch_reason(case):
    failed = next((check for check in case.iter("Expression") if check.get("success") == "false"), None)
    if failed is None:
        return "an exception or a crash: see its log"
    expanded = " ".join((failed.findtext("Expanded") or "").split())
    return f"{failed.get('filename')}:{failed.get('line')}: {expanded}"[:REASON_CHARACTERS]


def pytest(name, paths, environment=None, python=PYTHON):
    """A test that hangs fails by itself, with every thread's stack, and the rest runs on. An end of the whole program would show neither which test
    it was nor where it waits."""
    report = LOGS / f"{name}.xml"
    report.unlink(missing_ok=True)
    ok = run(name, [python, "-u", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}", f"--junitxml={report}", *paths],
             BUILD_CPU_SECONDS, environment)
    tally = Tally()
    if not report.exists():
        return Tally(failed=1)
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        failures = case.findall("failure") + case.findall("error")
        if failures:
            tally.failed += 1
            reason = " ".join(failures[0].get("message", "").split())[:REASON_CHARACTERS]
            FAILURES.append(f"{name}: {case.get('classname')}.{case.get('name')}: {reason}")
        elif case.find("skipped") is not None:
            tally.skipped.append(f"{case.get('classname')}.{case.get('name')}: {case.find('skipped').get('message')}")
        else:
            tally.passed += 1
    if not ok and not tally.failed:
        tally.failed += 1
    return tally


def counted(tests):
    """Runs commands by name; each is a test."""
    passed = sum(run(name, command) for name, command in tests.items())
    return Tally(passed=passed, failed=len(tests) - passed)


def fuzzing():
    """Every fuzz target, on the same inputs each time. A failure's log names the input and the command that runs it again."""
    if not run("build-fuzz", ["tools/fuzz.sh", "build"], BUILD_CPU_SECONDS):
        return Tally(failed=1)
    targets = sorted(folder.name for folder in ROOT.glob("src/*/fuzz/corpus/*"))
    return counted({f"fuzz-{target}": ["tools/fuzz.sh", "run", target] for target in targets})


def simulation_runs():
    """Every run of the campaigns with a theme, and SIMULATION_SEEDS runs with random faults."""
    # Optimised and without sanitizers.
    if not run("build-simulation", ["ninja", "-C", "build", "sluice-simulation"], BUILD_CPU_SECONDS):
        return Tally(failed=1)
    simulation = "build/operator/fault_simulation/sluice-simulation"
    # A failure's log names the seed and the command that runs it again.
    return counted({"simulation-themes": [simulation, "--theme", "all"],
                    "simulation-seeds": [simulation, "--first", "1", "--runs", str(SIMULATION_SEEDS)]})  # fmt: skip


# Property tests draw the same cases each time: a change is judged by its own faults. A program run by hand draws new ones.
DRAWS = {"RC_PARAMS": "seed=1"}


def unit_tests():
    if not build("build/asan", ["test_programs"], "-DCMAKE_BUILD_TYPE=Debug", "-DSLUICE_SANITIZE=address"):
        return Tally(failed=1)
    return catch_tests("build/asan", environment={"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1", **DRAWS})


def thread_tests():
    if not build("build/tsan", THREADED_TESTS, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSLUICE_SANITIZE=thread"):
        return Tally(failed=1)
    suppressions = ROOT / "tools/sanitizers/tsan.supp"
    # Long ones in one thread have no race.
    return catch_tests("build/tsan", THREADED_TESTS, {"TSAN_OPTIONS": f"suppressions={suppressions}:halt_on_error=0", **DRAWS},
                       without=("[cluster]", "[one thread]"))


def client_environment():
    """Where the client's tests find the client and the programs."""
    return {"SLUICE_FEEDER_BINARY": str(ROOT / "build/worker-image/sluice-feeder"), "PYTHONPATH": str(ROOT / "python"),
            "SLUICE_BUILD": str(ROOT / "build")}


def photographs():
    """For the tests of data sets, and those of pipelines: on a bare machine there is none."""
    return run("dataset-packages", [PYTHON, "e2e/datasets/unpack.py"]) and \
        run("photographs", [PYTHON, "e2e/datasets/photographs.py", "--count", "60"])


def cluster_inputs():
    """What takes minutes to make for the cluster on a bare machine: its programs, and the data sets of its jobs."""
    commands = {"cluster-binaries": ["e2e/cluster/build-binaries.sh"], **{f"data-set-{work.dataset}": dataset_command(work) for work in WORK.values()}}
    return all([run(name, command, BUILD_CPU_SECONDS) for name, command in commands.items()])


def python_tests(packages):
    """`packages`: whether the data sets' packages are unpacked and photographs are made, as a future."""
    tally = Tally()
    for name, path in [("style", "tools"), ("client", "python/tests"), ("pipeline", "src/pipeline"), ("demo", "e2e/demo"),
                       ("runner", "tests"), ("simulator", "scheduler/simulator"), ("datasets", "e2e/datasets"), ("benches", "bench")]:
        if name not in ("pipeline", "datasets") or packages.result():
            tally.add(pytest(name, [path], client_environment()))
        else:
            tally.failed += 1
    return tally


def run_lane(stages):
    """One after another."""
    total = Tally()
    for stage in stages:
        total.add(stage())
    return total


def run_stages(stages):
    """The order matters for the time: both processors are busy until the cluster starts, which waits more than it computes. Nothing
    runs beside it: its tests then see what a user of an idle machine sees."""
    total = Tally()
    background = Background()
    results = []
    # 1. What takes minutes on a bare machine and nothing after the first time. The network first.
    packages = background.start(photographs) if "python" in stages else None
    inputs = background.start(cluster_inputs) if "e2e" in stages else None
    # 2. The programs.
    built = build("build", [], "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSLUICE_TESTS=OFF") and \
        run("bundle", ["worker-image/bundle.sh", "build"])
    total.failed += int(not built)
    # 3. The tests that only compute, beside those that also wait.
    for name, stage in [("fuzz", fuzzing), ("simulation", simulation_runs)]:
        if name in stages:
            results.append(background.start(stage))
    lanes = [[("unit", unit_tests), ("threads", thread_tests)], [("python", lambda: python_tests(packages))]]
    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        results += [pool.submit(run_lane, [stage for name, stage in lane if name in stages]) for lane in lanes]
    for result in results:
        total.add(result.result())
    # 4. The cluster.
    if "e2e" in stages:
        if inputs.result():
            total.add(pytest("cluster", ["e2e/cluster"]))
            total.add(pytest("e2e", ["e2e/scenarios"]))
        else:
            total.failed += 1
    return total


def show(total):
    """What failed and what was skipped, and the last line of the output. The exit status."""
    for failure in FAILURES:
        print(f"failed: {failure}")
    for name in total.skipped:
        print(f"skipped: {name}")
    line = f"{total.passed} passed, {total.failed} failed"
    print(line + (f", {len(total.skipped)} skipped" if total.skipped else ""), flush=True)
    return 1 if total.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=STAGES, action="append", help="run only these stages (default: all)")
    LOGS.mkdir(parents=True, exist_ok=True)
    stages, before = parser.parse_args().only or STAGES, busy_minutes()
    total = run_stages(stages)
    say(f"the machine's processors were busy for {busy_minutes() - before:.1f} minutes")
    return show(total)


if __name__ == "__main__":
    sys.exit(main())
