"""A copy that stays in this process shares plain values, and nothing that can change."""

from __future__ import annotations

import os
import pathlib

import pytest
import torch

from sluice.shipping.failures import NotLight
from sluice.shipping.pickling import dump
from sluice.shipping.plain_data import PlainParts
from sluice.torch import DataLoader

LINES = [f"line {number}" for number in range(300)]
SHARED_ROW = [1, 2]

# A container, and whether it is copied by itself: without pickling.
CONTAINERS = {
    "lines": (LINES, True),
    "a tuple of lines": (tuple(LINES), True),
    "files with labels": ([(line, 3) for line in LINES], True),
    "rows as dicts": ([{"text": line, "label": 1, "tokens": [1, 2, 3]} for line in LINES], True),
    "lines by number": (dict(enumerate(LINES)), True),
    "rows by name": ({line: [1, 2] for line in LINES}, True),
    "a set of lines": (set(LINES), True),
    "a frozen set of pairs": (frozenset((line, 1) for line in LINES), True),
    "tuples with lists in them": ([(line, [1]) for line in LINES], True),
    "one row three hundred times": ([SHARED_ROW] * 300, True),
    "few lines": (LINES[:200], False),
    "paths": ([pathlib.Path(line) for line in LINES], False),
    "tensors": ([torch.zeros(1)] * 300, False),
    "arrays of bytes, which can change": ([bytearray(b"a") for _ in LINES], False),
    "a set of pairs with a path": ({(line, pathlib.Path(line)) for line in LINES}, False),
    "keys that are more than their value": ({pathlib.Path(line): 1 for line in LINES}, False),
    "strings of a class of their own": ([type("Name", (str,), {})(line) for line in LINES], False),
    "too many values": ([0] * 2_100_000, False),
    "too many rows": ([[0] for _ in range(50_000)], False),
}


def mutable_within(value):
    found = {id(value): value} if isinstance(value, (list, dict, set)) else {}
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            found |= mutable_within(each)
    return found


@pytest.mark.parametrize("case", CONTAINERS)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(case):
    value, is_plain = CONTAINERS[case]
    parts = PlainParts()
    assert parts.add(value) == (0 if is_plain else None)
    assert parts.add(value) == (0 if is_plain else None)
    if is_plain:
        first, second = parts.copy()[0], parts.copy()[0]
        for one, other in ((first, value), (second, value), (first, second)):
            assert one == other and type(one) is type(other)
            assert mutable_within(one).keys().isdisjoint(mutable_within(other))
        assert len(mutable_within(first)) == len(mutable_within(value))


def test_what_two_containers_share_their_copies_share():
    rows = [[number] for number in range(300)]
    parts = PlainParts()
    assert [parts.add(each) for each in (rows, {number: row for number, row in enumerate(rows)})] == [0, 1]
    copied, by_number = parts.copy()
    assert all(by_number[number] is row for number, row in enumerate(copied))


def test_a_container_of_itself_is_pickled():
    circle: list = list(LINES)
    circle.append(circle)
    parts = PlainParts()
    assert parts.add(circle) is None and len(parts) == 0
    assert parts.add(LINES) == 0 and parts.copy() == [LINES]


@pytest.mark.parametrize("value", [[object()] * 30_000, [{"tokens": []} for _ in range(60_000)]], ids=["objects", "too many rows"])
def test_what_is_not_plain_is_pickled_only_if_it_is_short(value):
    assert dump([[object()] * 300], 16 << 20, with_generators=False, light=True, parts=PlainParts())
    with pytest.raises(NotLight, match="not plain"):
        dump([value], 16 << 20, with_generators=False, light=True, parts=PlainParts())


def test_a_part_that_is_also_elsewhere_is_told():
    inner = [1]
    parts = PlainParts()
    assert parts.add([*LINES, inner]) == 0
    assert parts.are_shared({id(inner)}) and not parts.are_shared({id(LINES)})


class Lines(torch.utils.data.Dataset):
    """3 MB of lines, more than are pickled for a loader whose executors would add no CPU."""

    def __init__(self) -> None:
        self.lines = [f"line {number} {'word ' * 20}" for number in range(24_000)]
        self.rows = [[number] for number in range(1_000)]
        self.first_row = self.rows[0]

    def __len__(self) -> int:
        return 640

    def __getitem__(self, index: int) -> tuple[str, int, int]:
        self.lines[index] += "!"
        self.rows[index % 1_000][0] += 1
        return self.lines[index], self.rows[index % 1_000][0], os.getpid()


class LinesAlone(Lines):
    def __init__(self) -> None:
        super().__init__()
        del self.first_row


@pytest.mark.parametrize("kind, here", [(LinesAlone, True), (Lines, False)], ids=["plain", "with a row in two places"])
def test_many_cheap_lines_are_made_by_this_process_from_a_copy(kind, here, make_fake, monkeypatch):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setattr("sluice.torch.adds_no_cpu", lambda *_: True)
    monkeypatch.setattr("sluice.makers.payback.FORK_SECONDS", 1e9)  # However slow this machine is, forks do not pay.
    data = kind()
    loader = DataLoader(data, batch_size=64, num_workers=2)
    before = list(data.lines)
    for epoch in range(2):
        if epoch:
            data.lines[5] = "changed by the loop"
        batches = list(loader)
        lines = [line for batch in batches for line in batch[0]]
        assert lines == [f"{line}!" for line in data.lines[:640]]
        assert [int(number) for batch in batches for number in batch[1]] == [number + 1 for number in range(640)]
        makers = {int(maker) for batch in batches for maker in batch[2]}
        assert (makers == {os.getpid()}) == here
    assert data.lines[:5] == before[:5] and data.rows[7] == [7]
