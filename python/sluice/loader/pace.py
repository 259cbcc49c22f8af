"""How far a sampler may be drawn.

torch's workers draw prefetch_factor x num_workers batches when an epoch begins, and one more for each batch handed over. A
loop that ends early leaves the sampler and its generator there, and the next epoch goes on from there. So that it is the same
epoch here, a sampler is drawn at the same moments. Only draws that nothing can tell apart may come earlier.
"""

from __future__ import annotations

import math
from typing import Any

from torch.utils.data import (BatchSampler, DistributedSampler, RandomSampler, SequentialSampler, SubsetRandomSampler,
                              WeightedRandomSampler)

# Exact types: their first draw decides the whole epoch, and the later ones touch no generator that anyone else can see.
_DECIDED_BY_FIRST_DRAW = (SequentialSampler, SubsetRandomSampler, WeightedRandomSampler, DistributedSampler, list, tuple, range)


def batches_decided(loader: Any) -> float:
    """How many batches of an epoch may be drawn at any time once the first one is: infinity, or all but the last, or 0."""
    batches = loader._index_sampler
    sampler = batches.sampler if type(batches) is BatchSampler else batches
    if type(sampler) in _DECIDED_BY_FIRST_DRAW:
        return math.inf
    if type(sampler) is not RandomSampler:
        return 0
    if sampler.generator is None:
        return math.inf  # Its generator is private to the epoch.
    if sampler.replacement or sampler.num_samples != len(sampler.data_source):
        return 0
    return len(batches) - 1  # The end of a permutation draws the next one.


def batches_left(batches: Any, taken: int) -> int:
    """Of an epoch of which the loop has had so many; 0 if unknown."""
    try:
        return max(0, len(batches) - taken)
    except Exception:  # Of the user's `__len__`, which the loop has not asked for.
        return 0
