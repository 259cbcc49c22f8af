"""A data worker makes samples of several images, and the feeder puts their tensors together."""

from __future__ import annotations

import torch

from conftest import eventually
from test_own_files import alike, loader_of
from test_own_files import paths as paths  # noqa: PLC0414
from view_classes import MultiCrop, Views


def test_a_data_worker_makes_several_images_of_each_file(data_worker, paths, monkeypatch):
    dataset = Views(paths)
    dataset.transform = MultiCrop()

    def epoch_of(loader):
        torch.manual_seed(17)
        loader._next_epoch = 0
        return list(loader)

    monkeypatch.setenv("SLUICE_LOWERING", "off")
    expected = epoch_of(loader_of(dataset))
    monkeypatch.setenv("SLUICE_LOWERING", "on")
    loader = loader_of(dataset)

    def made_by_the_worker() -> bool:
        assert alike(epoch_of(loader), expected)
        return "by data workers" in str(loader.explain())

    eventually(made_by_the_worker, 180)  # A worker that loses its first race is tried again half a minute later.
