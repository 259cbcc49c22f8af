#!/usr/bin/env python3
"""Checks the tests of the scheduler: every small damage to its code must make sluice_scheduler_test fail.

usage: tools/mutation/mutate.py BUILD_DIRECTORY [WORD]     WORD: only mutations whose line contains it

BUILD_DIRECTORY is a CMake tree in which sluice_scheduler_test is built. The working tree is not touched: a damaged
copy of one file is compiled, linked before the library that holds the original, and run. The damages are in
scheduler.mutations beside this file. Takes about half an hour of CPU; exits 1 if a mutant survives or no longer applies.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPU_SECONDS = 60  # a mutant may also loop; that counts as noticed. Of CPU, so that a busy machine notices nothing


def mutations(word):
    for number, line in enumerate((pathlib.Path(__file__).with_name("scheduler.mutations")).read_text().splitlines(), 1):
        if line and not line.startswith("#") and word in line:
            name, before, after = [part.strip() for part in line.split(" | ")]
            yield number, name, before, after


def only(build, pattern):
    found = [str(path) for path in pathlib.Path(build).rglob(pattern)]
    if not found:
        sys.exit(f"{pattern} is not under {build}: build sluice_scheduler_test first")
    return found


def outcome(mutation, build, scratch):
    """What became of one mutant: 'killed', or why it is a finding."""
    number, name, before, after = mutation
    source = (ROOT / "scheduler" / name).read_text()
    if source.count(before) != 1:
        return f"applies {source.count(before)} times"
    folder = pathlib.Path(scratch, str(number))
    folder.mkdir()
    damaged, program = folder / name, folder / "test"
    damaged.write_text(source.replace(before, after))
    compiled = subprocess.run(
        ["g++", "-std=c++20", "-O1", "-w", f"-I{ROOT}", damaged,
         *only(build, "sluice_scheduler_test.dir/*.o"), *only(build, "libsluice_test_main.a"),
         *only(build, "libsluice_scheduler_testing.a"), *only(build, "libsluice_scheduler_lp.a"),
         *only(build, "libsluice_scheduler.a"), *only(build, "libsluice_base.a"), "-lrapidcheck", "-lClp",
         "-lCoinUtils", "-lpthread", "-o", program],
        capture_output=True, text=True)
    if compiled.returncode != 0:
        return "does not compile:\n" + compiled.stderr
    run = subprocess.run(["prlimit", f"--cpu={CPU_SECONDS}", program, "--abort"], cwd=ROOT, capture_output=True,
                         env={**os.environ, "RC_PARAMS": "max_success=200 noshrink=1"})
    return "survived" if run.returncode == 0 else "killed"


def main():
    build, word = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = list(mutations(word))
    findings = 0
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda mutation: outcome(mutation, build, scratch), chosen)
        for (number, name, before, after), result in zip(chosen, results):
            if result != "killed":
                findings += 1
                print(f"scheduler.mutations:{number}: {result}: {name}: {before} -> {after}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - findings} noticed by the tests")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
