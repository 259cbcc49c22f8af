"""What pickle refuses of Python's library, and is made anew elsewhere."""

from __future__ import annotations

import functools
import io
import threading
import weakref

import pytest

from sluice.made_anew import made_anew
from sluice.own_code import PickleReader
from sluice.pickling import dump


class Kept:
    pass


class Held:
    """A lock that is held. Its end frees it."""

    def __init__(self, lock):
        self.lock = lock
        self.lock.acquire()


ANEW = {
    "a lock": (threading.Lock(), lambda lock: lock.acquire(blocking=False)),
    "a reentrant lock": (threading.RLock(), lambda lock: lock.acquire() and lock.acquire()),
    "a condition": (threading.Condition(), lambda condition: condition.acquire(blocking=False)),
    "an event": (threading.Event(), lambda event: not event.is_set()),
    "weak values": (weakref.WeakValueDictionary(), lambda known: len(known) == 0),
    "weak keys": (weakref.WeakKeyDictionary(), lambda known: len(known) == 0),
    "a weak set": (weakref.WeakSet(), lambda known: len(known) == 0),
}


@pytest.mark.parametrize("case", ANEW)
def test_another_process_has_one_of_its_own(case):
    value, is_right = ANEW[case]
    pickled, _ = dump({"a": value, "b": value}, 1 << 20, False)
    read = PickleReader(io.BytesIO(pickled)).load()
    assert read["a"] is read["b"] and read["a"] is not value and is_right(read["a"])


KEPT = Kept()
HELD = {"a lock that is held": Held(threading.Lock()).lock, "a reentrant lock that is held": Held(threading.RLock()).lock,
        "weak values": weakref.WeakValueDictionary({1: KEPT}), "weak keys": weakref.WeakKeyDictionary({KEPT: 1})}  # fmt: skip


@pytest.mark.parametrize("case", HELD)
def test_what_a_fork_would_have_otherwise_is_refused(case):
    assert made_anew(HELD[case]) is None
    with pytest.raises((TypeError, AttributeError)):
        dump(HELD[case], 1 << 20, False)


def test_a_function_for_several_types_finds_those_that_call_it():
    script = {"functools": functools, "__name__": "__main__"}
    exec("""
@functools.singledispatch
def shown(value):
    "Shows it."
    return f"any {value}"
@shown.register(list)
def _(values): return [shown(each) for each in values]
@shown.register
def _(number: int): return f"number {number}"
""", script)  # fmt: skip
    pickled, _ = dump(script["shown"], 1 << 20, False)
    shown = PickleReader(io.BytesIO(pickled)).load()
    assert shown([1, "a", [2]]) == ["number 1", "any a", ["number 2"]]
    assert (shown.__name__, shown.__doc__) == ("shown", "Shows it.") and shown is not script["shown"]
