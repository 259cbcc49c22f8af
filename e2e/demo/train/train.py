#!/usr/bin/env python3
"""A training script as users write it. The only trace of Sluice is the import of the DataLoader (and, with --announce,
one line that says how long the training will take).

    train.py vision --data /data/photographs --epochs 3 --batch-size 64

Environment: DATALOADER=torch|sluice (default torch); DIGEST=off|sampled|full (default sampled).
Prints JSON lines: `start`, `progress` every two seconds, `epoch`, and at the end one `result`:
  utilisation_percent  compute / (compute + wait) in the training loop, the wait for the very first batch left out
                       (MLPerf Storage's AU); every other wait counts, those at the start of later epochs too
  second_half_percent  the same over the second half of the samples: the pace once the workers have come
  digest               of all batches in order, over a fixed sample of their bytes (or all of them)
"""

import argparse
import json
import os
import signal
import sys
import time
import zlib

import torch
from accelerator import make_accelerator
from workloads import ACCELERATORS, DATASETS, Census

PROGRESS_SECONDS = 2.0
SAMPLED_STRIDE = 509  # prime, so that it meets all rows, columns and channels


def data_loader_class():
    if os.environ.get("DATALOADER", "torch") == "sluice":
        from sluice.torch import DataLoader
    else:
        from torch.utils.data import DataLoader
    return DataLoader


class Digest:
    """Of a sequence of batches: equal if, as far as it looks, the batches and their order are equal. A cryptographic one takes a quarter of a core
    where the processor has no instructions for it."""

    def __init__(self, how):
        self._stride = {"off": 0, "full": 1, "sampled": SAMPLED_STRIDE}[how]
        self._crc = 0

    def add(self, batch):
        for tensor in batch if self._stride else ():
            self._crc = zlib.crc32(tensor.reshape(-1)[:: self._stride].contiguous().numpy(), self._crc)

    def text(self):
        return f"{self._crc:08x}" if self._stride else ""


class StepClock:
    """Splits the training loop's time into compute and data wait."""

    def __init__(self, total_samples, clock=time.monotonic):
        self._clock = clock
        self._half_samples = total_samples / 2
        self._first_half = None  # (compute, wait) when half of the samples were through
        self._mark = clock()
        self.first_wait = None
        self.wait = self.compute = 0.0
        self.batches = self.samples = 0

    def start(self):
        self._mark = self._clock()

    def got_batch(self, samples):
        waited, self._mark = self._clock() - self._mark, self._clock()
        if self.first_wait is None:
            self.first_wait = waited
        else:
            self.wait += waited
        self.batches += 1
        self.samples += samples

    def computed(self):
        spent, self._mark = self._clock() - self._mark, self._clock()
        self.compute += spent
        if self._first_half is None and self.samples >= self._half_samples:
            self._first_half = self.compute, self.wait

    def second_half_percent(self):
        if self._first_half is None:
            return None
        compute, wait = self.compute - self._first_half[0], self.wait - self._first_half[1]
        return round(100 * compute / (compute + wait), 1) if compute + wait else None

    def summary(self):
        looped = self.compute + self.wait
        return {
            "samples": self.samples,
            "batches": self.batches,
            "compute_seconds": round(self.compute, 3),
            "wait_seconds": round(self.wait, 3),
            "first_wait_seconds": round(self.first_wait or 0, 3),
            "utilisation_percent": round(100 * self.compute / looped, 1) if looped else 0,
            "second_half_percent": self.second_half_percent(),
            "samples_per_second": round(self.samples / looped, 1) if looped else 0,
        }


def say(event, **fields):
    print(json.dumps({"event": event, "time": round(time.time(), 3), **fields}), flush=True)


def train(loader, accelerator, epochs, digest):
    """Returns the time accounting and one record per epoch."""
    clock, records, next_progress = StepClock(len(loader.dataset) * epochs), [], time.monotonic() + PROGRESS_SECONDS
    for epoch in range(epochs):
        census = Census(loader.dataset)
        clock.start()
        for batch in loader:
            clock.got_batch(len(batch[1]))
            accelerator.begin(batch)
            census.add(batch)
            digest.add(batch)
            accelerator.wait()
            clock.computed()
            if time.monotonic() >= next_progress:
                next_progress = time.monotonic() + PROGRESS_SECONDS
                say("progress", epoch=epoch, **clock.summary())
            clock.start()
        records.append({"epoch": epoch, "samples": census.samples, "complete": census.complete(), "digest": digest.text()})
        say("epoch", **records[-1])
    return clock, records


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", choices=sorted(DATASETS))
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--samples", type=int, default=0, help="samples per epoch: a prefix of the data set; 0: all")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2, help="num_workers of the DataLoader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--step-factor", type=float, default=1, help="of an emulated accelerator: steps take so many times as long")
    parser.add_argument("--announce", type=int, default=0, metavar="EPOCHS", help="tell Sluice that the training takes so many epochs")
    return parser.parse_args()


def shorten(dataset, job, samples):
    """A prefix of the data set, of the same class, so that it is still a plain ImageFolder."""
    if not 0 < samples < len(dataset):
        return dataset
    kept = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(0))[:samples].tolist()
    for name in {"vision": ["samples", "targets"], "speech": ["paths", "targets"], "text": ["paragraphs", "targets"]}[job]:
        setattr(dataset, name, [getattr(dataset, name)[index] for index in kept])
    if job == "vision":
        dataset.imgs = dataset.samples
    return dataset


def end_when_told():
    """Process 1 of a container ignores SIGTERM unless it says otherwise: to delete the job would then take the whole grace period of 30 s."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def main():
    started = time.monotonic()
    end_when_told()
    arguments = parse_arguments()
    torch.manual_seed(arguments.seed)
    dataset = shorten(DATASETS[arguments.job](arguments.data), arguments.job, arguments.samples)
    accelerator = make_accelerator(arguments.job, ACCELERATORS[arguments.job].slower(arguments.step_factor), max(dataset.targets) + 1)
    loader_class = data_loader_class()
    loader = loader_class(
        dataset, batch_size=arguments.batch_size, shuffle=True,
        num_workers=arguments.workers, persistent_workers=arguments.workers > 0,
    )  # fmt: skip
    if arguments.announce:
        loader.announce(epochs=arguments.announce)
    who = {"job": arguments.job, "loader": f"{loader_class.__module__}.{loader_class.__qualname__}", "accelerator": accelerator.name}
    say("start", size=len(dataset), epochs=arguments.epochs, total=len(dataset) * arguments.epochs, **who)
    digest = Digest(os.environ.get("DIGEST", "sampled"))
    clock, epochs = train(loader, accelerator, arguments.epochs, digest)
    say("result", **who, **clock.summary(), wall_seconds=round(time.monotonic() - started, 3),
        complete=all(epoch["complete"] for epoch in epochs), epochs=epochs)  # fmt: skip


if __name__ == "__main__":
    main()
