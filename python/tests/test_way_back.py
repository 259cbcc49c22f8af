"""When a loop goes back from executors to its own forks, and when it tries executors anew."""

from __future__ import annotations

import itertools

import pytest
import torch

from torchvision import transforms
from torchvision.datasets import ImageFolder

from conftest import eventually
from sample_datasets import TORCH_HAS_IN_ORDER, Numbers
from sluice.feeder.choice import disconnect_all
from sluice.makers.measured import FORKS
from sluice.makers.payback import Payback
from sluice.makers.way_back import WayBack
from sluice.torch import DataLoader
from test_loader import equal
from test_lowering import NATIVE

WITHOUT = (0.1, 0.1)  # The loop waits, and computes, for a batch.
LOOKS = {
    # Of a batch beside executors: (wait, compute), and whether the loop goes back.
    "much slower": ([(1.0, 0.1)] * 100, True),
    "a little slower": ([(0.13, 0.1)] * 200, True),
    "as fast": ([(0.1, 0.1)] * 200, False),
    "not slower by a tenth": ([(0.115, 0.1)] * 200, False),
    "faster": ([(0.0, 0.1)] * 200, False),
    "more computing in each batch, and no more waiting": ([(0.05, 1.0)] * 100, False),
    "slow for ten seconds, as one executor is lost": ([(1.0, 0.1)] * 10 + [(0.0, 0.1)] * 200, False),
    "slow at last, as data workers are taken away": ([(0.0, 0.1)] * 500 + [(1.0, 0.1)] * 100, True),
    "few batches, but very slow": ([(12.0, 0.1)] * 2, True),
    "ten seconds alone": ([(1.0, 0.1)] * 10, False),
}


def used_to(batch: tuple[float, float] = WITHOUT) -> WayBack:
    way_back = WayBack()
    for _ in range(30):
        way_back.note_without(*batch, 8)
    return way_back


def batches_until_back(way_back: WayBack, beside: list) -> int | None:
    return next((number for number, batch in enumerate(beside, 1) if way_back.note_beside(*batch, lambda: None)), None)


def rest_batches(way_back: WayBack, windows=lambda number: 8) -> int:
    """How many batches of .2 s the loop has from forks until executors may be tried again."""
    number = 0
    while way_back.rests:
        way_back.note_without(*WITHOUT, windows(number))
        number += 1
    return number


@pytest.mark.parametrize("case", LOOKS)
def test_a_loop_goes_back_where_executors_are_slower_than_its_forks(case):
    beside, goes_back = LOOKS[case]
    assert (batches_until_back(used_to(), beside) is not None) == goes_back


def test_a_loop_that_never_had_forks_stays_with_executors():
    assert batches_until_back(WayBack(), [(1.0, 0.1)] * 100) is None


def test_rests_grow_and_one_slow_look_ends_a_further_try():
    way_back, slow = used_to(), [(0.9, 0.1)] * 100
    looks, rests = [], []
    for _ in range(6):
        looks.append(batches_until_back(way_back, slow))
        rests.append(rest_batches(way_back))
    assert looks == pytest.approx([20, 10, 10, 10, 10, 10], abs=1)
    assert rests == pytest.approx([300, 600, 1200, 2400, 4800, 4800], abs=1)  # Of .2 s: 60 s to 960 s.


def test_good_looks_make_rests_short_again():
    way_back, slow, good = used_to(), [(0.9, 0.1)] * 100, [(0.0, 0.1)] * 1000
    for _ in range(3):
        batches_until_back(way_back, slow)
        rest_batches(way_back)
    assert batches_until_back(way_back, good + slow) is not None
    assert rest_batches(way_back) == pytest.approx(300, abs=1)


WINDOWS = {
    # The feeder's window after so many batches of a rest, and how many batches the rest has.
    "the same": (lambda number: 8, 300),
    "smaller": (lambda number: 8 if number < 150 else 4, 300),
    "larger, as data workers came": (lambda number: 8 if number < 150 else 11, 151),
    "smaller and then as before": (lambda number: 4 if 10 < number < 200 else 8, 201),
    "larger soon after": (lambda number: 8 if number < 10 else 11, 100),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_a_window_that_grows_ends_a_rest_after_twenty_seconds(case):
    windows, batches = WINDOWS[case]
    way_back = used_to()
    batches_until_back(way_back, [(0.9, 0.1)] * 100)
    assert rest_batches(way_back, windows) == pytest.approx(batches, abs=1)


STARVED, FED = (0.9, 0.1), (0.2, 0.8)
TRIES = {
    # Of a loop that has had executors only: what it has had of each batch beside them, what forks promise to take, and when they are tried.
    "starved, and forks promise more": ([STARVED] * 100, 0.3, 30),
    "starved, and forks promise the same": ([STARVED] * 200, 0.9, None),
    "starved, and nothing is known of forks": ([STARVED] * 200, None, None),
    "starved until data workers come": ([STARVED] * 22 + [FED] * 200, 0.3, None),
    "starved again and again": (([STARVED] * 20 + [FED] * 10) * 10, 0.3, None),
    "fed": ([FED] * 200, 0.3, None),
}


@pytest.mark.parametrize("case", TRIES)
def test_forks_are_tried_where_a_loop_starves_beside_executors(case):
    beside, promised_seconds, tried_at = TRIES[case]
    way_back = WayBack()
    assert next((number for number, batch in enumerate(beside, 1) if way_back.note_beside(*batch, lambda: promised_seconds)), None) == tried_at


@pytest.mark.parametrize("wait_seconds, returns_at", [(0.1, None), (0.9, None), (2.0, 5)])
def test_a_loop_returns_at_once_from_forks_that_are_slower_than_executors(wait_seconds, returns_at):
    way_back = WayBack()
    assert any(way_back.note_beside(*STARVED, lambda: 0.3) for _ in range(30))
    returned = next((number for number in range(1, 25) if way_back.note_without(wait_seconds, 0.1, 8)), None)
    assert returned == returns_at and way_back.rests == (returns_at is None)
    if returned:  # The forks are known now, so none is tried again.
        assert batches_until_back(way_back, [STARVED] * 200) is None


def test_no_executor_pays_in_a_rest():
    payback = Payback()
    for _ in range(30):
        payback.way_back.note_without(*WITHOUT, 8)
    batches_until_back(payback.way_back, [(0.9, 0.1)] * 100)
    payback.go_back()
    for _ in range(100):
        payback.note(0.9, 0.1, 1000, 0.5)
    assert not payback.pays
    rest_batches(payback.way_back)
    payback.note(0.9, 0.1, 1000, 0.5)
    assert payback.pays


def going_back(payback: Payback, at: int | None) -> itertools.count:
    """The loop goes back with batch `at` from executors. Returns what counts these, from 1 on."""
    beside_executors = itertools.count(1)

    def note_beside(*_) -> bool:
        if next(beside_executors) != at:
            return False
        payback.way_back.rest()
        return True

    payback.way_back.note_beside = note_beside
    return beside_executors


@pytest.mark.parametrize("arguments", [{}, {"shuffle": True}, {"persistent_workers": True}, {"in_order": False}], ids=str)
def test_no_batch_depends_on_when_a_loop_goes_back(make_fake, monkeypatch, arguments):
    if "in_order" in arguments and not TORCH_HAS_IN_ORDER:
        pytest.skip("this torch has no in_order")
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_AHEAD", "off")
    fake = make_fake()
    in_order = arguments.get("in_order", True)

    def epoch(goes_back_at: int | None) -> list:
        torch.manual_seed(21)
        loader = DataLoader(Numbers(), batch_size=2, num_workers=2, **arguments)
        loader._sluice_payback = payback = Payback(forks_at_once=not in_order)
        payback.pays = payback.forks_pay = True
        beside_executors = going_back(payback, goes_back_at)
        batches, seen = iter(loader), []
        for batch in batches:
            seen.append([part.clone() for part in batch])
            if len(seen) == 4:
                eventually(lambda: batches._stream.is_proven)
        assert payback.pays == (next(beside_executors) <= (goes_back_at or 1000))
        return seen if in_order else sorted(seen, key=str)

    expected = epoch(None)
    assert len(fake.ask()["requests"]) > 4
    for goes_back_at in (1, 2, 3, 6):
        assert equal(expected, epoch(goes_back_at))


def test_a_loop_goes_back_while_forks_hold_later_batches_than_executors(make_fake, monkeypatch):
    """The first batch that an executor makes is one of a trial, and forks have got those behind it by then."""
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    fake = make_fake(silent=True)
    loader = DataLoader(Numbers(), batch_size=1, num_workers=3)
    loader._sluice_payback = payback = Payback()
    payback.pays = payback.forks_pay = True
    going_back(payback, 1)
    batches = iter(loader)
    eventually(lambda: fake.ask()["opens"])
    seen = [next(batches)[0].item()]
    eventually(lambda: len(fake.ask()["requests"]) == 2)
    tried = [request[0] for request in fake.ask()["requests"]]
    while seen[-1] < tried[0] - 1:
        seen.append(next(batches)[0].item())
    assert any(seq > tried[1] for seq in batches._outstanding if seq in batches._forks)
    fake.set(silent=False)
    eventually(lambda: batches._stream.is_proven)
    assert seen + [batch[0].item() for batch in batches] == list(range(37)) and not payback.pays


@pytest.mark.parametrize("arguments", [{}, {"persistent_workers": True}, {"in_order": False}], ids=str)
def test_no_native_batch_depends_on_when_forks_are_tried(real_feeder, image_root, monkeypatch, arguments):
    if "in_order" in arguments and not TORCH_HAS_IN_ORDER:
        pytest.skip("this torch has no in_order")
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    in_order = arguments.get("in_order", True)
    folder = ImageFolder(image_root, transforms.Compose(NATIVE["training on ImageNet"][0]))

    def epochs(goes_back_at: int | None, returns_at: int | None = None) -> list:
        torch.manual_seed(21)
        loader = DataLoader(folder, batch_size=2, shuffle=True, num_workers=2, **arguments)
        loader._sluice_payback = payback = Payback(executors_at_once=True)
        going_back(payback, goes_back_at)
        without = itertools.count(1)
        payback.way_back.note_without = lambda *_: next(without) == returns_at
        seen = [[part.clone() for part in batch] for _ in range(2) for batch in loader]
        assert loader.explain().startswith("executor: native") and loader._sluice_payback is payback
        by_forks = loader._sluice_measured.so_far()[0].get(FORKS, 0)
        assert (by_forks > 0) == (goes_back_at is not None) and payback.pays == (goes_back_at is None or returns_at is not None)
        return seen if in_order else sorted(seen, key=str)

    expected = epochs(None)
    for goes_back_at, returns_at in [(1, None), (4, None), (14, None), (2, 3), (5, 12)]:
        assert equal(expected, epochs(goes_back_at, returns_at))


@pytest.mark.parametrize("patience", ["SLUICE_START_PATIENCE_SECONDS", "SLUICE_LOSS_PATIENCE_SECONDS"])
def test_forks_make_native_batches_where_no_feeder_answers(make_fake, image_root, monkeypatch, patience):
    """One process alone would be slower than torch's workers."""
    folder = ImageFolder(image_root, transforms.Compose(NATIVE["training on ImageNet"][0]))

    def epoch(loses_feeder: bool) -> list:
        torch.manual_seed(21)
        loader = DataLoader(folder, batch_size=2, num_workers=2)
        batches = iter(loader)
        seen = [next(batches)] if patience.startswith("SLUICE_LOSS") else []
        if loses_feeder:
            fake.stop()
        seen += list(batches)
        assert (loader._sluice_measured.so_far()[0].get(FORKS, 0) > 0) == loses_feeder
        return [[part.clone() for part in batch] for batch in seen]

    fake = make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    expected = epoch(loses_feeder=False)
    if patience.startswith("SLUICE_START"):
        disconnect_all()
    monkeypatch.setenv(patience, "0.05")
    assert equal(expected, epoch(loses_feeder=True))


@pytest.mark.parametrize("lowering", ["on", "off"])
def test_forks_promise_something_for_a_native_pipeline_alone(real_feeder, image_root, monkeypatch, lowering):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_LOWERING", lowering)
    loader = DataLoader(ImageFolder(image_root, transforms.Compose(NATIVE["training on ImageNet"][0])), batch_size=2, num_workers=2)
    loader._sluice_payback = payback = Payback(executors_at_once=lowering == "on")
    payback.pays = True
    promised = []
    payback.way_back.note_beside = lambda _wait, _compute, forks_seconds: bool(promised.append(forks_seconds()))
    for _ in range(4):
        list(loader)
    if lowering == "off":
        assert set(promised) <= {None}
        return
    work = loader._sluice_measured.so_far()[1]["native"]
    each_seconds = work.seconds / work.batches
    assert each_seconds / 2 < promised[-1] < 5 * each_seconds
