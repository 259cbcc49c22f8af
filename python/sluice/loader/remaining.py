"""How many samples this process's training loop will still take, where that is known: scarce CPU goes to jobs that end soon.

The user says it with `DataLoader.announce`, or a framework's trainer with every step (sluice.loader.frameworks); the last word
counts. Where nothing is said nothing is known: a loop over epochs does not tell how many there will be.
"""

from __future__ import annotations

from collections.abc import Sized

_samples: int | None = None


def tell(samples: int | None) -> None:
    """None: it is not known any more."""
    global _samples
    _samples = samples


def samples() -> int | None:
    """What was told last. Any thread."""
    return _samples


class Announcement:
    """What the user says of one loader, counted down with every batch of it that the loop takes. A loop that takes
    more than was announced has an unknown end from then on. Not thread-safe: it belongs to the loop."""

    def __init__(self, batch_size: int, epochs: int | None, batches: int | None) -> None:
        """Counted from now on. Raises ValueError unless one of `epochs` and `batches` is given, and is at least 1."""
        said = [number for number in (epochs, batches) if number is not None]
        if len(said) != 1 or said[0] < 1:
            raise ValueError("announce either epochs or batches, at least 1 of them")
        self._batch_size = batch_size
        self._epochs = epochs  # Not begun.
        self._batches = batches

    def begin_epoch(self, loader: Sized, taken: int) -> None:
        """An epoch of the loader begins; the loop had `taken` of its batches before it was resumed."""
        if self._epochs is not None:
            self._batches = self._epochs * len(loader) - taken if self._epochs > 0 else None
            self._epochs -= 1
        self._tell()

    def take(self) -> None:
        """The loop has a batch more."""
        if self._batches is not None:
            self._batches = self._batches - 1 if self._batches > 0 else None
        self._tell()

    def _tell(self) -> None:
        tell(None if self._batches is None else self._batches * self._batch_size)
