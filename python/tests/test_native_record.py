"""When a pass leaves native executors for Python ones."""

from __future__ import annotations

import pytest

from sluice.loader.native_record import NativeRecord


@pytest.mark.parametrize("batches, left_at", [
    ("." * 1000, None),
    ("x" * 7, None),
    ("x" * 8, 8),
    ("." * 50 + "x" * 8, 58),
    ("." * 56 + "x" * 8, 64),
    ("." * 57 + "x" * 8 + "x", 66),
    ("........x" * 60, None),
    (".......x" * 60, 64),
    ("x" * 7 + "." * 200 + "x", None),
], ids=["none fails", "few", "all", "late", "just enough", "just too few at first", "one of nine", "one of eight", "long ago"])  # fmt: skip
def test_many_failures_and_a_large_share_of_them(batches, left_at):
    record = NativeRecord()
    found = next((number for number, batch in enumerate(batches, 1) if record.note(batch == "x")), None)
    assert found == left_at
    if found:
        assert record.in_words() == f"{batches[:found].count('x')} of {found} batches failed natively"
