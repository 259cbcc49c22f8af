#!/usr/bin/env python3
"""Runs public test suites with the stock loader class and with Sluice's, and prints where they differ.

    tools/public_suites.py DIR [--stock torchdata] [--off] [--python PYTHON] [pytest arguments]

DIR has the suites: test_*.py from torchdata's test/stateful_dataloader, or PyTorch's test/test_dataloader.py. The user who runs them obtains them; they
are no part of this project. PYTHON needs pytest, torch and what the suites import. Our class takes the stock one's place in the module where suites
import it from, also in processes that they start. `--off`: with SLUICE=off.

EXPECTED and EXPECTED_OFF name the tests that ours fails and the stock class passes, each with its reason. The status is 1 if ours fails another one, or
passes one that is named there, and 2 if a run gave no result.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).resolve().parent.parent / "python"

# By the name of --stock: the module of the class, and its name.
STOCK = {"torchdata": ("torchdata.stateful_dataloader", "StatefulDataLoader"), "torch": ("torch.utils.data", "DataLoader")}

# Every process that a suite starts reads this first. The class takes its place when the package of the stock one is imported: torch takes seconds,
# and many of these processes never import it.
SUBSTITUTION = """
import importlib, importlib.util, sys
class Substitution:
    def find_spec(self, name, path=None, target=None):
        if name != {module!r}.partition(".")[0]:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module
        def exec_module(module):
            execute(module)
            importlib.import_module({module!r}).{name} = importlib.import_module("sluice.torch").DataLoader
        spec.loader.exec_module = exec_module
        return spec
sys.meta_path.insert(0, Substitution())
"""

_LAYOUT = "reads the fields of torchdata's own state; ours has others"
_PERSISTENT = "needs what torch's persistent worker processes keep from one epoch to the next"

_SIGNAL = "wants torch's words for a worker process that a signal has killed; ours names the process and the signal in others"

# By stock class, suite and test: why ours fails it.
EXPECTED = {
    ("torch", "test_dataloader"): {
        "TestDataLoader.test_segfault": _SIGNAL,
        "TestDataLoaderPersistentWorkers.test_segfault": _SIGNAL,
    },
    ("torchdata", "test_dataloader"): {
        "TestDataLoader.test_segfault": _SIGNAL,
        "TestDataLoaderPersistentWorkers.test_segfault": _SIGNAL,
        "TestOutOfOrderDataLoader.test_in_order_index_ds": "has samples remember the worker that made the first one; SLUICE_RANDOMNESS=torch does that",
    },
    ("torchdata", "test_state_dict"): {
        "TestDatasetIteratorStateDuplication_shard0.test": _LAYOUT,
        "TestDynamicStateIterableDataset_shard0.test": _LAYOUT,
        "TestInitialState_shard0.test_initial_state": _LAYOUT,
        "TestInitialState_shard0.test_load_state_after_initial_state_dict": _LAYOUT,
        "TestSingleIterCalled_shard0.test_inline": _LAYOUT,
        "TestSingleIterCalled_shard0.test_inline_iter": _LAYOUT,
        "TestSingleIterCalled_shard0.test_mp": _LAYOUT,
        "TestSingleIterCalled_shard0.test_mp_iter": _LAYOUT,
        "TestOutOfOrderWithCheckpointing.test_out_of_order_iterable_ds_no_completed_workers": _LAYOUT,
        "TestOutOfOrderWithCheckpointing.test_out_of_order_iterable_ds_one_completed_worker": _LAYOUT,
        "TestMultiEpochState_shard0.test_pw": _PERSISTENT,
        "TestSnapshotEnd_shard2.test_iterable": _PERSISTENT,
        "TestInitialState_shard0.test_init_error": "wants a worker's error when the iterator is made; torch's class and ours raise it with a batch",
        "TestNumWorkersMismatch_shard3.test_num_workers_mismatch": "wants another number of workers refused; ours resumes with any, or says why not",
    },
}


_NUMBERS = "has samples draw numbers, in torch's own workers with SLUICE=off; such workers cannot be put back to where they were"

# The same with SLUICE=off. Only the states of this suite are ours then.
EXPECTED_OFF = {
    ("torchdata", "test_state_dict"): {
        **EXPECTED["torchdata", "test_state_dict"],
        "TestInitialState_shard0.test_load_state_before_initial_state_dict": _NUMBERS,
        "TestSnapshotEnd_shard2.test_map": _NUMBERS,
        "TestSnapshotZero_shard2.test_map_iterrupted_shuffle": _NUMBERS,
        "TestStatefulDataLoaderMap_shard1.test_random_state": _NUMBERS,
        "TestStatefulSampler_shard1.test_random_state": _NUMBERS,
        "TestOutOfOrderWithCheckpointing.test_out_of_order_index_ds": "wants a state with in_order=False, which only executors keep, and SLUICE=off has none",
    }
}


# A plugin of pytest. A test is written down when it begins and when it ends, for a suite of worker processes may take pytest down with it.
RECORDER = """
import json, os
def _write(nodeid, outcome):
    with open(os.environ["SUITE_RECORD"], "a") as file:
        file.write(json.dumps([nodeid, outcome]) + "\\n")
def pytest_runtest_logstart(nodeid, location):
    _write(nodeid, "begun")
def pytest_runtest_logreport(report):
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        _write(report.nodeid, "failed: " + (crash.message if crash else str(report.longrepr)).partition("\\n")[0])
    elif report.skipped or report.when == "call":
        _write(report.nodeid, report.outcome)
"""


def run(python: str, suite: Path, substitution: str, arguments: list[str], environment: dict[str, str] | None = None) -> dict[str, str]:
    """The outcome of each test of `suite` by name: passed, skipped or the first line of its failure."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "sitecustomize.py").write_text(substitution)
        (Path(scratch) / "suite_recorder.py").write_text(RECORDER)
        record = Path(scratch) / "record"
        record.touch()
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "suite_recorder", suite.name, *arguments]
        path = os.pathsep.join([scratch, str(CLIENT), os.environ.get("PYTHONPATH", "")])
        variables = {**os.environ, **(environment or {}), "PYTHONPATH": path, "SUITE_RECORD": str(record)}
        subprocess.run(command, cwd=suite.parent, env=variables, stdout=sys.stderr, check=False)
        return outcomes(record.read_text())


def outcomes(record: str) -> dict[str, str]:
    """What RECORDER has written of each test. One that has failed in a part, its teardown for instance, has failed."""
    found: dict[str, str] = {}
    for line in record.splitlines():
        place, outcome = json.loads(line)
        name = place.replace(".py::", ".").replace("::", ".")
        if not found.get(name, "").startswith("failed"):
            found[name] = outcome
    return {name: "failed: pytest ended in it" if outcome == "begun" else outcome for name, outcome in found.items()}


def summary(of: dict[str, str]) -> str:
    failed = sum(outcome.startswith("failed") for outcome in of.values())
    skipped = sum(outcome == "skipped" for outcome in of.values())
    return f"{len(of) - failed - skipped} passed, {failed} failed, {skipped} skipped"


def differences(stock: dict[str, str], ours: dict[str, str], expected: dict[str, str]) -> list[str]:
    """Some lines for each test whose outcome is another with our class."""
    lines = []
    for name in sorted(stock.keys() | ours.keys()):
        before, after = stock.get(name, "not run"), ours.get(name, "not run")
        if before.split(":")[0] != after.split(":")[0]:
            reason = _reason(name, expected)
            lines.append(f"  {name}\n    stock: {before}\n    ours:  {after}" + (f"\n    because it {reason}" if reason else ""))
    return lines


def surprises(stock: dict[str, str], ours: dict[str, str], expected: dict[str, str]) -> list[str]:
    """The tests that ours loses without a reason in `expected`, and those that it passes in spite of one."""
    unexpected = []
    for name, before in sorted(stock.items()):
        passes, explained = ours.get(name) == "passed", _reason(name, expected) != ""
        if (passes and explained) or (before == "passed" and not passes and not explained):
            unexpected.append(name)
    return unexpected


def _reason(name: str, expected: dict[str, str]) -> str:
    """`name` begins with that of the suite."""
    return expected.get(name.partition(".")[2], "")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--stock", choices=STOCK, default="torchdata")
    parser.add_argument("--off", action="store_true")
    parser.add_argument("--python", default=sys.executable)
    options, for_pytest = parser.parse_known_args(arguments)
    module, name = STOCK[options.stock]
    status = 0
    for suite in sorted(options.directory.resolve().glob("test_*.py")):
        stock = run(options.python, suite, "", for_pytest)
        environment = {"SLUICE": "off"} if options.off else {}
        ours = run(options.python, suite, SUBSTITUTION.format(module=module, name=name), for_pytest, environment)
        expected = (EXPECTED_OFF if options.off else EXPECTED).get((options.stock, suite.stem), {})
        print(f"{suite.name}\n  stock: {summary(stock)}\n  ours:  {summary(ours)}")
        print("\n".join(differences(stock, ours, expected)), flush=True)
        if not stock or not ours:
            return 2
        unexpected = surprises(stock, ours, expected)
        print("".join(f"  not as expected: {test}\n" for test in unexpected), end="", flush=True)
        status |= bool(unexpected)
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
