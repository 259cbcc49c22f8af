"""Two feeders share `sluice cache`: what one has made, the other one reads; the batches are the same, also while the cache is killed and comes back."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually, free_address
from sluice.feeder import choice as feeder_module
from test_loader import equal
from test_prefix_cache import FILES, HITS, MISSES, batches_of, count_at, feeder_with_cache

SETTLED_SECONDS = 11  # A file that was written later is not kept yet.

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


class NodeCache:
    def __init__(self, directory):
        self.socket = str(directory / "cache.sock")
        self.address = free_address()
        arguments = ["--socket", self.socket, "--directory", directory / "store", "--bytes", 1 << 24, "--memory-bytes", 1 << 22, "--metrics-address", self.address]
        self._line = [sys.executable, "-m", "sluice", "cache", *map(str, arguments)]
        self.start()

    def start(self):
        self._process = subprocess.Popen(self._line, env={**os.environ, "SLUICE_FEEDER_BINARY": REAL_BINARY})

    def count(self, series):
        return count_at(self.address, series)

    def kill(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def node_cache(tmp_path):
    cache = NodeCache(tmp_path)
    yield cache
    cache.kill()


def test_two_feeders_share_it_and_no_batch_changes_while_it_is_killed_and_comes_back(real_feeder, image_root, tmp_path, monkeypatch, node_cache):
    expected = batches_of(image_root, "validation")
    feeder_module.disconnect_all()

    def same_batches():
        assert equal(batches_of(image_root, "validation"), expected)
        return True

    written = max(file.stat().st_ctime for file in image_root.glob("*/*"))
    eventually(lambda: time.time() > written + SETTLED_SECONDS)
    with feeder_with_cache(tmp_path / "first", None, monkeypatch, socket=node_cache.socket):
        eventually(lambda: same_batches() and node_cache.count('sluice_cache_node_records{tier="disk"}') >= FILES)
    with feeder_with_cache(tmp_path / "second", None, monkeypatch, socket=node_cache.socket) as feeder:
        same_batches()
        eventually(lambda: feeder.count(HITS) >= 2 * FILES)
        late = feeder.count('sluice_cache_errors_total{.*kind="late"')  # On a machine that has stalled.
        assert feeder.count(MISSES) == 0 or late > 0, "a file was read that the node's cache has"
        assert node_cache.count('sluice_cache_node_hits_total{tier="memory"}') > 0
        eventually(lambda: same_batches() and node_cache.count("sluice_cache_node_announced_epochs_total") > 0)
        node_cache.kill()
        eventually(lambda: same_batches() and feeder.count('sluice_cache_errors_total{.*kind="gone"') >= 1)
        assert feeder.count(MISSES) > 0
        hits = feeder.count(HITS)
        node_cache.start()
        eventually(lambda: same_batches() and feeder.count(HITS) > hits)
