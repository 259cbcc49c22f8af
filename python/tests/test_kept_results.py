"""Results of marked functions in the real feeder's cache: the same batches with a cache that is off, cold, warm, full, damaged, refused or killed, and what is not found."""

from __future__ import annotations

import os
import shutil
import time

import numpy
import pytest
import torch
from torch.utils.data import Dataset

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, RealWorker, eventually
from sluice import cached
from sluice.feeder import choice as feeder_module
from sluice.torch import DataLoader
from stateful_datasets import set_random_states
from test_loader import equal
from test_node_cache import SETTLED_SECONDS, NodeCache
from test_prefix_cache import CachingFeeder, damage, feeder_with_cache

FILES = 24
HITS, RECORDS = 'sluice_cache_hits_total{.*form="result"', "sluice_cache_files{"

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


@cached(version="1")
def features(path):
    """As long as a small spectrum takes."""
    time.sleep(0.004)
    wave = numpy.fromfile(path, numpy.float32)
    return {"spectrum": torch.from_numpy(numpy.abs(numpy.fft.rfft(wave))).view(3, 67).T, "top": (float(wave.max()), wave[::2])}


@cached(version="1")
def jittered(path):
    time.sleep(0.004)
    return features(path)["spectrum"] + torch.rand(1)


class Clips(Dataset):
    """Beside what is the same in each epoch, a number that is drawn."""

    def __init__(self, folder, function=features) -> None:
        self.files = sorted(str(file) for file in folder.iterdir())
        self.function = function

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int):
        made = self.function(self.files[index])
        return made, index, torch.rand(1)


class Stateful(Clips):
    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.transform = self
        self.generator = numpy.random.RandomState(1)

    def set_random_state(self, seed: int) -> None:
        self.generator = numpy.random.RandomState(seed)

    def __getitem__(self, index: int):
        return super().__getitem__(index), self.generator.uniform()


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    """Files that have been there for long enough."""
    folder = tmp_path_factory.mktemp("clips")
    generator = numpy.random.default_rng(3)
    for number in range(FILES):
        generator.standard_normal(400).astype(numpy.float32).tofile(folder / f"{number:02}.f32")
    time.sleep(SETTLED_SECONDS)
    return folder


@pytest.fixture(scope="module")
def shared_caching_feeder(tmp_path_factory):
    """For tests whose functions or files no other one has. Its executor imports torch, which takes seconds of CPU."""
    folder = tmp_path_factory.mktemp("shared")
    with pytest.MonkeyPatch.context() as its_settings:
        feeder = CachingFeeder(folder / "feeder", folder / "cache", its_settings)
    yield feeder
    feeder.stop()


@pytest.fixture
def caching_feeder(shared_caching_feeder, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", shared_caching_feeder.path)


def batches_of(dataset, epochs=2, **options):
    loader = DataLoader(dataset, batch_size=5, shuffle=True, num_workers=2, **options)
    torch.manual_seed(17)
    return [batch for _ in range(epochs) for batch in loader]


def test_batches_are_the_same_whatever_the_cache_has(real_feeder, clips, tmp_path, monkeypatch):
    expected = batches_of(Clips(clips))
    feeder_module.disconnect_all()
    folder = tmp_path / "cache"

    def same_batches_until(feeder, series, least):
        def reached():
            assert equal(batches_of(Clips(clips)), expected)
            return feeder.count(series) >= least

        eventually(reached, 60)

    with feeder_with_cache(tmp_path / "cold", folder, monkeypatch) as feeder:
        same_batches_until(feeder, RECORDS, FILES)
        same_batches_until(feeder, HITS, 3 * FILES)
    with feeder_with_cache(tmp_path / "warm", folder, monkeypatch) as feeder:
        same_batches_until(feeder, HITS, FILES)
    damage(folder, 900)
    with feeder_with_cache(tmp_path / "damaged", folder, monkeypatch) as feeder:
        same_batches_until(feeder, 'sluice_cache_errors_total{.*kind="damaged"', 1)
    with feeder_with_cache(tmp_path / "full", tmp_path / "small", monkeypatch, cache_bytes=20_000) as feeder:
        same_batches_until(feeder, 'sluice_cache_not_stored_total{.*reason="full"', 1)
    with feeder_with_cache(tmp_path / "refused", "/proc/no_folder", monkeypatch):
        assert equal(batches_of(Clips(clips)), expected)


def test_two_feeders_share_results_and_no_batch_changes_while_the_daemon_is_killed(real_feeder, clips, tmp_path, monkeypatch):
    expected = batches_of(Clips(clips))
    feeder_module.disconnect_all()
    daemon = NodeCache(tmp_path)

    def same_batches():
        assert equal(batches_of(Clips(clips)), expected)
        return True

    try:
        with feeder_with_cache(tmp_path / "first", None, monkeypatch, socket=daemon.socket):
            eventually(lambda: same_batches() and daemon.count('sluice_cache_node_records{tier="disk"}') >= FILES, 240)
        with feeder_with_cache(tmp_path / "second", None, monkeypatch, socket=daemon.socket) as feeder:
            eventually(lambda: same_batches() and feeder.count(HITS) >= FILES, 240)
            daemon.kill()
            eventually(lambda: same_batches() and feeder.count('sluice_cache_errors_total{.*kind="gone"') >= 1, 240)
    finally:
        daemon.kill()


def kept_of(loader, name) -> tuple[int, int]:
    """Calls and hits, as `explain` says them."""
    for line in loader.explain().splitlines():
        if "kept results of" in line and name in line:
            hits, _, calls = line.partition(": ")[2].split()[:3]
            return int(calls), int(hits)
    return 0, 0


def epochs_until_found(loader, name, least):
    def found():
        list(loader)
        return kept_of(loader, name)[1] >= least

    eventually(found, 60)


def test_two_loaders_share_a_function_and_explain_says_what_it_has_saved(clips, caching_feeder):
    first, second = (DataLoader(Clips(clips), batch_size=4, num_workers=1) for _ in range(2))
    epochs_until_found(first, "features", FILES)
    epochs_until_found(second, "features", 1)
    calls, hits = kept_of(second, "features")
    assert hits <= calls and "s of them saved" in second.explain() and " MB read" in second.explain()


SOURCE = "import time\nfrom sluice import cached\n@cached(version={version!r})\ndef edited(path):\n    time.sleep(0.004)\n    return {value}\n"


def edited(value, version="1"):
    space = {"__name__": "edited_functions"}
    exec(SOURCE.format(value=value, version=version), space)
    return space["edited"]


@pytest.mark.parametrize(("value", "version"), [(2, "1"), (1, "2")])
def test_an_edited_function_and_another_version_find_nothing_of_before(clips, caching_feeder, value, version):
    epochs_until_found(DataLoader(Clips(clips, edited(1)), batch_size=4, num_workers=1), "edited", FILES)
    loader = DataLoader(Clips(clips, edited(value, version)), batch_size=4, num_workers=1)
    assert all(made.eq(value).all() for made, _, _ in loader)
    assert kept_of(loader, "edited") == (FILES, 0)


def test_a_file_that_changes_is_a_miss(clips, caching_feeder, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(clips, own, copy_function=os.link)
    time.sleep(SETTLED_SECONDS)  # A new link is a change of the inode.
    loader = DataLoader(Clips(own), batch_size=4, num_workers=1)
    epochs_until_found(loader, "features", FILES)
    changed = own / "05.f32"
    changed.unlink()
    numpy.zeros(400, numpy.float32).tofile(changed)
    for _ in range(2):
        made = {index: values for batch, indices, _ in loader for index, values in zip(indices.tolist(), batch["spectrum"], strict=True)}
        assert made[5].abs().sum() == 0 and made[4].abs().sum() > 0


def test_what_draws_is_made_each_time(real_feeder, clips, tmp_path, monkeypatch):
    expected = batches_of(Clips(clips, jittered))
    feeder_module.disconnect_all()
    with feeder_with_cache(tmp_path / "feeder", tmp_path / "cache", monkeypatch) as feeder:
        eventually(lambda: equal(batches_of(Clips(clips, jittered)), expected) and feeder.count(HITS) > 0, 60)
        loader = DataLoader(Clips(clips, jittered), batch_size=4, num_workers=1)
        list(loader)
        assert kept_of(loader, "jittered")[1] == 0 and kept_of(loader, "features")[0] > 0
        assert not torch.equal(next(iter(loader))[0], next(iter(loader))[0])


def test_virtual_workers_find_results_and_keep_their_state(real_feeder, clips, tmp_path, monkeypatch):
    expected = batches_of(Stateful(clips), worker_init_fn=set_random_states)
    feeder_module.disconnect_all()
    with feeder_with_cache(tmp_path / "feeder", tmp_path / "cache", monkeypatch) as feeder:

        def found() -> bool:
            assert equal(batches_of(Stateful(clips), worker_init_fn=set_random_states), expected)
            return feeder.count(HITS) >= FILES

        eventually(found, 60)


def test_data_workers_use_the_cache_of_their_own_node(clips, tmp_path, monkeypatch):
    """The feeder has none, so whatever is found was found by the worker."""
    daemon = NodeCache(tmp_path)
    with monkeypatch.context() as of_worker:
        of_worker.setenv("SLUICE_CACHE_SOCKET", daemon.socket)
        worker = RealWorker()
    feeder = RealFeeder(tmp_path, threads=1, workers=worker.address)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    try:
        loader = DataLoader(Clips(clips), batch_size=2, num_workers=2)
        expected = list(loader)[0][0]

        def found() -> bool:
            assert equal(list(loader)[0][0], expected)
            return kept_of(loader, "features")[1] > FILES

        eventually(found, 120)
        eventually(lambda: daemon.count('sluice_cache_node_records{tier="disk"}') > 0, 60)  # It counts every second.
    finally:
        feeder_module.disconnect_all()
        feeder.stop()
        worker.stop()
        daemon.kill()


@pytest.mark.parametrize("has_cache", [False, True])
def test_a_loader_does_not_step_aside_where_its_results_may_be_kept(clips, tmp_path, monkeypatch, has_cache):
    """A feeder of this process adds no CPU to forks of it, so without a cache there is no executor."""
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", REAL_BINARY)
    monkeypatch.delenv("SLUICE_STEP_ASIDE")
    if has_cache:
        monkeypatch.setenv("SLUICE_CACHE_DIR", str(tmp_path / "cache"))
        monkeypatch.setenv("SLUICE_CACHE_BYTES", str(1 << 24))
    loader = DataLoader(Clips(clips), batch_size=4, num_workers=1)
    list(loader)
    assert ("executors of its own feeder would add no CPU" in loader.explain()) != has_cache
    assert (kept_of(loader, "features")[0] == FILES) == has_cache
