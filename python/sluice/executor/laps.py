"""What the parts of one batch have cost the process that makes it in Python."""

from __future__ import annotations

import time

DATASET, COLLATE = "dataset", "collate"


class Laps:
    """CPU-seconds of this process, all its threads, in the two parts of a batch. Two reads of a clock a batch: less than 2 microseconds.
    Not thread-safe."""

    def __init__(self) -> None:
        """The first part begins."""
        self._costs: dict[str, list] = {}
        self._last_seconds = time.process_time()

    def lap(self, part: str, made_bytes: int = 0) -> None:
        """What has happened since the last lap was `part`. `made_bytes`: 0 where they are not known."""
        now_seconds = time.process_time()
        cost = self._costs.setdefault(part, [0.0, 0])
        cost[0] += now_seconds - self._last_seconds
        cost[1] += made_bytes
        self._last_seconds = now_seconds

    def costs(self) -> list[list]:
        """[part, CPU-seconds, bytes] for each, in their order: the field `ops` of a batch's answer."""
        return [[part, *cost] for part, cost in self._costs.items()]
