"""What a data worker costs a loop that the feeder alone would serve: as fast, slower, stopping, leaving. It should never cost anything.

usage: bench/data_plane/executor_mix.py BUILD     (one row of `make bench-client`)

Samples sleep, so that feeder and worker do not take CPU from each other; how long, each process's environment says. A worker that starts takes two
seconds of CPU, which data workers have on machines of their own: here it comes after all others.
"""

import argparse
import contextlib
import os
import signal
import statistics
import sys
import threading
import time

import torch
from remote_batches import batches_by_placement, feeder_for_workers, free_address, wait_for_workers, worker_at
from torch.utils.data import Dataset

import sluice.torch

SLOWNESS = "SLUICE_BENCH_SLOWNESS"  # Variables that begin so are a process's own: the trainer's are not carried to it.
BATCH_SIZE = 16
BATCHES = 100
SAMPLE_SECONDS = 0.002
EPOCHS = 5  # That are timed.
LAST = 19


class Sleeping(Dataset):
    def __len__(self):
        return BATCH_SIZE * BATCHES

    def __getitem__(self, index):
        time.sleep(SAMPLE_SECONDS * float(os.environ.get(SLOWNESS, "1")))
        return torch.tensor(index)


def epoch_seconds(loader, epochs=1):
    """The median of so many: what else this machine does slows some of them down."""
    seconds = []
    for _ in range(epochs):
        began = time.perf_counter()
        indices = [index for batch in loader for index in batch.tolist()]
        seconds.append(time.perf_counter() - began)
        if indices != list(range(BATCH_SIZE * BATCHES)):
            raise RuntimeError("the loop has not got each sample once, in order")
    return statistics.median(seconds)


def stop_and_go(worker, ended):
    """Half of the time the worker stands still, as on a machine that has no CPU for it."""
    while not ended.wait(0.5):
        worker.send_signal(signal.SIGSTOP)
        ended.wait(0.5)
        worker.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def in_background(work, *arguments):
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(*arguments, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def steady_worker(build, address, metrics_address, slowness):
    with worker_at(build, address, **{SLOWNESS: str(slowness)}):
        wait_for_workers(metrics_address)
        yield


@contextlib.contextmanager
def stopping_worker(build, address, metrics_address):
    with worker_at(build, address) as worker:
        wait_for_workers(metrics_address)
        with in_background(stop_and_go, worker):
            yield


@contextlib.contextmanager
def leaving_worker(build, address, metrics_address):
    """One worker after the other, each killed half a second after its first batch."""

    def come_and_go(ended):
        while not ended.is_set():
            before = batches_by_placement(metrics_address).get("remote", 0)
            with worker_at(build, address, nice=LAST) as worker:
                while not ended.wait(0.05) and batches_by_placement(metrics_address).get("remote", 0) == before:
                    pass
                ended.wait(0.5)
                worker.kill()

    with in_background(come_and_go):
        yield


CASES = {
    "as fast": lambda *place: steady_worker(*place, slowness=1),
    "10 times slower": lambda *place: steady_worker(*place, slowness=10),
    "50 times slower": lambda *place: steady_worker(*place, slowness=50),
    "stopping": stopping_worker,
    "leaving": leaving_worker,
}


def mixes(build):
    """Yields each case with the time of an epoch, and that of the same feeder alone just before."""
    for case, begin in CASES.items():
        address, metrics_address = free_address(), free_address()
        with feeder_for_workers(build, address, metrics_address):
            loader = sluice.torch.DataLoader(Sleeping(), batch_size=BATCH_SIZE, num_workers=2)
            epoch_seconds(loader)  # Starts the feeder's own executor.
            alone_seconds = epoch_seconds(loader, EPOCHS)
            with begin(build, address, metrics_address):
                epoch_seconds(loader)  # The worker's interpreter starts meanwhile, and its speed becomes known.
                yield case, epoch_seconds(loader, EPOCHS), alone_seconds


def worst_mix(build):
    """The time of the worst case beside that of the feeder alone."""
    return max(seconds / alone_seconds for _, seconds, alone_seconds in mixes(build))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    os.environ["SLUICE_STEP_ASIDE"] = "off"
    for case, seconds, alone_seconds in mixes(parser.parse_args().build):
        print(f"{case:16} {seconds:6.2f} s, the feeder alone {alone_seconds:6.2f} s: {seconds / alone_seconds:5.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
