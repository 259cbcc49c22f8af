"""Where native operations may change pixels later than in the program (docs/designs/ordering.md): what the user says of it."""

from __future__ import annotations

from typing import TypeVar

_Transform = TypeVar("_Transform")


def keep_position(transform: _Transform) -> _Transform:
    """The transform, which with SLUICE_ORDER=relaxed runs where it stands: nothing before it waits behind it, and it waits behind nothing. Without that
    setting no byte depends on it."""
    transform._sluice_keeps_position = True  # type: ignore[attr-defined]
    return transform


def keeps_position(transform: object) -> bool:
    return getattr(transform, "_sluice_keeps_position", False) is True
