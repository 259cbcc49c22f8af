"""The small parts: seeds, frames, structures, accounts, settings, notices."""

from __future__ import annotations

import os
import random

import numpy
import pytest
import torch

from sample_datasets import Point
from sluice.base.notices import say_once
from sluice.base.settings import SettingError, Settings
from sluice.executor.computation import PythonPipeline
from sluice.executor.seeds import collate_seed, sample_seed, seed_everything
from sluice.loader.pipeline import Pipeline
from sluice.makers.accounting import Account, Totals
from sluice.shipping.framing import MOST_JSON_BYTES, MOST_KEYS, FrameParser, ProtocolError, encode
from sluice.shipping.structure import layout, pack, unpack
from sluice.shipping.surroundings import module_path


def test_the_first_seed_is_splitmix64s_first_output():
    """Published output of SplitMix64 seeded with 0: 0xE220A8397B1DCDAF, then 0x6E789E6AA1B965F4."""
    assert sample_seed(0, 0, 0) == 0x7B1DCDAF
    assert sample_seed(0, 0, 1) == 0xA1B965F4


def test_seeds_of_neighbours_differ_and_fit_into_32_bits():
    seeds = {sample_seed(base, epoch, position) for base in (0, 2**63 - 1) for epoch in (0, 1) for position in range(1000)}
    assert len(seeds) == 4000 and all(0 <= seed < 2**32 for seed in seeds)
    assert collate_seed(1, 2, 3) == sample_seed(1, 2, 2**39 + 3)


def test_seeding_reaches_every_generator():
    draws = []
    for _ in range(2):
        seed_everything(2**40 + 5)
        draws.append((torch.rand(2).tolist(), random.random(), numpy.random.rand()))
    assert draws[0] == draws[1]


FRAMES = [({"type": "a", "n": 1}, b""), ({"type": "b", "text": "é"}, b"blob"), ({"type": "c"}, bytes(100_000))]


@pytest.mark.parametrize("piece_bytes", [1, 7, 1000, 1 << 20])
def test_frames_come_out_however_they_are_cut(piece_bytes):
    wire = b"".join(encode(*frame) for frame in FRAMES)
    parser, out = FrameParser(), []
    for start in range(0, len(wire), piece_bytes):
        out += parser.feed(wire[start : start + piece_bytes])
    assert out == FRAMES


MALFORMED = {
    "json too long": b"\xff\xff\xff\x7f\0\0\0\0",
    "blob too long": b"\2\0\0\0\1\0\0\x40{}",
    "no json": b"\3\0\0\0\0\0\0\0{,}",
    "not an object": b"\2\0\0\0\0\0\0\0[]",
    "no type": b"\2\0\0\0\0\0\0\0{}",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_frames_are_refused(case):
    with pytest.raises(ProtocolError):
        list(FrameParser().feed(MALFORMED[case]))


def test_frames_over_the_bounds_are_not_sent():
    with pytest.raises(ProtocolError):
        encode({"type": "x", "text": "a" * (17 << 20)})


def test_structures_keep_what_the_arena_cannot_carry():
    shared = torch.arange(3)
    batch = {
        "same": [shared, shared],
        "view": torch.arange(12).view(3, 4).t(),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "complex": torch.ones(2, dtype=torch.complex64),
        "sparse": torch.eye(2).to_sparse(),
        "point": Point(1, torch.tensor(2.5, dtype=torch.float64)),
        "empty": torch.empty(0, 3),
    }
    tensors, structure = pack(batch)
    assert all(type(tensor) is torch.Tensor for tensor in tensors)
    again = unpack(structure, tensors)
    assert again["same"][0] is again["same"][1]
    assert type(again["parameter"]) is torch.nn.Parameter and torch.equal(again["sparse"].to_dense(), torch.eye(2))
    assert type(again["point"]) is Point and again["complex"].dtype is torch.complex64


SHARED = torch.arange(3)
LISTS = {
    "different tensors": ([torch.ones(2), SHARED], True),
    "nothing": ([], True),
    "a tensor twice": ([SHARED, SHARED], False),
    "a tensor that is pickled": ([SHARED, torch.nn.Parameter(torch.ones(2))], False),
    "a tuple": ((SHARED,), False),
    "a list of a list": ([[SHARED]], False),
}


@pytest.mark.parametrize("case", LISTS)
def test_a_list_of_different_tensors_needs_no_structure(case):
    batch, is_plain = LISTS[case]
    tensors, structure = pack(batch)
    assert (structure == b"") is is_plain
    again = unpack(structure, [tensor.clone() for tensor in tensors])
    assert type(again) is type(batch) and len(again) == len(batch) and str(again) == str(batch)
    if case == "a tensor twice":
        assert again[0] is again[1]


def test_tensors_of_a_slot_are_aligned():
    descriptors, nbytes = layout([torch.ones(3), torch.arange(12).view(3, 4).t(), torch.tensor(1.0), torch.empty(0, 3)])
    assert [(d["offset"], d["nbytes"]) for d in descriptors] == [(0, 12), (64, 96), (192, 4), (256, 0)]
    assert nbytes == 256 and descriptors[1] == {"dtype": "int64", "shape": [4, 3], "offset": 64, "nbytes": 96}


def test_the_wait_for_a_process_first_batch_is_its_start_and_no_data_wait():
    now = [0.0]
    account = Account(lambda: now[0], starting=True)
    account.wait()
    now[0] += 20.0
    assert account.totals().wait_seconds == 0
    account.deliver(4)
    account.compute()
    now[0] += 1.0
    account.wait()
    now[0] += 2.0
    totals = account.totals()
    assert (totals.samples, totals.compute_seconds, totals.wait_seconds) == (4, 1.0, 2.0)


def test_the_account_splits_time_between_computing_and_waiting():
    now = [10.0]
    account = Account(lambda: now[0])
    for seconds, turn in ((5, account.wait), (2, account.compute), (7, account.wait), (1, account.compute)):
        now[0] += seconds
        turn()
    account.deliver(32)
    now[0] += 0.5
    totals = account.totals()
    assert (totals.wait_seconds, totals.compute_seconds) == (2.0 + 1.0, 7.0 + 0.5)
    account.stop()
    now[0] += 100
    assert account.totals() == totals
    assert totals.since(Totals(1, 30, 7.0, 3.0)) == Totals(0, 2, 0.5, 0.0)


def test_settings_are_read():
    env = {"SLUICE": "off", "SLUICE_LOWERING": "0", "SLUICE_THREADS": "3", "SLUICE_ARENA_BYTES": "4096",
           "SLUICE_FEEDER_SOCKET": "", "SLUICE_SHARE_FEEDER": "off", "SLUICE_LOSS_PATIENCE_SECONDS": "1.5"}
    assert Settings.from_environment(env) == Settings(
        enabled=False, lowering=False, threads=3, arena_bytes=4096, share_feeder=False, loss_patience_seconds=1.5)
    assert Settings.from_environment({}) == Settings()


@pytest.mark.parametrize("name, value", [("SLUICE", "maybe"), ("SLUICE_THREADS", "two"), ("SLUICE_START_PATIENCE_SECONDS", "-1")])
def test_settings_that_cannot_be_meant_are_named(name, value):
    with pytest.raises(SettingError, match=name):
        Settings.from_environment({name: value})


def test_things_are_said_once(caplog):
    for _ in range(3):
        say_once(30, "just this once")
    assert caplog.text.count("just this once") == 1


def test_a_script_behind_a_link_is_found_by_the_name_it_was_started_with(tmp_path, monkeypatch):
    """As a ConfigMap is mounted: train.py -> ..data/train.py -> ..2026_11_21/train.py, another folder in each pod."""
    (tmp_path / "..2026_11_21").mkdir()
    (tmp_path / "..2026_11_21/train.py").touch()
    (tmp_path / "..data").symlink_to("..2026_11_21")
    (tmp_path / "train.py").symlink_to("..data/train.py")
    monkeypatch.setattr("sys.argv", [str(tmp_path / "train.py")])
    monkeypatch.setattr("sys.path", [str(tmp_path / "..2026_11_21"), "relative"])
    assert module_path() == [str(tmp_path / "..2026_11_21"), os.path.abspath("relative"), str(tmp_path)]


KEYS = {
    "none": ([], True),
    "some": ([3, 0, 2**63 - 1, -(2**63)], True),
    "too large": ([0, 2**63], False),
    "too small": ([-(2**63) - 1], False),
    "truth values": ([0, True], False),
    "words": (["a"], False),
    "as many as a frame holds": ([0] * MOST_KEYS, True),
    "more": ([0] * (MOST_KEYS + 1), False),
}


@pytest.mark.parametrize("case", KEYS)
def test_which_keys_a_feeder_can_be_asked_for(case):
    keys, taken = KEYS[case]
    assert Pipeline(PythonPipeline(None, None, auto_collation=True), None, "", 1).takes(keys) is taken


def test_a_request_of_the_most_keys_fits_a_frame():
    assert len(encode({"type": "request", "indices": [-(2**63)] * MOST_KEYS})) < MOST_JSON_BYTES
