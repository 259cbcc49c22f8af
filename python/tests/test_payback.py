"""When forks and executors pay, from the waits of a loop."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from sluice.makers.accounting import Totals
from sluice.makers.payback import FORK_SECONDS, START_SECONDS, Payback, Scales

EXECUTOR_CASES = {
    # notes: (wait, compute, batches left) of each batch; pays_at: after how many an executor pays.
    "small waits": ([(0.010, 1.0, 1000)] * 500, None),
    "a slow first batch": ([(1.0, 1.0, 1000)] + [(0.010, 1.0, 1000)] * 100, None),
    "one slow batch in between": ([(0.010, 1.0, 1000)] * 20 + [(2.0, 1.0, 1000)] + [(0.010, 1.0, 1000)] * 20, None),
    "a starved loop": ([(0.5, 0.1, 100)] * 5, 2),
    "a starved loop with very slow batches": ([(4.0, 0.1, 100)] * 5, 1),
    "a starved loop that ends soon": ([(0.5, 0.1, left) for left in (3, 2, 1, 0)], None),
    "short epochs, again and again": ([(0.5, 0.1, left) for left in (1, 0)] * 8, 11),
    "an epoch of no known length": ([(0.5, 0.1, 0)] * 20, 11),
    "becoming slow": ([(0.010, 1.0, 1000)] * 50 + [(0.5, 1.0, 1000)] * 50, 55),
    "a batch in ten is slow": (([(0.010, 1.0, 0)] * 9 + [(1.5, 1.0, 0)]) * 10, 40),
    "no computing at all, but few batches": ([(0.005, 0.0, 100 - n) for n in range(100)], None),
}


@pytest.mark.parametrize("case", EXECUTOR_CASES)
def test_an_executor_pays_once_the_waits_come_to_its_start(case):
    notes, pays_at = EXECUTOR_CASES[case]
    payback, seen = Payback(), None
    for number, note in enumerate(notes, 1):
        payback.note(*note, START_SECONDS)
        if payback.pays and seen is None:
            seen = number
    assert seen == pays_at


def test_what_has_been_paid_for_is_kept():
    payback = Payback()
    payback.note(4.0, 0.1, 100, START_SECONDS)
    for _ in range(100):
        payback.note(0.001, 1.0, 100, START_SECONDS)
    assert payback.pays


FORK_CASES = {
    # notes: (wait, compute, batches left) of each batch; pays_at: after how many forks pay.
    "small waits": ([(0.010, 1.0, 1000)] * 500, None),
    "a slow first batch": ([(1.0, 1.0, 1000)] + [(0.010, 1.0, 1000)] * 100, None),
    "a starved loop": ([(0.5, 0.1, 100)] * 5, 2),
    "a starved loop that ends soon": ([(0.05, 0.01, left) for left in (3, 2, 1, 0)], None),
    "quick batches, and many": ([(0.001, 0.0, 1000)] * 30, 24),
    "quick batches, the first two of which are slow": ([(0.009, 0.0, 1000)] * 2 + [(0.0001, 0.0, 1000)] * 20, None),
    "no computing at all, but few batches": ([(0.001, 0.0, 100 - n) for n in range(100)], None),
    "an epoch of no known length": ([(0.05, 0.01, 0)] * 20, 5),
}


@pytest.mark.parametrize("case", FORK_CASES)
def test_forks_pay_long_before_executors(case):
    notes, pays_at = FORK_CASES[case]
    payback, seen = Payback(), None
    for number, note in enumerate(notes, 1):
        payback.note(*note, START_SECONDS, may_fork=True)
        if payback.forks_pay and seen is None:
            seen = number
            assert not payback.pays
    assert seen == pays_at and FORK_SECONDS < START_SECONDS


BESIDE_FORKS = {
    # The waits of the batches that forks make, after two of half a second: after how many of them an executor pays.
    "forks are enough": ([0.6] + [0.01] * 99, None),
    "forks are too few": ([0.3] * 100, 2),
    "forks become too slow": ([0.01] * 20 + [0.3] * 80, 25),
}


@pytest.mark.parametrize("case", BESIDE_FORKS)
def test_executors_pay_where_the_loop_waits_beside_forks(case):
    waits, pays_at = BESIDE_FORKS[case]
    payback = Payback()
    for _ in range(2):
        payback.note(0.5, 0.1, 100, START_SECONDS, may_fork=True)
    assert payback.forks_pay and not payback.pays
    seen = None
    for number, wait_seconds in enumerate(waits, 1):
        payback.note(wait_seconds, 1.0, 100 - number, START_SECONDS, may_fork=True)
        if payback.pays and seen is None:
            seen = number
    assert seen == pays_at


def test_executors_pay_where_forks_leave_the_loop_no_cpu():
    """Batches are there when the loop asks for them, but it computes twice as long as without forks."""
    paid_after = {}
    for held_back_seconds in (0.0, 0.05):
        payback = Payback()
        for number in range(200):
            payback.note(0.5 if number < 2 else 0.001, 0.1, 1000, START_SECONDS, not payback.forks_pay, 0.0 if number < 2 else held_back_seconds)
            if payback.pays:
                paid_after.setdefault(held_back_seconds, number)
    assert paid_after.keys() == {0.05} and paid_after[0.05] < 10


HELD_BACK = 5  # The argument of Payback.note.


@pytest.mark.parametrize("of_a_second, share", [(0.0, 0.0), (0.05, 0.0), (0.4, 0.3), (1.5, 0.9)])
def test_time_without_a_cpu_counts_beyond_a_tenth(monkeypatch, of_a_second, share):
    """A quota is given once a second, and a batch takes a tenth."""
    told, asked = [], itertools.count(1)
    monkeypatch.setattr("sluice.makers.payback.queued_seconds", lambda: of_a_second * (next(asked) // 10))
    monkeypatch.setattr(Payback, "note", lambda self, *arguments: told.append(arguments[HELD_BACK]))
    payback, scales, totals = Payback(forks_at_once=True), Scales(), Totals()
    for _ in range(401):
        totals = replace(totals, wait_seconds=totals.wait_seconds + 0.01, compute_seconds=totals.compute_seconds + 0.09)
        scales.here_seconds = 0.01
        scales.weigh(payback, totals, 100, False, True)
    assert told[-1] == pytest.approx(share * 0.09, abs=0.001)


def test_where_the_kernel_does_not_count_no_time_was_without_a_cpu(monkeypatch):
    told = []
    monkeypatch.setattr("sluice.makers.payback.queued_seconds", lambda: None)
    monkeypatch.setattr(Payback, "note", lambda self, *arguments: told.append(arguments[HELD_BACK]))
    scales, totals = Scales(), Totals()
    for _ in range(3):
        scales.here_seconds, totals = 0.01, replace(totals, compute_seconds=totals.compute_seconds + 1.0)
        scales.weigh(Payback(forks_at_once=True), totals, 100, False, True)
    assert told == [0.0] * 3


def test_no_executor_pays_where_it_would_add_no_cpu():
    payback = Payback(forks_suffice=True)
    for _ in range(100):
        payback.note(4.0, 0.1, 1000, START_SECONDS, may_fork=True)
    assert payback.forks_pay and not payback.pays
    assert "no executor is started" in payback.in_words()


def test_executors_pay_at_once_where_nothing_can_be_forked():
    payback = Payback()
    for _ in range(2):
        payback.note(0.5, 0.1, 100, START_SECONDS, may_fork=False)
    assert payback.pays and not payback.forks_pay


def loop_over(payback, waits, by_fork) -> Payback:
    for wait_seconds in waits:
        payback.note(wait_seconds, 0.001, 10_000, START_SECONDS, may_fork=not payback.forks_pay, by_fork=by_fork, may_rest=True)
    return payback


def beside_forks_of_cheap_batches(waits) -> Payback:
    return loop_over(loop_over(Payback(), [0.0004] * 24, by_fork=False), waits, by_fork=True)


def test_forks_are_given_up_that_take_longer_than_cheap_batches():
    payback = beside_forks_of_cheap_batches([0.0015] * 24)
    assert not payback.forks_pay and not payback.pays and not payback.forks_rest


@pytest.mark.parametrize("alone_seconds, kept", [(0.0002, False), (0.0004, True)])
def test_forks_rest_for_a_second_comparison(alone_seconds, kept):
    """The first batches took the process longer than those of now."""
    payback = beside_forks_of_cheap_batches([0.0002] * 224)
    assert payback.forks_rest and not payback.forks_pay
    loop_over(payback, [alone_seconds] * 24, by_fork=False)
    assert not payback.forks_rest and payback.forks_pay == kept
    assert ("forks take longer" in payback.in_words()) == (not kept)


def test_executors_pay_beside_forks_of_cheap_batches():
    """While it is compared whether these help, too."""
    payback = beside_forks_of_cheap_batches([0.0002] * 24 + [1.0] * 60)
    assert payback.pays


def test_forks_that_were_given_up_are_tried_again_once_batches_become_dear():
    payback = loop_over(beside_forks_of_cheap_batches([0.0015] * 24), [0.0015] * 20_000, by_fork=False)
    assert not payback.forks_pay and not payback.pays and "forks take longer" in payback.in_words()
    assert loop_over(payback, [0.02] * 8, by_fork=False).forks_pay
