#!/usr/bin/env python3
"""What a loader of a Python data set, or of very many files, costs beside torch's loader: seconds and memory.

usage: bench/data_plane/client_bench.py BUILD [--output FILE] [--only MEASURES]

Each figure is the median or the total that its name says, from this process and a feeder of its own. Executors are started at
once, for otherwise the training process and its forks might serve these short loops; but for the two rows that are about those. `new_loader` is about data sets of
`__main__`, which this script's own are. The figures mean something on a quiet machine only.
Prints a table and writes it as JSON. Goals: client_goals.json beside this file.
"""

import argparse
import contextlib
import functools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
import torchvision.transforms as transforms
from computing_data import local_beside_torch, remote_beside_torch
from executor_mix import worst_mix
from kept_data import call_microseconds, epochs_beside_torch
from PIL import Image
from process_trees import adopt_orphans, of_tree, own_bytes
from remote_batches import worker_and_feeder
from torch.utils.data import Dataset
from torchvision.datasets import ImageFolder

import sluice.torch
from sluice.base.settings import Settings
from sluice.feeder.choice import disconnect_all, shared_connection

HERE = pathlib.Path(__file__).resolve().parent
FILES = 1_280_000
CLASSES = 1000
COPY_BYTES = 400 << 20
CHILDREN = 4
epochs_of_kept_features = functools.cache(epochs_beside_torch)  # Two rows are of one measurement.
LOADERS = (3, 8)
EPOCHS = 1000


class Counts(Dataset):
    """A row for each index, and the epoch."""

    def __init__(self, samples=256, seconds=0.0):
        self.samples, self.seconds, self.epoch = samples, seconds, 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.full((64,), float(index)), self.epoch


class Table(Dataset):
    """Rows of a large array. Reading one takes so long that every child gets some."""

    def __init__(self):
        self.rows = numpy.ones((COPY_BYTES // 4096, 4096), dtype=numpy.uint8)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.from_numpy(self.rows[index].copy())


def many_files():
    """An ImageFolder of files that are never read: what begins an epoch looks at their names only."""
    folder = ImageFolder.__new__(ImageFolder)
    folder.root = "/data"
    steps = [transforms.Resize((224, 224)), transforms.ToTensor()]
    Dataset.__init__(folder)
    made = {"transform": transforms.Compose(steps), "target_transform": None, "loader": ImageFolder.__init__.__defaults__[2], "transforms": None}
    names = [f"n{number:08d}" for number in range(CLASSES)]
    samples = [(f"/data/{names[number % CLASSES]}/{names[number % CLASSES]}_{number}.JPEG", number % CLASSES) for number in range(FILES)]
    folder.__dict__.update(made, classes=names, class_to_idx={name: number for number, name in enumerate(names)})
    folder.__dict__.update(samples=samples, imgs=samples, targets=[label for _, label in samples])
    return folder


def first_batch_seconds(loader, epochs, change=lambda epoch: None):
    """From the epoch's begin to its first batch: of the epochs after the first. `change(epoch)` comes before it."""
    seconds = []
    for epoch in range(epochs):
        change(epoch)
        began = time.perf_counter()
        batches = iter(loader)
        next(batches)
        seconds.append(time.perf_counter() - began)
        for _ in batches:
            pass
    return statistics.median(seconds[1:])


def change_of_epoch(loader_class):
    dataset = Counts()
    return 1000 * first_batch_seconds(loader_class(dataset, batch_size=16, num_workers=2), 12, dataset.set_epoch)


def epoch_as_before(loader_class):
    return 1000 * first_batch_seconds(loader_class(Counts(), batch_size=16, num_workers=2), 12)


def new_loader(loader_class):
    """From the making of a loader to its first batch, of a data set of this script that the feeder has not met."""
    seconds = []
    for samples in range(300, 306):
        began = time.perf_counter()
        batches = iter(loader_class(Counts(samples), batch_size=16, num_workers=2))
        next(batches)
        seconds.append(time.perf_counter() - began)
        del batches
    return statistics.median(seconds[1:])


def growth_over_epochs():
    """MiB of this process and its descendants, from the 100th to the 1,000th epoch of a data set that changes with each."""
    dataset = Counts(32)
    loader = sluice.torch.DataLoader(dataset, batch_size=16, num_workers=2)
    for epoch in range(EPOCHS):
        if epoch == EPOCHS // 10:
            before = of_tree(own_bytes)
        dataset.set_epoch(epoch)
        for _, epochs in loader:
            assert epochs.tolist() == [epoch] * 16
    return (of_tree(own_bytes) - before) / 2**20


def worker_of_many_files(build):
    """MiB of a data worker that has their table, at its peak and above the table's size."""
    with worker_and_feeder(build) as (worker, metrics_address):
        batches = iter(sluice.torch.DataLoader(many_files(), batch_size=64, num_workers=2))
        table_bytes = batches._stream.pipeline.registration(2, 64)[1].memory.nbytes
        deadline = time.monotonic() + 60
        while memory_bytes(worker.pid, "VmHWM") < table_bytes and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)  # It parses what it has got.
        peak_bytes = memory_bytes(worker.pid, "VmHWM")
        batches._shutdown_workers()
    assert peak_bytes > table_bytes, "the table has not come to the worker"
    return (peak_bytes - table_bytes) / 2**20


def memory_bytes(pid, field):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def second_epoch_of_many_files():
    """`iter()` alone, of the epochs after the first."""
    loader = sluice.torch.DataLoader(many_files(), batch_size=64, num_workers=2)
    assert loader.explain().startswith("executor: native"), loader.explain()
    seconds = []
    for _ in range(6):
        began = time.perf_counter()
        batches = iter(loader)
        seconds.append(time.perf_counter() - began)
        batches._shutdown_workers()
    return 1000 * statistics.median(seconds[1:])


def copies_of_a_table():
    """Copies beside the trainer's own: what serving the data set adds to what serving an empty one has added."""
    small = Counts(64, seconds=0.05)
    grown = []
    for make in (lambda: small, Table):
        disconnect_all()
        dataset = make()
        before = of_tree(own_bytes)
        loader = sluice.torch.DataLoader(dataset, batch_size=2, num_workers=CHILDREN)
        for _ in loader:
            pass
        grown.append(of_tree(own_bytes) - before)
    return (grown[1] - grown[0]) / COPY_BYTES


def trainer_microseconds_a_batch(loader_class, **arguments):
    """Processor time of the training loop's own thread, of batches that are there when they are wanted."""
    loader = loader_class(Counts(16 * 310), batch_size=16, **arguments)
    batches = iter(loader)
    for _ in range(100):
        next(batches)
    spent = []
    for _ in range(200):
        time.sleep(0.003)
        began = time.thread_time()
        next(batches)
        spent.append(time.thread_time() - began)
    return 1e6 * statistics.median(spent)


def trainer_beside_forks():
    """A loader with a timeout has forks from its first batch on."""
    with stepping_aside():
        ours = trainer_microseconds_a_batch(sluice.torch.DataLoader, num_workers=2, timeout=60)
    return ours, trainer_microseconds_a_batch(torch.utils.data.DataLoader, num_workers=2)


def trainer_in_process():
    """Above what torch takes that makes its batches there, too; and that."""
    with stepping_aside():
        ours = trainer_microseconds_a_batch(sluice.torch.DataLoader, num_workers=2)
    alone = trainer_microseconds_a_batch(torch.utils.data.DataLoader, num_workers=0)
    return ours - alone, alone


@contextlib.contextmanager
def stepping_aside():
    os.environ["SLUICE_STEP_ASIDE"] = "on"
    try:
        yield
    finally:
        os.environ["SLUICE_STEP_ASIDE"] = "off"


@contextlib.contextmanager
def as_a_user_has_it():
    """Without this program's own settings."""
    threads = os.environ.pop("SLUICE_THREADS")
    try:
        with stepping_aside():
            yield
    finally:
        os.environ["SLUICE_THREADS"] = threads


FIRST_BATCH = """import sys
from torchvision import datasets, transforms
from {module} import DataLoader
images = datasets.ImageFolder(sys.argv[1], transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()]))
next(iter(DataLoader(images, batch_size=8, num_workers=2)))
"""


def first_batch_of_a_process(module, folder):
    """From the start of Python to its end, with its imports and its feeder; the first run warms the page cache."""
    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", FIRST_BATCH.format(module=module), folder], check=True)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])


def first_batches():
    with tempfile.TemporaryDirectory() as folder, as_a_user_has_it():
        pathlib.Path(folder, "class").mkdir()
        noise = numpy.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=numpy.uint8)
        for number in range(64):
            Image.fromarray(noise).save(pathlib.Path(folder, "class", f"{number}.jpg"))
        return first_batch_of_a_process("sluice.torch", folder), first_batch_of_a_process("torch.utils.data", folder)


def in_turn(number):
    """The time of so many loaders, a batch of each in turn, beside that of one after the other."""
    loaders = [sluice.torch.DataLoader(Counts(160, seconds=0.001), batch_size=16, num_workers=2) for _ in range(number)]
    seconds = []
    for _ in range(2):  # The first round starts what serves them.
        began = time.perf_counter()
        for loader in loaders:
            for _ in loader:
                pass
        alone = time.perf_counter() - began
        began = time.perf_counter()
        for _ in zip(*loaders, strict=True):
            pass
        seconds.append((time.perf_counter() - began) / alone)
    return seconds[-1]


def beside_torch(measure):
    return lambda build: (measure(sluice.torch.DataLoader), measure(torch.utils.data.DataLoader))


def kept_results(epoch):
    """The first or the second epoch of features that a cache keeps, by torch's; and torch's."""
    *ours, its = epochs_of_kept_features()
    return ours[epoch] / its, its


def python_data_as_a_user_has_it():
    with as_a_user_has_it():
        return local_beside_torch()


MEASURES = {
    "python_data": lambda build: python_data_as_a_user_has_it(),
    "python_data_executors": lambda build: local_beside_torch(),
    "python_data_remote": remote_beside_torch,
    "kept_results": lambda build: kept_results(1),
    "kept_results_first": lambda build: kept_results(0),
    "marked_call": lambda build: (call_microseconds(), None),
    "new_loader": beside_torch(new_loader),
    "first_batch": lambda build: first_batches(),
    "set_epoch": beside_torch(change_of_epoch),
    "same_epoch": beside_torch(epoch_as_before),
    "growth": lambda build: (growth_over_epochs(), None),
    "many_files": lambda build: (second_epoch_of_many_files(), None),
    "many_files_worker": lambda build: (worker_of_many_files(build), None),
    "copies": lambda build: (copies_of_a_table(), None),
    "trainer": lambda build: (trainer_microseconds_a_batch(sluice.torch.DataLoader, num_workers=2), None),
    "trainer_forks": lambda build: trainer_beside_forks(),
    "trainer_in_process": lambda build: trainer_in_process(),
    "executor_mix": lambda build: (worst_mix(build), None),
    **{f"in_turn_{number}": (lambda build, number=number: (in_turn(number), None)) for number in LOADERS},
}


def chosen_goals(only):
    goals = json.loads((HERE / "client_goals.json").read_text())
    return [goal for goal in goals if not only or goal["measure"] in only.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--output", default=str(HERE.parent / "results/client.json"))
    parser.add_argument("--only", default="", help="measures of client_goals.json, by commas; nothing is written then")
    options = parser.parse_args()
    os.environ["SLUICE_FEEDER_BINARY"] = str(pathlib.Path(options.build, "worker-image/sluice-feeder").resolve())
    os.environ.update(SLUICE_STEP_ASIDE="off", SLUICE_THREADS=str(CHILDREN))
    adopt_orphans()  # The feeder's time and memory count.
    shared_connection(Settings.from_environment())
    rows = []
    for goal in chosen_goals(options.only):
        began = time.monotonic()
        value, peer = MEASURES[goal["measure"]](options.build)
        row = {"name": goal["name"], "value": round(value, 3), "goal": goal["at_most"], "peer": None if peer is None else round(peer, 3)}
        rows.append({**row, "verdict": "ok" if value <= goal["at_most"] else "falls short"})
        torch_has = "" if peer is None else f"torch {peer:.3f}"
        print(f"{row['name']:64} {value:9.3f} {row['goal']:7.2f} {torch_has:14} {rows[-1]['verdict']}  ({time.monotonic() - began:.0f} s)", flush=True)
    disconnect_all()
    result = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "peer": f"torch {torch.__version__} DataLoader",
        "load_average": os.getloadavg()[0],
        "rows": rows,
    }
    if not options.only:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["verdict"] == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
