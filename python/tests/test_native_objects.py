"""Shards in an object store by native executors: the batches of files and of Python executors, and what a cache keeps is not asked for again."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest
import torch
from torch.utils.data import Subset

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually
from object_server import FAULTS, store_of, urls_of
from shard_files import shards_of_images
from sluice.lowering.native_pipeline import lower
from sluice.shards import TarShards
from sluice.shipping.failures import NotNative
from sluice.stores.object_reader import ObjectError
from sluice.stores.sigv4 import Credentials, signed_headers
from sluice.torch import DataLoader
from test_loader import equal
from test_node_cache import NodeCache
from test_prefix_cache import feeder_with_cache
from test_shard_loading import EVALUATION, RECIPES

FILES = 23

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


@pytest.fixture(autouse=True)
def settings(store_settings, monkeypatch):
    monkeypatch.setenv("SLUICE_AHEAD", "off")  # Otherwise the next epoch's first batches are made before a test changes the store.


@pytest.fixture(scope="module")
def folder(image_root, tmp_path_factory):
    return shards_of_images(image_root, tmp_path_factory.mktemp("shards"))


def batches_of(dataset, executor="native", epochs=2, **arguments):
    loader = DataLoader(dataset, **{"batch_size": 5, "shuffle": True, "num_workers": 2, **arguments})
    assert loader.explain().startswith(f"executor: {executor}"), loader.explain()
    torch.manual_seed(17)
    return [[tensor.clone() for tensor in batch] for _ in range(epochs) for batch in loader]


def some_faults(number):
    """One answer of seven, each kind in turn."""
    return FAULTS[number // 7 % len(FAULTS)] if number % 7 == 3 else None


def test_the_batches_are_those_of_files_and_of_python_executors_whatever_the_store_does(real_feeder, folder, monkeypatch):
    recipe = RECIPES["training"]
    expected = batches_of(Subset(TarShards(folder, transform=recipe), range(22)))
    store = store_of(folder)
    with store.serving() as address:
        dataset = Subset(TarShards(urls_of(folder, address), transform=recipe), range(22))
        store.fault = some_faults
        assert equal(batches_of(dataset, epochs=6)[: len(expected)], expected)
        monkeypatch.setenv("SLUICE_LOWERING", "off")
        assert equal(batches_of(dataset, "python"), expected)
    assert all(store.faults[kind] for kind in FAULTS)


def test_files_and_objects_in_one_data_set(real_feeder, folder):
    store = store_of(folder)
    with store.serving() as address:
        shards = [str(path) for path in sorted(folder.glob("*.tar"))]
        shards[1] = urls_of(folder, address)[1]
        assert equal(batches_of(TarShards(shards, transform=EVALUATION)), batches_of(TarShards(folder, transform=EVALUATION)))


def test_an_object_that_changes_or_goes_is_the_error_that_python_has(real_feeder, folder):
    store = store_of(folder)
    with store.serving() as address:
        dataset = TarShards(urls_of(folder, address), transform=EVALUATION)
        store.objects["/bucket/train-001.tar"] = store.objects["/bucket/train-000.tar"]
        with pytest.raises(ObjectError, match=r"train-001\.tar.*has changed since its index was made"):
            batches_of(dataset)
        del store.objects["/bucket/train-001.tar"]
        with pytest.raises(ObjectError, match=r"train-001\.tar.*answers 404"):
            batches_of(dataset)
        loader = DataLoader(dataset, batch_size=5, num_workers=2, on_error="skip")
        assert sum(len(labels) for _, labels in loader) == FILES - 9
        assert [skipped.index for skipped in loader.skipped] == list(range(9, 18))


@pytest.mark.parametrize(("form", "trials"), [("source", 0), ("transcoded", 0), ("prefix", 0), ("auto", 24)])
def test_a_second_epoch_asks_the_store_for_nothing_nor_does_the_next_feeder(folder, tmp_path, monkeypatch, form, trials):
    """But for the trials by which a process chooses a form: they read the source."""
    store = store_of(folder)
    with store.serving() as address:
        dataset = TarShards(urls_of(folder, address), transform=EVALUATION)
        for life in ("first", "second"):
            with feeder_with_cache(tmp_path / life, tmp_path / "kept", monkeypatch, form=form):
                if life == "first":
                    expected = batches_of(TarShards(folder, transform=EVALUATION))
                    batches_of(dataset)
                asked = len(store.requests)
                assert equal(batches_of(dataset), expected)
                assert len(store.requests) <= asked + trials


def test_feeders_share_the_nodes_cache_of_objects(folder, tmp_path, monkeypatch):
    store, cache = store_of(folder), NodeCache(tmp_path)
    try:
        with store.serving() as address:
            dataset = TarShards(urls_of(folder, address), transform=EVALUATION)
            for life in ("first", "second"):
                with feeder_with_cache(tmp_path / life, None, monkeypatch, form="source", socket=cache.socket):
                    eventually(lambda: batches_of(dataset) and cache.count('sluice_cache_node_records{tier="disk"}') >= FILES)
                    asked = len(store.requests)
                    batches_of(dataset)
                    assert len(store.requests) == asked
    finally:
        cache.kill()


def test_requests_of_executors_are_signed_as_pythons_are_and_secrets_stay_in_them(folder, tmp_path, monkeypatch):
    (tmp_path / "credentials").write_text("[mine]\naws_access_key_id = THEKEY\naws_secret_access_key = very-secret\naws_session_token = the-token\n")
    store = store_of(folder)
    with store.serving() as address, feeder_with_cache(tmp_path / "feeder", "", monkeypatch, cache_bytes="") as feeder:
        for name, value in {"AWS_ENDPOINT_URL": address, "AWS_REGION": "eu-test-1", "AWS_PROFILE": "mine"}.items():
            monkeypatch.setenv(name, value)
        dataset = TarShards(f"s3://bucket/train-{{000..{len(store.objects) - 1:03d}}}.tar", transform=EVALUATION)
        indexed = len(store.requests)
        expected = batches_of(TarShards(folder, transform=EVALUATION))
        assert equal(batches_of(dataset), expected)
        for path, headers in store.requests[indexed:]:
            given = {name: value for name, value in headers.items() if name.lower() in ("host", "accept-encoding", "range", "if-match")}
            when = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
            assert headers["Authorization"] == signed_headers("GET", path, [], given, Credentials("THEKEY", "very-secret", "the-token"), "eu-test-1", when)["Authorization"]
        presigned = TarShards([f"{url}?X-Amz-Signature=very-secret" for url in urls_of(folder, address)], transform=EVALUATION)
        assert equal(batches_of(presigned), expected)
        store.objects.clear()
        with pytest.raises(ObjectError) as failed:
            batches_of(presigned)
        feeder.log.seek(0)
        told = feeder.log.read().decode() + str(failed.value)
    native = lower(presigned, DataLoader(presigned).collate_fn, True)
    assert "very-secret" not in told + repr(native) and "the-token" not in told and re.search(r"train-\d+\.tar", told)


def test_objects_with_other_obstacles_stay_python(folder):
    store = store_of(folder)
    with store.serving() as address:
        dataset = TarShards(urls_of(folder, address), transform=EVALUATION, target_transform=abs)
        with pytest.raises(NotNative, match="target_transform abs has no native form"):
            lower(dataset, DataLoader(dataset).collate_fn, True)


def test_a_data_worker_asks_the_store_itself(folder, data_worker):
    store = store_of(folder, fault=some_faults)
    with store.serving() as address:
        expected = batches_of(TarShards(folder, transform=RECIPES["training"]), epochs=1)
        loader = DataLoader(TarShards(urls_of(folder, address), transform=RECIPES["training"]), batch_size=5, shuffle=True, num_workers=2)

        def made_by_the_worker() -> bool:
            torch.manual_seed(17)
            assert equal([[tensor.clone() for tensor in batch] for batch in loader], expected)
            return "by data workers" in str(loader.explain())

        eventually(made_by_the_worker, 60)
