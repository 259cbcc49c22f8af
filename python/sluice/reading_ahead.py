"""A batch's samples are asked for together, before the first of them is made: what lies in an object store then arrives while others are decoded."""

from __future__ import annotations

import sys
from numbers import Integral
from typing import Any

from torch.utils.data import Subset


def read_ahead(dataset: Any, keys: list) -> None:
    """For TarShards and subsets of them; any other data set reads by itself. What cannot be read is told when the sample is asked for."""
    shards = sys.modules.get("sluice.shards")
    if shards is None:
        return
    while type(dataset) is Subset:
        if not all(isinstance(key, Integral) and -len(dataset.indices) <= int(key) < len(dataset.indices) for key in keys):
            return
        dataset, keys = dataset.dataset, [dataset.indices[key] for key in keys]
    if isinstance(dataset, shards.TarShards):
        dataset.read_ahead(keys)
