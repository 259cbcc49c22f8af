"""Shards in an object store: the same samples as from files, whatever the store and the network do, or an error that names the object."""

from __future__ import annotations

import logging
import pickle
import random
import stat
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset

from object_server import FAULTS, Store, store_of, urls_of
from shard_files import shards_of_images, write_shard
from sluice.shards import KEY, ShardError, TarShards
from sluice.stores import object_reader
from sluice.stores.object_reader import MOST_ATTEMPTS, ObjectChanged, ObjectError, ObjectState, Pace, Range, joined
from sluice.stores.object_urls import lasting, shown, target_of
from sluice.torch import DataLoader
from test_loader import equal
from test_shard_loading import RECIPES

SHARDS = 3

pytestmark = pytest.mark.usefixtures("store_settings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, bytes_of = tmp_path_factory.mktemp("shards"), random.Random(7).randbytes
    for shard in range(SHARDS):
        members = [(f"{shard}-{number:02d}.{extension}", data) for number in range(20)
                   for extension, data in (("bin", bytes_of(3000 + number)), ("cls", str(number).encode()))]  # fmt: skip
        write_shard(folder / f"train-{shard:03d}.tar", members)
    return folder


def url_of(shards: str) -> str:
    return f"{shards}/bucket/train-{{000..{SHARDS - 1:03d}}}.tar"


def some_faults(number: int) -> str | None:
    """One answer of ten, each kind in turn, never the same request ten times."""
    return FAULTS[number // 10 % len(FAULTS)] if number % 10 == 3 else None


@pytest.mark.parametrize("fault", [lambda number: None, some_faults], ids=["a sound store", "a store that errs"])
def test_samples_of_objects_are_those_of_files(folder, fault):
    store = store_of(folder, fault=fault)
    with store.serving() as address:
        objects, files = TarShards(url_of(address), fields=(KEY, "bin", "cls")), TarShards(folder, fields=(KEY, "bin", "cls"))
        assert len(objects) == len(files) == 60
        assert [objects[index] for index in range(-60, 60)] == [files[index] for index in range(-60, 60)]
    assert fault is not some_faults or all(store.faults[kind] for kind in FAULTS)


def test_many_requests_are_in_flight_when_a_batch_is_read_ahead(folder):
    store = store_of(folder, latency_seconds=0.02)
    with store.serving() as address:
        dataset = TarShards(url_of(address), fields=("bin", "cls"))
        store.most_in_flight = 0
        dataset.read_ahead([0, 25, 59, -1, 1, "no sample", 60, 10**30])
        assert [dataset[index] for index in (0, 25, 59, 1)] == [TarShards(folder, fields=("bin", "cls"))[index] for index in (0, 25, 59, 1)]
        asked = len(store.requests)
        dataset[0]
    assert store.most_in_flight == SHARDS, "samples 0 and 1 are neighbours and so one request"
    assert len(store.requests) == asked + 1, "what was read ahead is handed out once"


def test_neighbours_are_joined_up_to_a_bound():
    state, other = ObjectState(2**40, '"a"'), ObjectState(2**40, '"b"')
    near = [Range("s3://b/k", state, offset, 10) for offset in (200_000, 0, 100)]
    far = Range("s3://b/k", state, 10_000_000, 8 << 20)
    behind = Range("s3://b/k", state, far.offset + far.nbytes, 1)
    changed = Range("s3://b/k", other, 110, 10)
    pieces = {(piece.offset, piece.nbytes, piece.state.etag): parts for piece, parts in joined([*near, far, behind, changed, near[1]])}
    assert set(pieces) == {(0, 110, '"a"'), (200_000, 10, '"a"'), (10_000_000, 8 << 20, '"a"'), (behind.offset, 1, '"a"'), (110, 10, '"b"')}
    assert pieces[0, 110, '"a"'] == [near[1], near[2]]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_an_error_with_object_range_and_reason(folder, fault):
    store = store_of(folder)
    with store.serving() as address:
        dataset = TarShards(url_of(address), fields=("bin",))
        before, drawn = len(store.requests), random.getstate()
        store.fault = lambda number: fault
        with pytest.raises(ObjectError, match=r"train-000\.tar, bytes 512 to 3512: not read in 10 attempts: .* \(10 times\)"):
            dataset[0]
    assert len(store.requests) == before + MOST_ATTEMPTS
    assert random.getstate() == drawn, "a user's transform draws from it"


@pytest.mark.parametrize("same_size", [True, False])
def test_an_object_that_changes_is_an_error_that_names_it(folder, same_size):
    store = store_of(folder)
    with store.serving() as address:
        dataset = TarShards(url_of(address), fields=("bin",))
        store.objects["/bucket/train-001.tar"] = bytes(len(store.objects["/bucket/train-001.tar"]) if same_size else 99_999)
        assert dataset[0] and dataset[59]
        with pytest.raises(ObjectChanged, match=r"train-001\.tar.*has changed since its index was made"):
            dataset[25]


def test_a_store_that_ignores_the_condition_is_caught_by_its_own_answer(folder):
    store = store_of(folder)
    with store.serving() as address:
        state = object_reader.reader().state(f"{address}/bucket/train-000.tar")
        weak = ObjectState(state.nbytes, "W/" + state.etag)  # Sent as no condition.
        with pytest.raises(ObjectChanged):
            object_reader.reader().read(Range(f"{address}/bucket/train-000.tar", weak, 0, 10))


def test_an_object_that_is_missing_or_no_shard(folder):
    store = store_of(folder)
    store.objects["/bucket/gzip.tar"] = b"\x1f\x8b" + bytes(600)
    store.objects["/bucket/cut.tar"] = store.objects["/bucket/train-000.tar"][:2000]
    with store.serving() as address:
        for name, error, words in [("none", ObjectError, "404"), ("gzip", ShardError, "is compressed with gzip"), ("cut", ShardError, "is truncated, or lies")]:
            with pytest.raises(error, match=rf"/bucket/{name}\.tar.*{words}"):
                TarShards(f"{address}/bucket/{name}.tar", fields=("bin",))


def test_an_index_is_kept_for_the_state_of_the_object(folder, tmp_path):
    store = store_of(folder)
    with store.serving() as address:
        TarShards(url_of(address), fields=("bin",))
        first = len(store.requests)
        TarShards(url_of(address) + "?X-Amz-Signature=other", fields=("bin",))
        assert len(store.requests) == first + SHARDS, "one question each: whether it has changed"
        kept = list((tmp_path / "cache/sluice/shards").iterdir())
        assert len(kept) == SHARDS and all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in kept)
        store.objects["/bucket/train-000.tar"] = store.objects["/bucket/train-001.tar"]
        assert TarShards(url_of(address), fields=(KEY,))[0] == ("1-00",)


def test_requests_for_buckets_are_signed_and_secrets_stay_in_them(folder, monkeypatch, caplog, tmp_path):
    (tmp_path / "credentials").write_text("[default]\naws_access_key_id = THEKEY\naws_secret_access_key = very-secret\naws_session_token = the-token\n")
    caplog.set_level(logging.DEBUG)
    store = store_of(folder)
    with store.serving() as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setenv("AWS_REGION", "eu-test-1")
        dataset = TarShards("s3://bucket/train-000.tar", fields=("bin",))
        headers = store.requests[-1][1]
        assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=THEKEY/") and "/eu-test-1/s3/" in headers["Authorization"]
        store.fault = lambda number: "503"
        with pytest.raises(ObjectError) as failed:
            dataset[0]
        presigned = f"{address}/bucket/none.tar?X-Amz-Signature=very-secret"
        with pytest.raises(ObjectError) as missing:
            TarShards(presigned)
    told = f"{failed.value} {missing.value} {caplog.text} {pickle.dumps(dataset)!r}"
    assert "very-secret" not in told and "the-token" not in told and "/none.tar" in told


@pytest.mark.parametrize(("url", "environment", "expected"), [
    ("s3://b/a=1/k.tar", {}, ("https", "b.s3.us-east-1.amazonaws.com", "/a%3D1/k.tar")),
    ("s3://b.c/k", {"AWS_DEFAULT_REGION": "eu-west-1"}, ("https", "s3.eu-west-1.amazonaws.com", "/b.c/k")),
    ("s3://b/k?x#y", {"AWS_ENDPOINT_URL": "http://h:9000/sub/"}, ("http", "h:9000", "/sub/b/k%3Fx%23y")),
    ("https://h/p%20q?a=b", {"AWS_ENDPOINT_URL": "http://other"}, ("https", "h", "/p%20q?a=b")),
], ids=["by the name of the bucket", "a bucket with dots", "another endpoint", "a plain URL"])  # fmt: skip
def test_where_an_object_is_asked_for(monkeypatch, url, environment, expected):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    target = target_of(url)
    assert (target.scheme, target.host, target.path) == expected


@pytest.mark.parametrize("url", ["s3://bucket", "https://host/", "http://me:secret@host/path", "https://host/a b"])
def test_what_names_no_object_is_refused(url):
    with pytest.raises(ValueError) as refused:
        TarShards(url)
    assert "secret" not in str(refused.value)


def test_what_people_and_caches_see_of_a_presigned_url():
    url = "https://host/k.tar?versionId=3&X-Amz-Signature=abc&Expires=12"
    assert shown(url) == "https://host/k.tar" and lasting(url) == "https://host/k.tar?versionId=3"


def test_the_pace_falls_once_a_second_and_grows_with_each_round():
    now = [10.0]
    pace = Pace(clock=lambda: now[0])
    first = pace.limit
    for _ in range(5):
        pace.enter(1)
        pace.leave(1, throttled=True)
    assert pace.limit == first * 0.75
    now[0] += 1
    for _ in range(13):
        pace.enter(1)
        pace.leave(1, throttled=False)
    assert first * 0.75 + 0.9 < pace.limit < first * 0.75 + 1.1


def test_no_more_requests_are_in_flight_than_the_bound():
    store = Store({"/o": bytes(1000)}, latency_seconds=0.005)
    with store.serving() as address:
        reader = object_reader.reader()
        state = reader.state(f"{address}/o")
        with ThreadPoolExecutor(64) as threads:
            list(threads.map(lambda number: reader.read(Range(f"{address}/o", state, number, 1)), range(300)))
    assert store.most_in_flight <= object_reader.MOST_IN_FLIGHT


@pytest.mark.parametrize("randomness", ["sluice", "torch"])
def test_batches_of_objects_are_those_of_files(any_feeder, image_root, tmp_path, monkeypatch, randomness):
    monkeypatch.setenv("SLUICE_LOWERING", "on")
    if randomness == "torch":
        monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    folder = shards_of_images(image_root, tmp_path / "shards")
    store = store_of(folder, fault=lambda number: "503" if number % 20 == 7 else None)
    with store.serving() as address:
        found = []
        for shards in (folder, urls_of(folder, address)):
            dataset = Subset(TarShards(shards, transform=RECIPES["training"]), range(20))
            loader = DataLoader(dataset, batch_size=5, shuffle=True, num_workers=2)
            torch.manual_seed(17)
            found.append([[tensor.clone() for tensor in batch] for _ in range(2) for batch in loader])
        assert loader.explain().startswith("executor: native" if randomness == "sluice" else "executor: python")
        theirs = list(TorchLoader(dataset.dataset, batch_size=5, num_workers=2))
    assert len(found[0]) == 8 and equal(*found)
    assert numpy.concatenate([labels for _, labels in theirs]).tolist() == [dataset.dataset.columns[1].number_of(index) for index in range(len(dataset.dataset))]
    assert store.faults["503"]
