"""A request that is late is asked for once more, seldom, and not from a store that is busy."""

from __future__ import annotations

import threading

import pytest

from object_server import Store
from sluice.stores import late_requests, object_reader
from sluice.stores.late_requests import LateRequests
from sluice.stores.object_reader import ObjectError, ObjectReader, Range

MEBIBYTE = 1 << 20


def known(count, seconds=0.1, nbytes=0):
    late = LateRequests()
    for _ in range(count):
        late.took(nbytes, seconds)
    return late


@pytest.mark.parametrize(("late", "nbytes", "expected"), [
    (known(31), 0, None),
    (known(32), 0, 0.1),
    (known(32), MEBIBYTE, 0.2),
    (known(64, seconds=0.3, nbytes=2 * MEBIBYTE), 0, 0.1),
    (known(64, seconds=0.001), 0, 0.02),
], ids=["too few known", "as long as others", "larger", "smaller than others", "very fast"])  # fmt: skip
def test_a_request_is_late_when_it_takes_longer_than_others_of_its_size(late, nbytes, expected):
    assert late.late_after_seconds(nbytes) == (expected if expected is None else pytest.approx(expected))


def test_one_slow_answer_of_a_hundred_makes_no_other_late_and_the_last_ones_count():
    late = known(255)
    late.took(0, 9.0)
    assert late.late_after_seconds(0) == pytest.approx(0.1)
    for _ in range(256):
        late.took(0, 9.0)
    assert late.late_after_seconds(0) == pytest.approx(9.0)


def test_one_request_of_twenty_is_asked_for_again_at_most():
    late, again = known(100), 0
    for _ in range(1000):
        late.took(0, 0.1)
        again += late.may_ask_again()
    assert again == 55
    for _ in range(100000):
        late.took(0, 0.1)
    assert sum(late.may_ask_again() for _ in range(100)) == 12  # what was not used does not pile up
    late = known(200)
    late.store_is_busy()
    assert not late.may_ask_again()


class StuckStore(Store):
    """The first request for the bytes from 990 on gets its answer when the test ends."""

    def __init__(self):
        super().__init__({"/o": bytes(range(200)) * 10})
        self.asked, self.end = 0, threading.Event()

    def answer(self, to, fault):
        if to.headers["Range"].startswith("bytes=990-"):
            self.asked += 1
            if self.asked == 1:
                self.end.wait(60)
        super().answer(to, fault)


@pytest.fixture
def reading(monkeypatch):
    """The store, a reader to which 100 answers are known, and the ranges of the object."""
    monkeypatch.setattr(late_requests, "_LEAST_SECONDS", 0.3)  # On a busy machine no other request is late.
    store = StuckStore()
    with store.serving() as address:
        reader = ObjectReader(sleep=lambda seconds: None)
        state = reader.state(f"{address}/o")
        ranges = [Range(f"{address}/o", state, number * 10, 10) for number in range(200)]
        assert all(reader.read(each) == store.objects["/o"][each.offset :][:10] for each in ranges[:99])
        try:
            yield store, reader, ranges
        finally:
            store.end.set()


@pytest.mark.parametrize("ahead", [False, True], ids=["asked for when wanted", "asked for ahead"])
def test_a_request_that_stands_still_keeps_nobody_waiting(reading, ahead):
    store, reader, ranges = reading
    if ahead:
        reader.read_ahead(ranges[99:100])
    assert [reader.read(each) for each in ranges[99::10]] == [store.objects["/o"][each.offset :][:10] for each in ranges[99::10]]
    assert store.asked == 2 and not store.end.is_set()


def test_when_both_requests_fail_the_reason_is_that_of_a_request(reading):
    store, reader, ranges = reading
    store.objects["/o"] = b"another"
    threading.Timer(0.6, store.end.set).start()
    with pytest.raises(ObjectError):
        reader.read(ranges[99])


def test_the_other_request_counts_when_one_fails(reading, monkeypatch):
    store, reader, ranges = reading
    monkeypatch.setattr(object_reader, "MOST_ATTEMPTS", 1)
    answer = store.answer
    store.answer = lambda to, fault: answer(to, "503" if store.asked == 1 and to.headers["Range"].startswith("bytes=990-") else None)
    threading.Timer(0.9, store.end.set).start()
    assert reader.read(ranges[99]) == store.objects["/o"][990:1000] and store.asked == 2
