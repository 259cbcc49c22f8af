"""What a loader costs: CPU time of the whole process tree in the middle of a training."""

import time

import torch
from process_trees import tree_cpu_seconds

from sluice import native_audio


def loader_seconds_per_1000(loader_class, dataset, workers, batch_size):
    """CPU-seconds for 1,000 samples. Start and end of the workers are not counted."""
    return cpu_and_wall_seconds_per_1000(loader_class, dataset, workers, batch_size)[0]


def cpu_and_wall_seconds_per_1000(loader_class, dataset, workers, batch_size):
    """The same, and wall seconds of an epoch for 1,000 of its samples."""
    loader = loader_class(dataset, batch_size=batch_size, num_workers=workers, persistent_workers=workers > 0)
    assert type(loader) is not torch.utils.data.DataLoader or not native_audio.is_installed(), "torch's workers would inherit native audio"
    for _ in loader:  # An epoch starts the workers and warms their caches.
        pass
    began, before = time.perf_counter(), tree_cpu_seconds()
    for _ in loader:
        pass
    cpu_seconds, wall_seconds = tree_cpu_seconds() - before, time.perf_counter() - began
    return cpu_seconds * 1000 / len(dataset), wall_seconds * 1000 / len(dataset)
