#!/usr/bin/env python3
"""Checks the tests of the scheduler and of its policies: every small damage to the code must make them fail.

usage: tools/mutation/mutate.py BUILD_DIRECTORY [WORD]     WORD: only mutations whose line contains it

BUILD_DIRECTORY is a CMake tree in which sluice_scheduler_test and sluice_policies_test are built. The working tree is
not touched: a damaged copy of one file is compiled, linked before the library that holds the original, and run. Of a
header, all files that may include it are compiled with the damaged copy. The damages are in *.mutations beside this
file. Takes about three quarters of an hour of CPU; exits 1 if a mutant survives or no longer applies.

Each verdict is added to mutation-verdicts.txt in BUILD_DIRECTORY as it falls, so that a run that was cut off goes on where it stopped. A change of
the code or of a test starts over.
"""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU_SECONDS = 20  # a mutant may also loop; that counts as noticed. Of CPU, so that a busy machine notices nothing


@dataclasses.dataclass(frozen=True)
class Suite:
    """One list of damages: the folder whose files they damage, the test that must notice, what it is linked with."""

    mutations: str
    folder: str
    test: str
    libraries: tuple


SUITES = (
    Suite("scheduler.mutations", "scheduler", "sluice_scheduler_test",
          ("sluice_scheduler_testing", "sluice_scheduler_lp", "sluice_scheduler", "sluice_base")),
    Suite("policies.mutations", "scheduler/simulator/policies", "sluice_policies_test",
          ("sluice_policies_testing", "sluice_policies", "sluice_scheduler_testing", "sluice_scheduler",
           "sluice_base")),
)


@dataclasses.dataclass(frozen=True)
class Mutation:
    suite: Suite
    line: int
    name: str
    before: str
    after: str

    def __str__(self):
        return f"{self.suite.mutations}: {self.name} | {self.before} | {self.after}"


def mutations(word):
    for suite in SUITES:
        lines = pathlib.Path(__file__).with_name(suite.mutations).read_text().splitlines()
        for number, line in enumerate(lines, 1):
            if line and not line.startswith("#") and word in line:
                name, before, after = [part.strip() for part in line.split(" | ")]
                yield Mutation(suite, number, name, before, after)


def linked(suite, build):
    """The objects and libraries of one test, in the order of the linker."""
    inputs = []
    patterns = [f"{suite.test}.dir/**/*.o", *(f"lib{name}.a" for name in ("sluice_test_main", *suite.libraries))]
    for pattern in patterns:
        found = sorted(str(path) for path in pathlib.Path(build).rglob(pattern))
        if not found:
            sys.exit(f"{pattern} is not under {build}: build {suite.test} first")
        inputs += found
    # A Debug build of clang has the code of precompiled headers here (toolchain/precompiled_code.cmake).
    return inputs + sorted(str(path) for path in pathlib.Path(build).rglob("lib*_precompiled_code.a"))


def sources_of(name, damaged):
    """What is compiled for a damaged file: itself, or all files of the program that may include a header."""
    if name.suffix != ".h":
        return [damaged]
    return [path for path in sorted((ROOT / name.parts[0]).rglob("*.cc"))
            if not {"simulator", "testing", "tests"} & set(path.parts) and not path.name.endswith(("_test.cc", "main.cc"))]


def outcome(mutation, inputs, scratch):
    """What became of one mutant: 'killed', or why it is a finding."""
    source = (ROOT / mutation.suite.folder / mutation.name).read_text()
    places = list(re.finditer(r"\s+".join(map(re.escape, mutation.before.split())), source))  # across line breaks, too
    if len(places) != 1:
        return f"applies {len(places)} times"
    place = places[0]
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        name = pathlib.Path(mutation.suite.folder, mutation.name)
        damaged, program = pathlib.Path(folder, name), pathlib.Path(folder, "test")
        damaged.parent.mkdir(parents=True)
        damaged.write_text(source[:place.start()] + mutation.after + source[place.end():])
        compiled = subprocess.run(
            ["g++", "-std=c++20", "-O1", "-w", "-Wl,--gc-sections", f"-I{folder}", f"-I{ROOT}", *sources_of(name, damaged), *inputs, "-lrapidcheck", "-lClp",
             "-lCoinUtils", "-lpthread", "-o", program],
            capture_output=True, text=True)
        if compiled.returncode != 0:
            return "does not compile: " + compiled.stderr.partition("\n")[0]
        run = subprocess.run(["prlimit", f"--cpu={CPU_SECONDS}", program, "--abort"], cwd=ROOT, capture_output=True,
                             env={**os.environ, "RC_PARAMS": "max_success=200 noshrink=1"})
    return "survived" if run.returncode == 0 else "killed"


def verdicts_so_far(path, inputs):
    """Verdicts of a run that was cut off, by mutation; none if something that they depend on is newer."""
    sources = [source for suite in SUITES for source in (ROOT / suite.folder).rglob("*.cc")]
    newest = max(os.path.getmtime(file) for file in (*sources, *inputs))
    if not path.exists() or path.stat().st_mtime < newest:
        path.write_text("")
    return {mutation: verdict for verdict, mutation in (line.split("\t") for line in path.read_text().splitlines())}


def main():
    build, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    inputs = {suite: linked(suite, build) for suite in SUITES}
    journal = pathlib.Path(build, "mutation-verdicts.txt")
    verdicts = verdicts_so_far(journal, [file for suite in SUITES for file in inputs[suite]])
    chosen = list(mutations(word))
    results = {mutation: verdicts[str(mutation)] for mutation in chosen if str(mutation) in verdicts}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(outcome, mutation, inputs[mutation.suite], scratch): mutation
                   for mutation in chosen if mutation not in results}
        for done in concurrent.futures.as_completed(running):
            results[running[done]] = done.result()
            with journal.open("a") as lines:
                lines.write(f"{done.result()}\t{running[done]}\n")
    findings = [mutation for mutation in chosen if results[mutation] != "killed"]
    for mutation in findings:
        print(f"line {mutation.line} of {mutation}: {results[mutation]}")
    print(f"{len(chosen)} mutants, {len(chosen) - len(findings)} noticed by the tests")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
