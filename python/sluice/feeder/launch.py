"""Which ranks of a host may share a feeder: those of which each would have started the very same one.

A feeder inherits from the process that starts it, and its executors inherit from the feeder: the environment, the CPUs, the limits, the cgroup, the
standard output. All of that must be equal, or one rank's batches would be made in the circumstances of another. It goes into a digest, the name of the
feeder's folder. So ranks that differ in any of it meet in no folder, and have feeders of their own.

Only the variables by which launchers tell each rank about itself may differ. The feeder does not get them; the pipelines take them along.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.base.settings import Settings
from sluice.feeder.programs import program_environment
from sluice.shipping.surroundings import RANK_VARIABLES

_MOST_RANKS = 256  # Clients of one feeder.
_NAME_DIGITS = 24
_THREAD = Path("/proc/thread-self")
# Of what /proc/PID/status tells, that which a new program keeps.
_STATUS = {
    "Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
    "Seccomp_filters", "Cpus_allowed", "Mems_allowed",
}


@dataclass(frozen=True)
class Launch:
    """`ranks`: how many there are on this host. `environment`: of the feeder that they share. `name`: equal in those that share it."""

    ranks: int
    environment: Mapping[str, str]
    name: str

    @staticmethod
    def of_this_thread(command: list[str], settings: Settings) -> Launch | None:
        """Of which the calling thread is a part, if it starts this command. None if there is but one rank. Raises OSError where the system
        does not tell what is inherited."""
        ranks = os.environ.get("LOCAL_WORLD_SIZE", "")
        if not ranks.isdigit() or not 2 <= int(ranks) <= _MOST_RANKS:
            return None
        environment = {name: value for name, value in program_environment(os.environ).items() if name not in RANK_VARIABLES}
        what = (command, sys.executable, __file__, settings, sorted(environment.items()), _parent(), _inherited())
        return Launch(int(ranks), environment, hashlib.sha256(repr(what).encode()).hexdigest()[:_NAME_DIGITS])


def _parent() -> tuple[int, str]:
    """The process that has started this one: its id, and when it began. The PID namespace is among what is inherited."""
    pid = os.getppid()
    began = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    if os.getppid() != pid:
        raise OSError("the launcher has ended")
    return pid, began


def _inherited() -> tuple:
    """What a program that this thread starts has from it."""
    status = [line for line in (_THREAD / "status").read_text().splitlines() if line.partition(":")[0] in _STATUS]
    texts = [(_THREAD / name).read_text() for name in ("limits", "cgroup", "oom_score_adj", "personality")]
    namespaces = sorted((entry.name, os.readlink(entry)) for entry in (_THREAD / "ns").iterdir())
    places = os.readlink(_THREAD / "root"), os.getcwd()
    turns = os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getparam(0).sched_priority
    output = os.fstat(1)  # Where a data set prints to.
    return status, texts, namespaces, places, turns, _memory_policy(), (output.st_dev, output.st_ino)


def _memory_policy() -> str:
    """As `numactl` sets it, of the thread; "" on a kernel without NUMA."""
    try:
        with open(_THREAD / "numa_maps") as maps:
            return maps.readline().split()[1]
    except FileNotFoundError:
        return ""
