"""Where forked processes put their batches: slots of one memory that they share with the process that has forked them.

torch's way is a shared file and a connection for each tensor. That takes longer than many a batch, and the kernel clears and maps the pages of each
file anew. Slots are used again.
"""

from __future__ import annotations

import mmap
import os
from collections import deque
from dataclasses import dataclass
from typing import Any

from torch.utils.data._utils.collate import collate_tensor_fn

from sluice.feeder.answer import Answer
from sluice.feeder.arena import Arena
from sluice.shipping.structure import Stack, layout, pack_for_a_fork, unpack, write

# Of the address space: a page takes memory from its first use on.
_SLOT_BYTES = 256 << 20
# For the batches that a loop has at a time, beside those that are made. Of more it gets copies.
_SLOTS_OF_THE_LOOP = 4


@dataclass(frozen=True)
class Packed:
    """A batch whose tensors lie in a slot. `tensors`: as `layout` describes them, with offsets in the whole memory."""

    tensors: list[dict]
    structure: bytes


class ForkSlots:
    """Made before the forks, which inherit it. The parent lends each request a slot, and a fork packs the batch into it. Not thread-safe, but tensors
    may die in any thread."""

    def __init__(self, most_batches: int) -> None:
        """`most_batches`: so many requests have slots at a time. Raises OSError where the system has no such memory, or a limit forbids it."""
        count = most_batches + _SLOTS_OF_THE_LOOP
        self._most_batches = most_batches
        self._lent = 0
        self._free = deque(reversed(range(count)))
        descriptor = os.memfd_create("sluice-forks", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, count * _SLOT_BYTES)
            self._arena = Arena(descriptor, count * _SLOT_BYTES, self._free.append)
        finally:
            os.close(descriptor)

    def lend(self) -> int:
        """A slot for a request: the one that was used last, whose pages are there. REQUIRES: fewer than `most_batches` are lent."""
        self._lent += 1
        return self._free.pop()

    def take_back(self, slot: int, packed: Packed | None) -> Answer | None:
        """A fork has answered the request that has `slot`: the batch in it, which keeps the slot while its tensors live. It becomes a copy where
        the loop holds so many batches that requests would lack slots."""
        self._lent -= 1
        if packed is None:
            self._free.append(slot)
            return None
        is_short = len(self._free) + self._lent < self._most_batches
        answer = Answer({"type": "batch", "slot": slot, "tensors": packed.tensors, "copy": is_short}, packed.structure, self._arena)
        answer.copy_out()
        return answer

    def pack(self, batch: Any, slot: int) -> Packed | Any:
        """In a fork. A batch that is larger than a slot is itself again, its tensors for torch's way. Raises whatever pickling a user's object raises."""
        tensors, structure = pack_for_a_fork(batch)
        descriptors, nbytes = layout(tensors)
        if nbytes > _SLOT_BYTES:
            # As torch's workers stack: the tensor is in shared memory at once, where it would have to be copied to otherwise.
            return unpack(structure, [collate_tensor_fn(tensor.tensors) if type(tensor) is Stack else tensor for tensor in tensors])
        return Packed(write(tensors, descriptors, self._arena.memory, slot * _SLOT_BYTES), structure)

    def trim(self) -> None:
        """Gives the memory of free slots back to the kernel: forks that wait for the next epoch keep none."""
        for slot in list(self._free):
            self._arena.memory.madvise(mmap.MADV_REMOVE, slot * _SLOT_BYTES, _SLOT_BYTES)
