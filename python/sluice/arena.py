"""The client's end of the shared memory in which batches arrive.

A batch's tensors alias the feeder's memfd: no byte is copied in the trainer. The slot that holds them is given back when the
last tensor over it, including every view and every numpy array made from one, has died.

After a fork the child sees the same pages; only the parent gives slots back, so a child must copy a batch it wants to keep.
"""

from __future__ import annotations

import math
import mmap
import os
import weakref
from collections.abc import Callable

import torch

from sluice.framing import ProtocolError
from sluice.structure import DTYPES


class Arena:
    """One mapping of a feeder's memfd, alive as long as any tensor in it. Thread-safe: immutable after construction."""

    def __init__(self, descriptor: int, size_bytes: int, release: Callable[[int], None]) -> None:
        """Maps `descriptor` (and leaves closing it to the caller). `release(slot)` is called once per adopted slot, from
        whichever thread drops the last tensor, possibly inside the garbage collector: it must not take locks."""
        self._memory = mmap.mmap(descriptor, size_bytes)
        self.size_bytes = size_bytes
        self._release = release
        self._owner_pid = os.getpid()
        self._lent: set[_Lent] = set()  # A weak reference must live itself to tell of the end of its object.

    @property
    def address(self) -> int:
        """Where the mapping starts in this process."""
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=1).data_ptr()

    def adopt(self, slot: int, descriptors: list[dict], copy: bool = False) -> list[torch.Tensor]:
        """Tensors over `slot` as the descriptors (absolute offsets) say. With `copy` they are private copies and the slot is
        given back before this returns. Raises ProtocolError for a descriptor that points outside the arena."""
        if not descriptors:
            self._release(slot)
            return []
        start = min([descriptor["offset"] for descriptor in descriptors])
        end = max([descriptor["offset"] + descriptor["nbytes"] for descriptor in descriptors])
        if start < 0 or end > self.size_bytes:
            raise ProtocolError(f"slot {slot} reaches from {start} to {end} in an arena of {self.size_bytes} bytes")
        region = memoryview(self._memory)[start:end]
        tensors = [_tensor(region, start, descriptor) for descriptor in descriptors]
        if copy:
            tensors = [tensor.clone() for tensor in tensors]
            self._release(slot)
            return tensors
        # torch.frombuffer keeps a reference to `region` in the storage, so `region` dies with the last view of the batch.
        lent = _Lent(region, self._take_back)
        lent.slot = slot
        self._lent.add(lent)
        return tensors

    def _take_back(self, lent: _Lent) -> None:
        self._lent.discard(lent)
        if os.getpid() == self._owner_pid:
            self._release(lent.slot)


class _Lent(weakref.ref):
    """Of the memory of a slot that tensors own. Cheaper than weakref.finalize: the training loop makes one for each batch."""

    __slots__ = ("slot",)
    __hash__ = object.__hash__  # A memory's hash is that of all its bytes.
    __eq__ = object.__eq__
    slot: int


def _tensor(region: memoryview, region_start: int, descriptor: dict) -> torch.Tensor:
    dtype = DTYPES.get(descriptor["dtype"])
    if dtype is None:
        raise ProtocolError(f"a tensor of type {descriptor['dtype']!r} cannot be in the arena")
    shape = descriptor["shape"]
    count = math.prod(shape)
    if count * dtype.itemsize != descriptor["nbytes"]:
        raise ProtocolError(f"{descriptor['nbytes']} bytes for a {descriptor['dtype']} tensor of shape {shape}")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    offset = descriptor["offset"] - region_start
    flat = torch.frombuffer(region, dtype=dtype, count=count, offset=offset)
    return flat if len(shape) == 1 else flat.view(shape)
