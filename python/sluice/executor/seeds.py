"""The seeds of section 3 of docs/designs/protocols.md: one per sample, alike on every executor.

sample_seed(base_seed, epoch, position) is SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
Generators", OOPSLA 2014) read at the counter epoch * 2^40 + position + 1. It is cut to the 32 bits that torch, `random` and
numpy all accept.
"""

from __future__ import annotations

import random
import sys

import torch

_MASK64 = (1 << 64) - 1
_GOLDEN_GAMMA = 0x9E3779B97F4A7C15
_COLLATE_OFFSET = 1 << 39


def sample_seed(base_seed: int, epoch: int, position: int) -> int:
    """Seed, 0 .. 2^32-1, of the sample at `position` (counted from the start of the epoch, 0 first)."""
    z = (base_seed + _GOLDEN_GAMMA * ((epoch << 40) + position + 1)) & _MASK64
    z ^= z >> 30
    z = (z * 0xBF58476D1CE4E5B9) & _MASK64
    z ^= z >> 27
    z = (z * 0x94D049BB133111EB) & _MASK64
    z ^= z >> 31
    return z & 0xFFFFFFFF


def collate_seed(base_seed: int, epoch: int, first_position: int) -> int:
    """Seed for collating the batch whose first sample is at `first_position`."""
    return sample_seed(base_seed, epoch, _COLLATE_OFFSET + first_position)


def seed_torch(seed: int) -> None:
    """Seeds torch's CPU generator. Not torch.manual_seed: that also touches every accelerator's generator, which no sample may do."""
    torch.default_generator.manual_seed(seed)


def seed_python(seed: int) -> None:
    """Seeds the generator of `random`."""
    random.seed(seed)


def seed_numpy(seed: int) -> None:
    """Seeds numpy's global generator, where numpy is loaded, with the low 32 bits."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed & 0xFFFFFFFF)


def seed_everything(seed: int) -> None:
    """Seeds torch's CPU generator, that of `random` and, where loaded, numpy's. `seed` may have 64 bits; numpy gets the low 32."""
    seed_torch(seed)
    random.seed(seed)
    seed_numpy(seed)
