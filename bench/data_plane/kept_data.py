"""A data set whose features never change, with sluice.cached: what its epochs cost beside torch's loader, which computes them each time."""

import contextlib
import os
import pathlib
import statistics
import tempfile
import time

import numpy
import torch
from computing_data import Computes
from process_trees import tree_cpu_seconds
from torch.utils.data import DataLoader, Dataset

import sluice.torch
from sluice import cached
from sluice.feeder.choice import disconnect_all

CLIPS = 800
CLIP_SAMPLES = 80_000  # Five seconds at 16 kHz.
SETTLED_SECONDS = 11  # Results of younger files are not kept.
BATCH = 16
WORKERS = 2
CALLS = 100_000

_WINDOW = numpy.hanning(1024).astype(numpy.float32)
_MELS = numpy.abs(numpy.random.default_rng(1).standard_normal((513, 80))).astype(numpy.float32)  # Their values do not matter, their number does.


@cached(version="1")
def log_mel(path):
    """Some five milliseconds of a CPU, and 157 KB."""
    wave = numpy.fromfile(path, numpy.float32)
    frames = numpy.lib.stride_tricks.sliding_window_view(wave, len(_WINDOW))[::160] * _WINDOW
    power = numpy.abs(numpy.fft.rfft(frames, axis=1)) ** 2
    return torch.from_numpy(numpy.log(power.astype(numpy.float32) @ _MELS + 1e-6))


class Features(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return log_mel(self.paths[index]), index


@contextlib.contextmanager
def _clips():
    with tempfile.TemporaryDirectory() as folder:
        generator = numpy.random.default_rng(0)
        for number in range(CLIPS):
            generator.standard_normal(CLIP_SAMPLES).astype(numpy.float32).tofile(f"{folder}/{number:04}.f32")
        time.sleep(SETTLED_SECONDS)
        yield sorted(map(str, pathlib.Path(folder).iterdir()))


@contextlib.contextmanager
def _feeder_with_cache():
    """A new one. Its executors have started when this begins."""
    disconnect_all()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(SLUICE_CACHE_DIR=folder, SLUICE_CACHE_BYTES=str(1 << 30))
        try:
            for _ in sluice.torch.DataLoader(Computes(64), batch_size=BATCH, num_workers=WORKERS):
                pass
            yield
        finally:
            disconnect_all()
            del os.environ["SLUICE_CACHE_DIR"], os.environ["SLUICE_CACHE_BYTES"]


def _epoch_cpu_seconds(loader):
    """For 1,000 samples, of the whole process tree."""
    before = tree_cpu_seconds()
    for _ in loader:
        pass
    return (tree_cpu_seconds() - before) * 1000 / len(loader.dataset)


def epochs_beside_torch():
    """CPU-seconds for 1,000 samples: our first epoch, our second one, torch's second one."""
    with _clips() as paths:
        theirs = DataLoader(Features(paths), batch_size=BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)
        torch_seconds = [_epoch_cpu_seconds(theirs) for _ in range(2)][1]
        del theirs
        with _feeder_with_cache():
            ours = sluice.torch.DataLoader(Features(paths), batch_size=BATCH, shuffle=True, num_workers=WORKERS)
            first, second = (_epoch_cpu_seconds(ours) for _ in range(2))
            kept = [line for line in ours.explain().splitlines() if "kept results" in line]
            print(f"  first epoch {first:.2f}, second {second:.2f}, torch {torch_seconds:.2f} CPU-seconds for 1,000;{kept}", flush=True)
    return first, second, torch_seconds


def call_microseconds():
    """What the mark adds to a call where no executor is at work."""

    @cached(version="1")
    def same(value):
        return value

    def seconds(function):
        began = time.perf_counter()
        for _ in range(CALLS):
            function(1)
        return time.perf_counter() - began

    turns = [seconds(same) - seconds(same.__wrapped__) for _ in range(9)]
    return 1e6 * statistics.median(turns) / CALLS
