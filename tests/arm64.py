#!/usr/bin/env python3
"""`make test-arm64`: the programs for arm64, compiled here and run under an emulator.

Their pixels are compared with those of torchvision and Pillow on this machine, and the client's tests of native pipelines train through their
feeder. Prints `N passed, M failed` as the last line.
"""

import os
import pathlib
import sys

import run
from run import ROOT, Tally

BUILD = "build/arm64"
# Of what depends on the processor: numbers and kernels, bytes on disk and in messages.
TESTS = ["sluice_base_test", "sluice_cache_test", "sluice_pipeline_test", "sluice_transport_test"]
PROGRAMS = ["src/pipeline/sluice-pipeline-probe", "worker-image/sluice-feeder", "worker-image/sluice-worker", "worker-image/sluice-cache"]
CONFORMANCE = ["src/pipeline/torch_conformance_test.py", "src/pipeline/png_conformance_test.py", "src/pipeline/webp_conformance_test.py", "src/pipeline/memory_conformance_test.py"]
CLIENT = ["python/tests/test_native.py"]


def emulated(program):
    """A program of this machine that runs it under the emulator, at the same place of a folder beside the build tree."""
    path = ROOT / BUILD / "emulated" / program
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec qemu-aarch64-static -L "{run.cache_folder()}/arm64" "{ROOT / BUILD / program}" "$@"\n')
    path.chmod(0o755)
    return path


def main():
    run.LOGS.mkdir(parents=True, exist_ok=True)
    total = Tally()
    # `make arm64` has the same tree without tests.
    options = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSLUICE_TESTS=ON", "-DCMAKE_TOOLCHAIN_FILE=toolchain/arm64.cmake"]
    if run.build(BUILD, [*TESTS, *(pathlib.Path(program).name for program in PROGRAMS), "sluice-operator"], *options):
        total.add(run.counted({"arm64-bundle": ["worker-image/bundle.sh", BUILD]}))
        total.add(run.catch_tests(BUILD, TESTS, run.DRAWS, without=("[cluster]", "[amd64]", "[kernel]")))
        places = {pathlib.Path(program).name: emulated(program) for program in PROGRAMS}
        total.add(run.pytest("arm64-pixels", CONFORMANCE, {**run.client_environment(), "SLUICE_BUILD": str(ROOT / BUILD / "emulated")}))
        total.add(run.pytest("arm64-client", CLIENT, {**run.client_environment(), "SLUICE_FEEDER_BINARY": str(places["sluice-feeder"])}))
    else:
        total.failed += 1
    return run.show(total)


if __name__ == "__main__":
    sys.exit(main())
