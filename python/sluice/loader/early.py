"""The batches of a pass that were asked for before it began (sluice.loader.ahead), and which of them have to be made again.

What a native batch depends on is known, and compared when the pass begins. A Python data set may have read what has changed since.
"""

from __future__ import annotations

from sluice.feeder.answer import Answer


class EarlyBatches:
    """By their numbers in the pass. Not thread-safe: a stream's."""

    def __init__(self) -> None:
        self._asked: set[int] = set()
        self._outdated: set[int] = set()

    def ask(self, seq: int) -> None:
        self._asked.add(seq)

    def turns_down(self, seq: int, answer: Answer) -> bool:
        """Whether this answer may be another one than would be made when the pass has begun. The batch is then one of `outdated`. An answer that
        comes after the beginning may have been made before."""
        if seq not in self._asked or answer.is_native or answer.is_from_memory:
            return False
        self._outdated.add(seq)
        return True

    def take_outdated(self) -> list[int]:
        """What has to be asked for anew, once: the pass has begun."""
        outdated = sorted(self._outdated)
        self._asked -= self._outdated
        self._outdated.clear()
        return outdated

    def forget(self) -> None:
        """All of the pass that has not come is asked for anew."""
        self._asked.clear()
        self._outdated.clear()
