"""A batch's samples are asked for together, before the first of them is made: what lies in an object store then arrives while others are decoded."""

from __future__ import annotations

import sys
from typing import Any

from sluice.executor.subsets import innermost, innermost_keys


def read_ahead(dataset: Any, keys: list) -> None:
    """For TarShards and subsets of them; any other data set reads by itself. What cannot be read is told when the sample is asked for."""
    shards = sys.modules.get("sluice.shards")
    if shards is None:
        return
    read_from = innermost(dataset)
    if isinstance(read_from, shards.TarShards) and (read_keys := innermost_keys(dataset, keys)) is not None:
        read_from.read_ahead(read_keys)
