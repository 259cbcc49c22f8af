"""How much faster two data workers serve a loop than one, on a machine of two cores that they share with the feeder and the trainer.

Each worker has one thread and one core, as a pod with a limit of one core. The feeder's executing threads get only what a worker leaves of its core, so
that the workers make the batches.
"""

import contextlib
import os
import pathlib
import time

from remote_batches import batches_by_placement, feeder_for_workers, free_address, remote_share, wait_for_remote_batches, wait_for_workers, worker_at

import sluice.torch

_SECONDS = 3
_EXECUTING_NICE = 10  # Of the feeder's threads that execute, where it has workers.
_LEAST_REMOTE_SHARE = 0.95


def _hold_back_executing_threads(feeder_pid, core):
    for task in pathlib.Path(f"/proc/{feeder_pid}/task").iterdir():
        thread = int(task.name)
        if os.getpriority(os.PRIO_PROCESS, thread) == _EXECUTING_NICE:
            os.sched_setaffinity(thread, {core})
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def wall_seconds_per_1000(build, dataset, batch_size, workers):
    """Of images that reach the loop. Raises RuntimeError where the feeder makes more than a few of the batches."""
    cores = sorted(os.sched_getaffinity(0))[:workers]
    port, metrics_address = free_address().rpartition(":")[2], free_address()
    addresses = [f"127.0.0.{number}:{port}" for number in range(1, workers + 1)]
    with contextlib.ExitStack() as programs:
        for address, core in zip(addresses, cores, strict=True):
            os.sched_setaffinity(programs.enter_context(worker_at(build, address)).pid, {core})  # Before it has more threads than one.
        feeder = programs.enter_context(feeder_for_workers(build, ",".join(addresses), metrics_address))
        loader = sluice.torch.DataLoader(dataset, batch_size=batch_size, num_workers=2)
        wait_for_remote_batches(loader, metrics_address)
        wait_for_workers(metrics_address, workers)
        _hold_back_executing_threads(feeder.pid, cores[0])
        for _ in loader:  # Each worker's speed becomes known.
            pass
        before, images, began = batches_by_placement(metrics_address), 0, time.perf_counter()
        while time.perf_counter() - began < _SECONDS:
            images += sum(len(labels) for _, labels in loader)
        seconds = time.perf_counter() - began
        share = remote_share(before, batches_by_placement(metrics_address))
    if share < _LEAST_REMOTE_SHARE:
        raise RuntimeError(f"the feeder made {1 - share:.0%} of the batches")
    return 1000 * seconds / images
