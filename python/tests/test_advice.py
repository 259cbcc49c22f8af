"""What users are told to do about the wait for data, and what is counted for that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluice.base.cpu_quota import threads_for, usable_cores
from sluice.explain.advice import MIN_BATCHES, Site, advice
from sluice.makers.accounting import Account, Totals
from sluice.makers.measured import FORKS, HERE, LOCAL, REMOTE, WARM_UP_BATCHES, Measured, Pace

CLUSTER = Site(num_workers=4, workers_are_free=True, cores=None)
LAPTOP = Site(num_workers=2, workers_are_free=True, cores=8)


def pace(compute: float, wait: float, cpu: float, blocked: float | None = 0.0, batches: int = 100, maker: str = LOCAL) -> Pace:
    """Seconds of each batch."""
    return Pace(maker, batches, compute * batches, wait * batches, cpu * batches, None if blocked is None else blocked * batches)


# Each: the pace, where, what is said last, and a word that must not be said.
ADVICE = {
    "too few batches": (pace(1, 1, 2, batches=MIN_BATCHES - 1), CLUSTER, f"no advice yet: {MIN_BATCHES} batches are needed after the first 20, and there are 49", "core"),
    "no wait": (pace(1, 0.004, 3), CLUSTER, "nothing to gain: the loop waited 0.4 % of its time", "num_workers"),
    "no wait, and too many workers": (pace(1, 0.001, 1.2), replace(LAPTOP, num_workers=8), "num_workers=2 is enough: executors were busy on 1.2 cores", "gain:"),
    "those that wait for reads count": (pace(1, 0, 1.2, 2.0), replace(LAPTOP, num_workers=8), "num_workers=5 is enough", "gain:"),
    "no wait, and no worker too many": (pace(1, 0, 1.2), LAPTOP, "nothing to gain: the loop waited 0.0 % of its time", "enough"),
    "workers that decide about batches": (pace(1, 0, 0.1), Site(8, False, 8), "nothing to gain: the loop waited 0.0 % of its time", "enough"),
    "two more cores": (pace(1, 0.613, 3.2), CLUSTER,
                       "1 more core 1.5x, 2 more cores of the feeder or of data workers would make it up to 1.6x faster; the loop's own computing (its accelerator) "
                       "is the limit after that", "num_workers"),
    "one more core": (pace(1, 0.25, 1.2), CLUSTER, "1 more core of the feeder or of data workers would make it up to 1.2x faster; the loop's", "cores"),
    "more workers": (pace(1, 1, 4), LAPTOP, "num_workers=4 would make it up to 2.0x faster; the loop's own computing", "more core"),
    "more workers than there are cores": (pace(1, 7, 16), LAPTOP, "num_workers=7 would make it up to 3.5x faster", "accelerator"),
    "all cores are in use": (pace(1, 1, 4), Site(2, True, 2), "2 more cores would make it up to 2.0x faster", "num_workers"),
    "forks that keep their cores busy": (pace(1, 1, 4, None, maker=FORKS), Site(2, True, 2), "2 more cores would make it", "num_workers"),
    "workers that decide, all busy": (pace(1, 1, 4), Site(2, False, 8), "2 more cores would make it up to 2.0x faster", "num_workers"),
    "slow reads": (pace(1, 1, 0.5, 1.5), CLUSTER, "executors waited 75 % of their time for what they read, or slept: more cores would not change that", "faster"),
    "slow reads beside this process": (pace(1, 1, 0.5, 1.5), LAPTOP, "executors waited 75 % of their time", "faster"),
    "neither CPU nor reads": (pace(1, 1, 0.5), LAPTOP, "no advice: executors got no more than 0.25 of 2 cores", "faster"),
    "not known": (pace(1, 1, 3, None), CLUSTER, "whether they lack CPU is not known", "faster"),
    "made in this process": (pace(1, 1, 1, None, maker=HERE), LAPTOP, "forks of it or executors are started once they pay for their start", "core"),
    "a loop that does nothing": (pace(0, 1, 4), Site(4, True, 4), "executors were busy on 4 cores, and the loop does nothing but wait", "accelerator"),
}  # fmt: skip


@pytest.mark.parametrize("case", ADVICE)
def test_what_to_do(case):
    measured, site, last, unsaid = ADVICE[case]
    said = advice(measured, site)
    assert said[-1].startswith(last) or last in said[-1]
    assert unsaid not in said[-1]


def test_the_wait_is_told_in_percent_and_in_milliseconds():
    assert advice(pace(0.05, 0.03, 0.16), CLUSTER)[0] == "the loop waited 37.5 % of its time, 30 ms of 80 ms a batch"


class Loop(Account):
    """Of an epoch: each look at it finds one batch more, of 1 s of computing and 0.5 s of waiting."""

    looks = 0

    def totals(self) -> Totals:
        self.looks += 1
        return Totals(self.looks, 4 * self.looks, 1.0 * self.looks, 0.5 * self.looks)


def test_costs_are_added_up_exactly():
    measured, loop = Measured(), Loop()
    for maker, executor, ops, seconds in [
        (LOCAL, "native", [["read", 0.25, 10], ["decode", 0.5, 100]], 1.0),
        (REMOTE, "native", [["read", 0.125, 20], ["decode", 0.25, 200], ["finish", 0.5, 7]], 0.5),
        (HERE, "python", [["dataset", 1.0, 0], ["collate", 0.5, 8]], None),
    ]:  # fmt: skip
        measured.add(maker, executor, 4, ops, loop, seconds)
    made, work, _ = measured.so_far()
    assert made == {LOCAL: 1, REMOTE: 1, HERE: 1}
    native, python = work["native"], work["python"]
    assert (native.batches, native.samples, native.seconds) == (2, 8, 1.875), "an answer's seconds are never less than those of its operations"
    assert {op: (cost.seconds, cost.bytes) for op, cost in native.ops.items()} == {"read": (0.375, 30), "decode": (0.75, 300), "finish": (0.5, 7)}
    assert (python.samples, python.seconds, python.ops["collate"].bytes) == (4, 1.5, 8)
    together = Measured.together([measured, measured]).so_far()
    assert together[0] == {LOCAL: 2, REMOTE: 2, HERE: 2} and together[1]["native"].ops["decode"].bytes == 600


def test_the_pace_is_that_of_one_place_after_its_first_batches():
    measured = Measured()

    def give(loop: Loop, maker: str, batches: int, blocked: float | None = 0.25) -> None:
        for _ in range(batches):
            measured.add(maker, "python", 4, [["dataset", 2.0, 0]], loop, None, blocked)

    first, second = Loop(), Loop()
    give(first, HERE, 5)
    give(first, LOCAL, WARM_UP_BATCHES + 1)
    assert measured.so_far()[2].batches == 0
    give(first, REMOTE, 3)
    give(first, LOCAL, 7)
    assert measured.so_far()[2] == Pace(LOCAL, 10, 10.0, 5.0, 20.0, 2.5)
    give(second, LOCAL, 2, None)
    assert measured.so_far()[2] == Pace(LOCAL, 12, 12.0, 6.0, 24.0, None)
    give(second, FORKS, 1)
    assert measured.so_far()[2] == Pace(FORKS)


def test_another_pipeline_is_measured_anew():
    measured = Measured.of(None, ("native", "decode_rgb"))
    assert Measured.of(measured, ("native", "decode_rgb")) is measured
    assert Measured.of(measured, ("python", "a reason")) is not measured


@pytest.mark.parametrize("files, quota", [
    ({"proc/self/cgroup": "0::/pod/box\n", "sys/fs/cgroup/pod/box/cpu.max": "max 100000", "sys/fs/cgroup/pod/cpu.max": "25000 100000"}, 0.25),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 0.5),
    ({"proc/self/cgroup": "3:cpu,cpuacct:/a\n0::/\n", "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "75000", "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000"}, 0.75),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "nonsense"}, None),
    ({}, None),
])  # fmt: skip
def test_the_quota_is_that_of_the_cgroup_or_of_one_above_it(files, quota, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert usable_cores(tmp_path) == (quota or usable_cores(tmp_path / "nothing"))


@pytest.mark.parametrize("cores, threads", [(0.25, 1), (1, 1), (1.005, 1), (1.5, 2), (4, 4)])
def test_threads_of_a_quota(cores, threads):
    assert threads_for(cores) == threads
