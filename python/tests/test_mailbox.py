"""What is posted to a thread reaches it once, in order, and wakes it."""

from __future__ import annotations

import os
import select
import threading

from sluice.feeder.mailbox import Mailbox


def is_rung(mailbox: Mailbox) -> bool:
    return bool(select.select([mailbox], [], [], 0)[0])


def test_items_are_taken_in_their_order():
    mailbox = Mailbox()
    for item in ("first", 0, "last"):
        mailbox.post(item)
    assert [mailbox.take() for _ in range(4)] == ["first", 0, "last", None]


def test_the_bell_rings_until_it_is_heard():
    mailbox = Mailbox()
    assert not is_rung(mailbox)
    mailbox.post("one")
    mailbox.post("another")
    assert is_rung(mailbox)
    mailbox.hear()
    assert not is_rung(mailbox)
    mailbox.ring()
    assert is_rung(mailbox)


def test_nothing_of_many_threads_is_lost_however_late_it_is_heard():
    mailbox, threads, each = Mailbox(), 4, 2000
    posters = [threading.Thread(target=lambda first=first: [mailbox.post(first + item) for item in range(each)]) for first in range(0, threads * each, each)]
    for poster in posters:
        poster.start()
    taken: list[int] = []
    while len(taken) < threads * each and select.select([mailbox], [], [], 10)[0]:
        mailbox.hear()
        while (item := mailbox.take()) is not None:
            taken.append(item)
    for poster in posters:
        poster.join()
    assert sorted(taken) == list(range(threads * each))


def test_in_a_child_nothing_is_posted_and_the_bell_is_closed():
    mailbox = Mailbox()
    descriptor = mailbox.fileno()
    mailbox.abandon()
    mailbox.post("of the child")
    mailbox.ring()
    assert mailbox.take() is None and not os.path.exists(f"/proc/self/fd/{descriptor}")


def test_the_bell_goes_with_the_mailbox():
    mailbox = Mailbox()
    descriptor = mailbox.fileno()
    del mailbox
    assert not os.path.exists(f"/proc/self/fd/{descriptor}")
