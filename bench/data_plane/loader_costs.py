"""What a loader costs: CPU time of the whole process tree in the middle of a training."""

import argparse
import time
import warnings

import torch
from process_trees import tree_cpu_seconds

from sluice.base.settings import Settings
from sluice.feeder.choice import feeder_in_words
from sluice.media import native_audio


def repetitions_beside_torch(documentation, repetitions):
    """What --repetitions says, of a program that compares Sluice's loader with torch's; `repetitions` if it is not there."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=repetitions)
    repetitions = parser.parse_args().repetitions
    if feeder_in_words(Settings.from_environment()) is None:
        raise SystemExit("SLUICE_FEEDER_BINARY names no feeder: torch would be compared with itself")
    warnings.simplefilter("ignore")
    return repetitions


def epoch_seconds(loader):
    """Wall seconds, and CPU-seconds of the tree."""
    began, used = time.perf_counter(), tree_cpu_seconds()
    for _ in loader:
        pass
    return time.perf_counter() - began, tree_cpu_seconds() - used


def loader_seconds_per_1000(loader_class, dataset, workers, batch_size):
    """CPU-seconds for 1,000 samples. Start and end of the workers are not counted."""
    return cpu_and_wall_seconds_per_1000(loader_class, dataset, workers, batch_size)[0]


def cpu_and_wall_seconds_per_1000(loader_class, dataset, workers, batch_size):
    """The same, and wall seconds of an epoch for 1,000 of its samples."""
    loader = loader_class(dataset, batch_size=batch_size, num_workers=workers, persistent_workers=workers > 0)
    assert type(loader) is not torch.utils.data.DataLoader or not native_audio.is_installed(), "torch's workers would inherit native audio"
    epoch_seconds(loader)  # Which starts the workers and warms their caches.
    wall_seconds, cpu_seconds = epoch_seconds(loader)
    return cpu_seconds * 1000 / len(dataset), wall_seconds * 1000 / len(dataset)
