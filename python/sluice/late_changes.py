"""Where native operations may change pixels later than in the program (docs/designs/ordering.md): what the user says of it, and what `explain` tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sluice.settings import EXACT, PROGRAM, RELAXED

if TYPE_CHECKING:
    from sluice.measured import Work

_Transform = TypeVar("_Transform")
# An executor says so what an operation was spared, as one more operation of its list.
SPARED = " spared"
_WORDS = {
    EXACT: "exact: the same bytes as in the program's order",
    RELAXED: "relaxed: other pixels than in the program's order, so compare the accuracy of a run with SLUICE_ORDER=exact; sluice.keep_position(transform) keeps one in place",
}


def keep_position(transform: _Transform) -> _Transform:
    """The transform, which with SLUICE_ORDER=relaxed runs where it stands: nothing before it waits behind it, and it waits behind nothing. Without that
    setting no byte depends on it."""
    transform._sluice_keeps_position = True  # type: ignore[attr-defined]
    return transform


def keeps_position(transform: object) -> bool:
    return getattr(transform, "_sluice_keeps_position", False) is True


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
