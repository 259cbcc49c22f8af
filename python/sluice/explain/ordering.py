"""What `explain` says of the order in which native operations change pixels (docs/designs/ordering.md)."""

from __future__ import annotations

from sluice.base.settings import EXACT, PROGRAM, RELAXED
from sluice.makers.measured import Work

# An executor says so what an operation was spared, as one more operation of its list.
SPARED = " spared"
_WORDS = {
    EXACT: "exact: the same bytes as in the program's order",
    RELAXED: "relaxed: other pixels than in the program's order, so compare the accuracy of a run with SLUICE_ORDER=exact; sluice.keep_position(transform) keeps one in place",
}


def order_in_words(order: str, work: Work | None) -> list[str]:
    """A line for the order, and one for each operation that was spared pixels."""
    if order == PROGRAM:
        return ["order: that of the program, as SLUICE_ORDER=program says"]
    if work is None or not work.samples:
        return []
    waited = [(op, work.ops[op].bytes, work.ops[op + SPARED].bytes) for op in work.ops if op + SPARED in work.ops]
    kib = 1024 * work.samples
    lines = [f"  {op} waited behind later crops or resizes: {made / kib:.1f} KiB of a sample, not {(made + spared) / kib:.1f}" for op, made, spared in waited]
    return [f"order ({_WORDS[order]})", *lines] if lines or order == RELAXED else []
