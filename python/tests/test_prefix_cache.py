"""SLUICE_CACHE_FORM=prefix: the same batches with a cache that is empty, filled, damaged or full, and no file is read once it is filled."""

from __future__ import annotations

import contextlib
import re
import urllib.request

import pytest
import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually, free_address
from sluice.feeder import choice as feeder_module
from sluice.torch import DataLoader
from test_loader import equal

FILES = 23
TENSOR = [transforms.ToTensor(), transforms.Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25])]
RECIPES = {
    "validation": [transforms.Resize(40), transforms.CenterCrop(32), *TENSOR],
    "random crops": [transforms.Resize(40), transforms.RandomCrop(32), transforms.RandomHorizontalFlip(), *TENSOR, transforms.RandomErasing()],
}
HITS, MISSES = 'sluice_cache_hits_total{.*form="prefix"', "sluice_cache_misses_total{"

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


def batches_of(root, recipe):
    loader = DataLoader(ImageFolder(root, transforms.Compose(RECIPES[recipe])), batch_size=5, shuffle=True, num_workers=2)
    assert loader.explain().startswith("executor: native")
    torch.manual_seed(17)
    return [batch for _ in range(2) for batch in loader]


def count_at(address, series):
    """The sum of a metric's series now: what they match, or 0 while none is served. The metrics are a second old at most."""
    with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        return sum(float(line.split()[-1]) for line in page.read().decode().splitlines() if re.match(series, line))
    return 0


class CachingFeeder(RealFeeder):
    """A feeder with a cache in `folder`, or with the node's cache at `socket`."""

    def __init__(self, directory, folder, monkeypatch, cache_bytes=1 << 24, form="prefix", socket=""):
        directory.mkdir()
        own = {"DIR": "", "BYTES": ""} if socket else {"DIR": folder, "BYTES": cache_bytes}
        for name, value in {**own, "SOCKET": socket, "FORM": form}.items():
            monkeypatch.setenv(f"SLUICE_CACHE_{name}", str(value))
        self.metrics_address = free_address()
        super().__init__(directory, metrics=self.metrics_address)
        monkeypatch.setenv("SLUICE_FEEDER_SOCKET", self.path)

    def count(self, series):
        return count_at(self.metrics_address, series)


def damage(folder, interval_bytes):
    """A bit of each of so many bytes of the cache's disk changes."""
    for segment in folder.glob("*.segment"):
        content = bytearray(segment.read_bytes())
        for at in range(interval_bytes // 3, len(content), interval_bytes):
            content[at] ^= 4
        segment.write_bytes(content)


@contextlib.contextmanager
def feeder_with_cache(*arguments, **options):
    feeder = CachingFeeder(*arguments, **options)
    try:
        yield feeder
    finally:
        feeder_module.disconnect_all()
        feeder.stop()


@pytest.mark.parametrize("recipe", RECIPES)
def test_batches_are_the_same_whatever_the_cache_has(real_feeder, image_root, tmp_path, monkeypatch, recipe):
    expected = batches_of(image_root, recipe)
    feeder_module.disconnect_all()
    folder = tmp_path / "cache"

    def same_batches():
        assert equal(batches_of(image_root, recipe), expected)
        return True

    def same_batches_until(feeder, series, least):
        """A feeder opens its cache beside its first batches, and files count as settled ten seconds after they were written."""
        eventually(lambda: same_batches() and feeder.count(series) >= least)

    with feeder_with_cache(tmp_path / "first", folder, monkeypatch) as feeder:
        same_batches_until(feeder, "sluice_cache_files{", FILES)
        hits, misses = feeder.count(HITS), feeder.count(MISSES)
        same_batches()
        eventually(lambda: feeder.count(HITS) >= hits + 2 * FILES)
        assert feeder.count(MISSES) == misses, "a file was read that the cache has"
    damage(folder, 9000)
    with feeder_with_cache(tmp_path / "second", folder, monkeypatch) as feeder:
        same_batches_until(feeder, 'sluice_cache_errors_total{.*kind="damaged"', 1)
    with feeder_with_cache(tmp_path / "third", tmp_path / "small", monkeypatch, cache_bytes=20_000) as feeder:
        same_batches_until(feeder, 'sluice_cache_not_stored_total{.*reason="full"', 1)
