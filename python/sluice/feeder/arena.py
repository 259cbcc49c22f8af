"""The client's end of the shared memory in which batches arrive.

A batch's tensors alias the feeder's memfd: no byte is copied in the trainer. The slot that holds them is given back when the
last tensor over it, including every view and every numpy array made from one, has died.

After a fork the child sees the same pages; only the parent gives slots back, so a child must copy a batch it wants to keep.

A feeder gives the slots of a connection that has ended to others. What this process has of them then becomes its own.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import weakref
from collections.abc import Callable

import torch

from sluice.base.notices import log
from sluice.shipping.framing import ProtocolError
from sluice.shipping.structure import DTYPES

_MAP_FIXED = 0x10
_MADV_POPULATE_WRITE = 23  # Since Linux 5.14.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Arena:
    """One mapping of a feeder's memfd, alive as long as any tensor in it. Thread-safe."""

    # At the process's end `os` may be gone before an arena or a batch is.
    _close = staticmethod(os.close)
    _process_id = staticmethod(os.getpid)

    def __init__(self, descriptor: int, size_bytes: int, release: Callable[[int], None]) -> None:
        """Maps `descriptor` (and leaves closing it to the caller). `release(slot)` is called once per slot, from whichever
        thread drops the last tensor, possibly inside the garbage collector: it must not take locks."""
        self.memory = mmap.mmap(descriptor, size_bytes)
        self._descriptor: int | None = os.dup(descriptor)
        self.size_bytes = size_bytes
        self._release = release
        self._owner_pid = self._process_id()
        self._held: dict[int, tuple[int, int]] = {}  # Where the slots lie that have come and were not given back.
        self._lent: set[_Lent] = set()  # A weak reference must live itself to tell of the end of its object.

    def __del__(self) -> None:
        self._close_descriptor()

    @property
    def address(self) -> int:
        """Where the mapping starts in this process."""
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=1).data_ptr()

    def hold(self, slot: int, descriptors: list[dict]) -> None:
        """The slot has come, with tensors as the descriptors (absolute offsets) say. Raises ProtocolError for a descriptor that
        points outside the arena."""
        start = min([descriptor["offset"] for descriptor in descriptors], default=0)
        end = max([descriptor["offset"] + descriptor["nbytes"] for descriptor in descriptors], default=0)
        if start < 0 or end > self.size_bytes:
            raise ProtocolError(f"slot {slot} reaches from {start} to {end} in an arena of {self.size_bytes} bytes")
        self._held[slot] = (start, end)

    def adopt(self, slot: int, descriptors: list[dict], copy: bool = False) -> list[torch.Tensor]:
        """Tensors over a slot that is held. With `copy` they are private copies and the slot is given back before this returns.
        Raises ProtocolError for a descriptor that no tensor can have."""
        if not descriptors:
            self.give_back(slot)
            return []
        start, end = self._held[slot]
        region = memoryview(self.memory)[start:end]
        tensors = [_tensor(region, start, descriptor) for descriptor in descriptors]
        if copy:
            tensors = [tensor.clone() for tensor in tensors]
            self.give_back(slot)
            return tensors
        # torch.frombuffer keeps a reference to `region` in the storage, so `region` dies with the last view of the batch.
        lent = _Lent(region, self._take_back)
        lent.slot = slot
        self._lent.add(lent)
        return tensors

    def give_back(self, slot: int) -> None:
        """The slot is not used any more. Takes no lock."""
        self._held.pop(slot, None)
        self._release(slot)

    def part(self) -> None:
        """From now on the feeder may write to all slots: those that are held become this process's own, with their bytes and at
        their addresses. To be called before the feeder can see that the connection ends."""
        if self._descriptor is None:
            return
        for start, end in self._held.copy().values():
            if end > start and not self._keep(start - start % mmap.PAGESIZE, -(-end // mmap.PAGESIZE) * mmap.PAGESIZE):
                log.warning("batches of a feeder that is gone could not be kept (%s): they may change", os.strerror(ctypes.get_errno()))
        self._close_descriptor()

    def _keep(self, start: int, end: int) -> bool:
        """Of whole pages. What the loop writes meanwhile is not lost: a private mapping shows the file's bytes until its first write."""
        address, size_bytes = self.address + start, end - start
        private = mmap.MAP_PRIVATE | _MAP_FIXED
        if _libc.mmap(address, size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, private, self._descriptor, start) != address:
            return False
        if _libc.madvise(address, size_bytes, _MADV_POPULATE_WRITE) != 0:
            pages = torch.frombuffer(self.memory, dtype=torch.uint8, count=size_bytes, offset=start)[:: mmap.PAGESIZE]
            pages.copy_(pages.clone())
        return True

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = getattr(self, "_descriptor", None), None
        if descriptor is not None:
            self._close(descriptor)

    def _take_back(self, lent: _Lent) -> None:
        self._lent.discard(lent)
        if self._process_id() == self._owner_pid:
            self.give_back(lent.slot)


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
