"""cgroups.sh on a pure v2 tree, as far as a machine whose controllers belong to v1 allows.

The tree at /sys/fs/cgroup is replaced by a v2 mount in a mount namespace of the test's own. The needed controllers are narrowed to those that the v2
tree has.
"""

import os
import pathlib
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parent
NAME = "sluice-cgroup-test"
SCRIPT = """
set -euo pipefail
umount --lazy --recursive /sys/fs/cgroup 2>/dev/null || umount --lazy /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
RUN=$1 NAME=$2
fail() { echo "$1"; exit 1; }
. "$3/cgroups.sh"
V2_NEEDED=${4-}
"""


def run(tmp_path, commands: str, needed: str = "", prefix: tuple = ()) -> subprocess.CompletedProcess:
    command = [*prefix, "unshare", "--mount", "bash", "-c", SCRIPT + commands, "test", tmp_path, NAME, FOLDER, needed]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def can_try() -> bool:
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "sh", "-c", "umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup"], capture_output=True
    ).returncode == 0


pytestmark = pytest.mark.skipif(not can_try(), reason="needs root and a cgroup v2 mount")


def test_a_process_joins_the_nodes_cgroup_and_all_is_removed_after_it(tmp_path):
    result = run(tmp_path, """
        cgroup_is_v2 && echo v2
        cgroup_make
        ( cgroup_join; sed -n 's/^0:://p' /proc/self/cgroup )
        [ -z "$(cat /sys/fs/cgroup/$NAME/cgroup.procs)" ] && echo "no internal process"
        cgroup_remove
        [ -e /sys/fs/cgroup/$NAME ] || echo removed
    """)
    assert result.stdout.splitlines() == ["v2", f"/{NAME}/node", "no internal process", "removed"], result.stderr


def test_what_exists_is_passed_on_to_the_children_and_the_root_is_restored(tmp_path):
    result = run(tmp_path, """
        root=/sys/fs/cgroup
        echo $(cat $root/cgroup.controllers)
        echo $(cat $root/cgroup.subtree_control)
        cgroup_make
        echo $(cat $root/$NAME/cgroup.subtree_control)
        cgroup_remove
        echo $(cat $root/cgroup.subtree_control)
    """)
    assert result.returncode == 0, result.stderr
    existing, before, passed, after = (set(line.split()) for line in result.stdout.splitlines())
    assert passed == existing & {"cpu", "cpuset", "memory", "pids", "io", "hugetlb"}
    assert after == before


def test_a_needed_controller_that_cannot_be_had_is_named(tmp_path):
    result = run(tmp_path, "trap cgroup_remove EXIT; cgroup_make", needed="imaginary")
    assert result.returncode == 1
    assert "cgroup controller imaginary cannot be enabled" in result.stdout


def test_processes_are_killed_with_the_cgroup(tmp_path):
    result = run(tmp_path, """
        cgroup_make
        ( cgroup_join; exec sleep 60 ) &
        for attempt in $(seq 100); do grep -q . /sys/fs/cgroup/$NAME/node/cgroup.procs && break; sleep 0.05; done
        cgroup_remove
        wait $! || echo "ended with $?"
        [ -e /sys/fs/cgroup/$NAME ] || echo removed
    """)
    assert result.stdout.splitlines() == ["ended with 137", "removed"], result.stderr


def test_in_a_container_the_roots_processes_make_room_and_come_back(tmp_path):
    """A cgroup namespace, as a container has: its root is not the real one, so it must be empty of processes."""
    prefix = ("unshare", "--mount", "bash", "-c", """
        umount -l /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; mkdir -p /sys/fs/cgroup/sluice-container-test
        echo 0 >/sys/fs/cgroup/sluice-container-test/cgroup.procs
        unshare --cgroup "$@"; status=$?
        echo 0 >/sys/fs/cgroup/cgroup.procs; rmdir /sys/fs/cgroup/sluice-container-test; exit $status
    """, "outer")
    result = run(tmp_path, """
        cgroup_make
        [ -z "$(cat /sys/fs/cgroup/cgroup.procs)" ] && echo "root is empty"
        sed -n 's/^0:://p' /proc/self/cgroup
        cgroup_remove
        sed -n 's/^0:://p' /proc/self/cgroup
        [ -e /sys/fs/cgroup/$NAME ] || [ -e /sys/fs/cgroup/$NAME-host ] || echo removed
    """, prefix=prefix)
    assert result.stdout.splitlines() == ["root is empty", f"/{NAME}-host", "/", "removed"], result.stderr
