#!/usr/bin/env python3
"""`make test-versions`: what src/kube's tests ask of a real API server, asked of other versions of Kubernetes, too.

Each version gets a control plane of its own (etcd and its kube-apiserver, with the local cluster's controllers) and the same
test programs as e2e/scenarios/kube_library_test.py. Prints `N passed, M failed` as the last line.
"""

import argparse
import os
import pathlib
import sys

import run
from run import ROOT, Tally

# `make test` runs on 1.34. Before it: the oldest that we support, without WatchList, consistent reads from the cache and CRD field
# selectors; 1.33, where WatchList is there and off. After it: the next one and the newest.
VERSIONS = ["1.30.14", "1.33.13", "1.35.4", "1.36.3"]
PROGRAMS = ["src/kube/sluice_kube_test", "src/kube/fake/sluice_kube_fake_test"]
CLUSTER = {"CLUS_NAME": "sluice-compat", "CLUS_INDEX": "8"}
CLUSTER_SCRIPT = "e2e/cluster/cluster.sh"


def test_programs(version, environment):
    """The [cluster] tests of each program, against the API server that is up."""
    kubeconfig = f"/var/lib/{environment['CLUS_NAME']}/admin.kubeconfig"
    crds = [argument for path in sorted(ROOT.glob("crds/*.yaml")) for argument in ("-f", str(path))]
    kubectl = [str(run.cache_folder() / "bin/kubectl"), "--kubeconfig", kubeconfig]
    if not run.run(f"versions-{version}-crds", [*kubectl, "apply", "--server-side", *crds]):
        return Tally(failed=1)
    run.run(f"versions-{version}-established", [*kubectl, "wait", "--for=condition=Established", "--timeout=30s", *crds])
    tally = Tally()
    for program in PROGRAMS:
        label = f"versions-{version}-{pathlib.Path(program).name}"
        report = run.LOGS / f"{label}.xml"
        report.unlink(missing_ok=True)
        ok = run.run(label, [str(ROOT / "build/asan" / program), "[cluster]", "-r", "xml", "-o", str(report)],
                     environment={"SLUICE_TEST_KUBECONFIG": kubeconfig})  # fmt: skip
        tally.add(run.count_catch(label, report, ok))
    return tally


def test_version(version):
    environment = {**CLUSTER, "CLUS_KUBE_APISERVER": version}
    try:
        if not run.run(f"versions-{version}-up", [CLUSTER_SCRIPT, "up", "--control-plane"], environment=environment):
            return Tally(failed=1)
        return test_programs(version, environment)
    finally:
        run.run(f"versions-{version}-down", [CLUSTER_SCRIPT, "down"], environment=environment)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help=f"default: {' '.join(VERSIONS)}")
    versions = parser.parse_args().versions
    run.LOGS.mkdir(parents=True, exist_ok=True)
    ready = (run.run("cluster-binaries", ["e2e/cluster/build-binaries.sh"], run.BUILD_CPU_SECONDS)
             and run.run("api-servers", ["e2e/cluster/build-binaries.sh", *(f"kube-apiserver-{version}" for version in versions)], run.BUILD_CPU_SECONDS)
             and run.build("build/asan", [pathlib.Path(program).name for program in PROGRAMS],
                           "-DCMAKE_BUILD_TYPE=Debug", "-DSLUICE_SANITIZE=address"))  # fmt: skip
    total = Tally() if ready else Tally(failed=1)
    for version in versions if ready else []:
        tally = test_version(version)
        run.say(f"Kubernetes {version}: {tally.passed} passed, {tally.failed} failed")
        total.add(tally)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1")
    sys.exit(main())
