"""Sluice: data loading by elastic workers behind PyTorch's own interface.

`from sluice.torch import DataLoader` is all a training script needs. Importing this package alone imports neither torch
nor anything else, so that the executor's child can start as cheaply as possible. `from sluice import cached, keep_position` imports what it needs.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sluice.cache.kept import cached as cached
    from sluice.lowering.late_changes import keep_position as keep_position

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "cached":
        from sluice.cache.kept import cached

        return cached
    if name == "keep_position":
        from sluice.lowering.late_changes import keep_position

        return keep_position
    raise AttributeError(f"module 'sluice' has no attribute {name!r}")
