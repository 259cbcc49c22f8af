"""The local cluster as its users meet it: it comes up, survives its components' deaths, and leaves nothing behind.

Runs beside a demo cluster: own name, own addresses. Needs root and the built programs; skipped otherwise.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
SCRIPT = FOLDER / "cluster.sh"
CACHE = pathlib.Path(os.environ.get("SLUICE_CACHE", "/var/cache/sluice"))
ENVIRONMENT = {**os.environ, "CLUS_NAME": "sluice-test", "CLUS_INDEX": "7", "SLUICE_CACHE": str(CACHE)}
STATE = pathlib.Path("/var/lib/sluice-test")
PROMETHEUS = "http://10.250.7.2:9090"

needs_machine = pytest.mark.skipif(
    os.geteuid() != 0 or not (CACHE / "bin/kubelet").exists(), reason="needs root and e2e/cluster/build-binaries.sh"
)


def cluster(*arguments: str, environment: dict | None = None, seconds: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run(
        [SCRIPT, *arguments],
        env=environment or ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )


def kubectl(*arguments: str) -> subprocess.CompletedProcess:
    command = [CACHE / "bin/kubectl", "--kubeconfig", STATE / "admin.kubeconfig", "--request-timeout=5s", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def eventually(what: str, seconds: float, condition) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def assert_nothing_left() -> None:
    result = cluster("leftovers")
    assert result.returncode == 0, result.stdout
    assert not STATE.exists()


@pytest.fixture(scope="module")
def running():
    result = cluster("up")
    assert result.returncode == 0, result.stdout
    yield
    cluster("down")


@needs_machine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
@pytest.mark.parametrize("delay_seconds", [0.0, 0.1, 0.3, 0.5, 0.6, 0.7, 1.0, 2.0, 3.5, 4.5, 5.5])
def test_an_interrupt_at_any_moment_of_up_leaves_nothing(delay_seconds, number):
    process = subprocess.Popen(
        [SCRIPT, "up"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    time.sleep(delay_seconds)
    os.killpg(process.pid, number)
    output = process.communicate(timeout=60)[0]
    if process.returncode == 0:  # it was already done
        cluster("down")
    else:
        # What happens before the traps are set makes nothing; bash then dies of the signal itself.
        assert process.returncode in (130, 143, -number), output
    assert_nothing_left()


@needs_machine
def test_an_interrupt_when_up_is_complete_comes_too_late():
    """An interrupt between the last step and the end made `up` fail, and leave its cluster."""
    process = subprocess.Popen(
        [SCRIPT, "up", "--control-plane"], env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        while not (STATE / "run/complete").exists() and process.poll() is None:
            pass  # the moment is a few milliseconds long
        while process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        output = process.communicate(timeout=60)[0]
        assert (process.returncode, "up: export KUBECONFIG" in output) in ((0, True), (130, False)), output
        assert (process.returncode == 0) == STATE.exists()
    finally:
        cluster("down")
    assert_nothing_left()


@needs_machine
def test_a_killed_up_is_cleaned_by_down():
    process = subprocess.Popen([SCRIPT, "up"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    eventually("the node's processes", 20, (STATE / "run/outer.pid").exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert cluster("leftovers").returncode == 1
    assert cluster("down").returncode == 0
    assert_nothing_left()


@needs_machine
def test_up_after_a_killed_up_starts_afresh():
    process = subprocess.Popen([SCRIPT, "up"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    eventually("the node", 20, (STATE / "run/node.pid").exists)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    try:
        result = cluster("up")
        assert result.returncode == 0, result.stdout
        assert "already up" not in result.stdout
        assert "already up" in cluster("up").stdout
    finally:
        cluster("down")
    assert_nothing_left()


@needs_machine
def test_up_after_a_killed_cluster_starts_afresh():
    """As after a machine that was switched off. The job's pod has a finalizer, which a new cluster on the old etcd waited for, without end."""
    try:
        assert cluster("up", "--control-plane").returncode == 0
        assert kubectl("create", "job", "unfinished", "--image=localhost/none").returncode == 0
        eventually("a pod with a finalizer", 30, lambda: "batch" in kubectl("get", "pods", "-o", "jsonpath={..finalizers}").stdout)
        os.kill(int((STATE / "run/outer.pid").read_text().split()[0]), signal.SIGKILL)
        result = cluster("up", "--control-plane", seconds=60)
        assert result.returncode == 0, result.stdout
        assert kubectl("get", "jobs,pods", "-o", "name").stdout == ""
    finally:
        cluster("down")
    assert_nothing_left()


@needs_machine
def test_a_second_up_at_the_same_time_is_told_so():
    first = subprocess.Popen([SCRIPT, "up"], env=ENVIRONMENT, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        eventually("the state folder", 20, (STATE / "pki").exists)
        second = cluster("up")
        assert second.returncode == 1
        assert "another cluster.sh is at work" in second.stdout
    finally:
        first.wait(timeout=120)
        cluster("down")
    assert_nothing_left()


@needs_machine
def test_down_of_nothing_is_fine():
    for _ in range(2):
        assert cluster("down").returncode == 0
    assert_nothing_left()


@needs_machine
def test_all_that_is_missing_is_named_at_once(tmp_path):
    result = cluster("up", environment={**ENVIRONMENT, "SLUICE_CACHE": str(tmp_path), "PATH": str(tmp_path / "none")})
    assert result.returncode != 0
    # Without PATH not even the script's own interpreter line works; so one step milder:
    (tmp_path / "path").mkdir()
    for name in ("readlink", "dirname", "id", "awk", "sed", "stat", "mount", "bash", "env", "cut", "grep"):
        (tmp_path / "path" / name).symlink_to(f"/usr/bin/{name}")
    missing = subprocess.run(
        ["/bin/bash", "-c", f". {FOLDER}/../../toolchain/say.sh; HERE={FOLDER}; . {FOLDER}/settings.sh; "
         f"PATH={tmp_path}/path; . {FOLDER}/cgroups.sh; . {FOLDER}/requirements.sh; check_requirements"],
        env={"SLUICE_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=30, check=False,
    )
    assert missing.returncode == 1
    for expected in ("command nft (Debian package nftables)", "build-binaries.sh", "unpacked Debian packages"):
        assert expected in missing.stderr
    assert missing.stderr.count("way out:") >= 3


@needs_machine
def test_a_user_without_root_is_told_what_to_do():
    # A copy that every user may read: the checkout may lie in a folder that only root may enter.
    with tempfile.TemporaryDirectory(prefix="sluice-cluster-test-") as folder:
        os.chmod(folder, 0o755)
        for part in ("e2e/cluster", "toolchain"):
            shutil.copytree(ROOT / part, pathlib.Path(folder, part), ignore=shutil.ignore_patterns("__pycache__"))
        result = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"{folder}/e2e/cluster/cluster.sh", "up"],
            env=ENVIRONMENT, capture_output=True, text=True, timeout=30, check=False, cwd=folder,
        )
    assert result.returncode == 1
    assert "needs root" in result.stderr and "way out: sudo" in result.stderr


@needs_machine
@pytest.mark.parametrize("component", ["etcd", "containerd", "kube-apiserver", "kubelet"])
def test_a_killed_component_can_be_started_again_and_pods_keep_running(running, component):
    def restarts() -> str:
        return kubectl("-n", "kube-system", "get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[*].restartCount}").stdout

    before = restarts()
    assert cluster("kill", component).returncode == 0
    assert f"{component:26s} DOWN" in cluster("status").stdout
    assert cluster("start", component).returncode == 0
    eventually("the API server ready", 60, lambda: kubectl("get", "--raw", "/readyz").stdout == "ok")
    eventually("the node ready", 60, lambda: " Ready " in kubectl("get", "nodes", "--no-headers").stdout)
    assert restarts() == before == "0"


@needs_machine
def test_prometheus_can_be_stopped_and_started(running):
    def answers() -> bool:
        return subprocess.run(["curl", "-sf", "--max-time", "2", f"{PROMETHEUS}/-/ready"], capture_output=True).returncode == 0

    assert answers()
    assert cluster("stop", "prometheus").returncode == 0
    assert not answers()
    assert cluster("start", "prometheus").returncode == 0
    eventually("Prometheus answers", 30, answers)


@needs_machine
def test_the_control_plane_has_its_share_of_the_processors(running):
    node = json.loads(kubectl("get", "nodes", "-o", "json").stdout)["items"][0]["status"]
    assert node["allocatable"]["cpu"] == f"{int(node['capacity']['cpu']) * 1000 - 300}m"


@needs_machine
def test_prometheus_may_read_pods_and_nothing_else(running):
    def allowed(verb: str, resource: str) -> str:
        return kubectl("auth", "can-i", verb, resource, "-A", "--as=sluice-demo-prometheus").stdout.strip()

    assert allowed("watch", "pods") == "yes"
    assert (allowed("delete", "pods"), allowed("get", "secrets"), allowed("list", "nodes")) == ("no", "no", "no")


@needs_machine
def test_gpus_are_advertised(running):
    assert cluster("gpus", "4").returncode == 0
    assert kubectl("get", "nodes", "-o", r"jsonpath={.items[0].status.allocatable.nvidia\.com/gpu}").stdout == "4"


def allocatable_cpu():
    return kubectl("get", "nodes", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.allocatable.cpu} {end}").stdout.split()


@needs_machine
def test_a_part_of_the_node_becomes_a_second_one_and_comes_back(running):
    whole = allocatable_cpu()
    assert cluster("second-node", "600m").returncode == 0
    names, offered = zip(*(entry.split("=") for entry in allocatable_cpu()))
    assert names == ("sluice-test-node", "sluice-test-second")
    assert sum(int(cpu.removesuffix("m")) for cpu in offered) == int(whole[0].split("=")[1].removesuffix("m"))
    kubectl("run", "there", "--image=localhost/pause:1", "--overrides", '{"spec": {"nodeName": "sluice-test-second"}}')
    eventually("a pod on the second node", 60, lambda: kubectl("get", "pod", "there", "-o", "jsonpath={.status.phase}").stdout == "Running")
    assert cluster("one-node").returncode == 0
    assert allocatable_cpu() == whole


@needs_machine
def test_an_unknown_component_is_answered_with_the_list(running):
    result = cluster("stop", "etcetera")
    assert result.returncode == 1
    assert "one of: etcd containerd" in result.stdout


@needs_machine
def test_the_machine_keeps_its_own_settings(running):
    inside = cluster("exec", "cat", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/panic").stdout.split()
    assert inside == ["1", "10"]  # what the kubelet wants to see
    assert pathlib.Path("/proc/sys/kernel/panic").read_text().strip() != "10"


@needs_machine
def test_down_while_all_is_running_leaves_nothing(running):  # last: it ends the module's cluster
    assert cluster("leftovers").returncode == 1
    started = time.monotonic()
    assert cluster("down").returncode == 0
    assert time.monotonic() - started < 30
    assert_nothing_left()
