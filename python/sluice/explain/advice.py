"""What a user can do about the time that a training loop waits for data, from what was measured and nothing else.

Per batch, in seconds: the loop computes for c and waits for w, and executors compute for k on their CPUs and wait for b for what they read. Then
* the loop waits for the share w / (c + w) of its time,
* executors use k / (c + w) cores,
* with k / c cores, the knee, the loop would not wait, and it would step (c + w) / c times as fast,
* with p cores it would step (c + w) / max(c, k / p) times as fast.
The last two hold where CPU is what executors lack. That is taken for granted only if they wait for what they read for a quarter of their time at most,
or keep 70 % of the cores busy that they have. Speeds are rounded down, and numbers of cores and workers up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sluice.base.cpu_quota import threads_for
from sluice.makers.measured import FORKS, HERE, WARM_UP_BATCHES, Pace

MIN_BATCHES = 50
_NO_WAIT = 0.02           # Of the loop's time: less is not worth a change.
_MOST_BLOCKED = 0.25      # Of the executors' time.
_LEAST_BUSY = 0.7         # Of the cores that executors have.
_HEADROOM = 1.5           # Of executors above what is busy on average: batches differ.
_LEAST_GAIN = 1.05


@dataclass(frozen=True)
class Site:
    """`num_workers` of the loader, and whether another number gives the same batches. `cores`: that executors beside this process may use;
    None where some are elsewhere, or where another program decides."""

    num_workers: int
    workers_are_free: bool
    cores: float | None


def advice(pace: Pace, site: Site) -> list[str]:
    """Sentences: how long the loop waited, and what would change that. No more than the former below MIN_BATCHES."""
    if pace.batches < MIN_BATCHES:
        return [f"no advice yet: {MIN_BATCHES} batches are needed after the first {WARM_UP_BATCHES}, and there are {pace.batches}"]
    step_seconds = pace.compute_seconds + pace.wait_seconds
    waited = pace.wait_seconds / step_seconds if step_seconds > 0 else 0.0
    share = f"the loop waited {100 * waited:.1f} % of its time"
    if waited < _NO_WAIT:
        return [f"nothing to gain: {share}", *_enough_workers(pace, site, step_seconds)]
    if pace.maker == HERE:
        return [f"{share}, as this process makes the batches: forks of it or executors are started once they pay for their start"]
    per_batch = f"{1e3 * pace.wait_seconds / pace.batches:.3g} ms of {1e3 * step_seconds / pace.batches:.3g} ms a batch"
    return [f"{share}, {per_batch}", _remedy(pace, site, step_seconds)]


def _enough_workers(pace: Pace, site: Site, step_seconds: float) -> list[str]:
    """Said where num_workers is how many there are, and fewer would do."""
    if not site.workers_are_free or site.cores is None or pace.maker == HERE or step_seconds <= 0:
        return []
    enough = max(1, math.ceil(_HEADROOM * (pace.cpu_seconds + (pace.blocked_seconds or 0.0)) / step_seconds))
    if pace.blocked_seconds is None or enough >= min(site.num_workers, threads_for(site.cores)):
        return []
    return [f"num_workers={enough} is enough: executors were busy on {pace.cpu_seconds / step_seconds:.2g} cores"]


def _remedy(pace: Pace, site: Site, step_seconds: float) -> str:
    busy_cores = pace.cpu_seconds / step_seconds
    has_cores = None if site.cores is None else min(site.num_workers, site.cores)
    is_busy = has_cores is not None and busy_cores >= _LEAST_BUSY * has_cores
    blocked_share = None
    if pace.blocked_seconds is not None and pace.cpu_seconds + pace.blocked_seconds > 0:
        blocked_share = pace.blocked_seconds / (pace.cpu_seconds + pace.blocked_seconds)
    if not is_busy and blocked_share is not None and blocked_share > _MOST_BLOCKED:
        return f"executors waited {100 * blocked_share:.0f} % of their time for what they read, or slept: more cores would not change that"
    if not is_busy and has_cores is not None:
        return f"no advice: executors got no more than {busy_cores:.2g} of {has_cores:.2g} cores, and what they lacked is not known"
    if blocked_share is None and not is_busy:
        return f"executors were busy on {busy_cores:.2g} cores; whether they lack CPU is not known"
    return _more(pace, site, step_seconds, busy_cores)


def _more(pace: Pace, site: Site, step_seconds: float, busy_cores: float) -> str:
    """What CPU would bring, if that is what executors lack."""
    if pace.compute_seconds <= 0:
        return f"executors were busy on {busy_cores:.2g} cores, and the loop does nothing but wait: each core more makes it faster"
    knee_cores = pace.cpu_seconds / pace.compute_seconds

    def gain(cores: float) -> float:
        return step_seconds / max(pace.compute_seconds, pace.cpu_seconds / cores)

    # One core is left to this process, which computes, too.
    workers = min(math.ceil(knee_cores), threads_for(site.cores) - 1) if site.cores is not None else 0
    if site.workers_are_free and workers > site.num_workers and gain(workers) >= _LEAST_GAIN:
        return f"num_workers={workers} would make it up to {_times(gain(workers))} faster{_limit(workers, knee_cores)}"
    more = max(1, math.ceil(knee_cores - busy_cores))
    whose = "" if site.cores is not None or pace.maker == FORKS else " of the feeder or of data workers"
    first = f"1 more core {_times(gain(busy_cores + 1))}, " if more > 1 and gain(busy_cores + 1) >= _LEAST_GAIN else ""
    return f"{first}{more} more core{'s' if more > 1 else ''}{whose} would make it up to {_times(gain(busy_cores + more))} faster{_limit(busy_cores + more, knee_cores)}"


def _limit(cores: float, knee_cores: float) -> str:
    return "; the loop's own computing (its accelerator) is the limit after that" if cores >= knee_cores else ""


def _times(gain: float) -> str:
    return f"{math.floor(10 * gain + 1e-9) / 10:.1f}x" if gain >= 1.1 else f"{math.floor(100 * gain + 1e-9) / 100:.2f}x"
