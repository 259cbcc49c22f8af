"""Without SLUICE_CACHE_FORM the feeder's cache chooses the form: the same batches before, while and after, by each loader's own choice."""

from __future__ import annotations

import pytest
import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually
from sluice.feeder import choice as feeder_module
from sluice.torch import DataLoader
from test_loader import equal
from test_prefix_cache import RECIPES, feeder_with_cache

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)

STEPS = {**RECIPES, "training": [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]}


def loader_of(root, recipe):
    loader = DataLoader(ImageFolder(root, transforms.Compose(STEPS[recipe])), batch_size=5, shuffle=True, num_workers=2)
    assert loader.explain().startswith("executor: native")
    return loader


def epochs_of(loader):
    torch.manual_seed(17)
    return [batch for _ in range(2) for batch in loader]


def test_batches_are_the_same_while_loaders_choose(real_feeder, image_root, tmp_path, monkeypatch):
    expected = {recipe: epochs_of(loader_of(image_root, recipe)) for recipe in STEPS}
    feeder_module.disconnect_all()
    with feeder_with_cache(tmp_path / "feeder", tmp_path / "cache", monkeypatch, form="") as feeder:
        loaders = {recipe: loader_of(image_root, recipe) for recipe in STEPS}

        def have_chosen():
            for recipe, loader in loaders.items():
                assert equal(epochs_of(loader), expected[recipe])
            chosen = feeder.count('sluice_cache_pipelines{.*form="(source|transcoded|prefix|none)"')
            return chosen == len(STEPS) and feeder.count('sluice_cache_pipelines{.*form="undecided"') == 0

        eventually(have_chosen, 60)
        assert have_chosen()
        assert feeder.count("sluice_cache_trials_total{") >= 24 * len(STEPS)
        assert "cached, in the form that is measured to pay" in loaders["training"].explain()
