#!/usr/bin/env python3
"""`make test-pythons`: the tests of the client and of native pixels on the oldest and the newest Python, PyTorch and Pillow.

Each pair has an environment of its own in the cache, made once from the package registry. Prints `N passed, M failed` as the last line.
"""

import argparse
import sys

import run
from run import ROOT, Tally

# `make test` runs on Python 3.11 and the packages of requirements.txt.
REQUIREMENTS = {"3.10": "requirements-oldest.txt", "3.13": "requirements.txt"}


def test_python(version):
    """The client's tests, with the real feeder, on one version of Python."""
    folder = run.cache_folder() / "pythons"
    environment = folder / f"environment-{version}"
    interpreter = folder / version / f"usr/bin/python{version}"
    requirements = ROOT / "toolchain" / REQUIREMENTS[version]
    ready = (run.run(f"python-{version}-interpreter", ["toolchain/interpreter.sh", version])
             and run.run(f"python-{version}-packages", ["toolchain/python.sh", str(environment), str(interpreter), str(requirements)],
                         run.BUILD_CPU_SECONDS))  # fmt: skip
    # Native pixels are those of the Pillow and torchvision at hand.
    tests = ["python/tests", "src/pipeline/torch_conformance_test.py", "src/pipeline/png_conformance_test.py", "src/pipeline/webp_conformance_test.py", "src/pipeline/memory_conformance_test.py"]
    return run.pytest(f"client-{version}", tests, run.client_environment(), str(environment / "bin/python")) if ready else Tally(failed=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help=f"default: {' '.join(REQUIREMENTS)}")
    versions = parser.parse_args().versions or list(REQUIREMENTS)
    if unknown := [version for version in versions if version not in REQUIREMENTS]:
        parser.error(f"there is no environment for Python {', '.join(unknown)}")
    run.LOGS.mkdir(parents=True, exist_ok=True)
    total = Tally()
    for version in versions:
        tally = test_python(version)
        run.say(f"Python {version}, {REQUIREMENTS[version]}: {tally.passed} passed, {tally.failed} failed, {len(tally.skipped)} skipped")
        total.add(tally)
    return run.show(total)


if __name__ == "__main__":
    sys.exit(main())
