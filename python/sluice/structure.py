"""A batch as tensors plus structure. The tensors travel through the arena. The structure (dicts, lists, strings, named tuples ...) is a pickle in
which tensor n is the persistent id n.

Only plain, dense CPU tensors of the listed types take the fast way. All others (subclasses, sparse tensors, tensors that require gradients) are pickled
whole, which is slower and always right.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import torch

try:  # Classes of the user's __main__ come back as themselves only through cloudpickle's class tracking.
    from cloudpickle import Pickler as _BasePickler
except ImportError:  # pragma: no cover - cloudpickle is a declared dependency
    from pickle import Pickler as _BasePickler

_PICKLED_BY_TORCH = "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 bool complex64 complex128".split()
# torch pickles tensors of these types, and fails to read them again.
_NOT_PICKLED_BY_TORCH = "uint16 uint32 uint64 complex32 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu".split()
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _PICKLED_BY_TORCH + _NOT_PICKLED_BY_TORCH if hasattr(torch, name)}
NOT_PICKLED_BY_TORCH = {DTYPES[name] for name in _NOT_PICKLED_BY_TORCH if name in DTYPES}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
TENSOR_ALIGNMENT_BYTES = 64


def travels_in_arena(value: object) -> bool:
    """Whether `value` is a tensor that the arena can carry without losing anything."""
    return (
        type(value) is torch.Tensor
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and value.dtype in DTYPE_NAMES
        and not value.requires_grad
        and not value.is_conj()
        and not value.is_neg()
        and not value.is_quantized
    )


@dataclass(frozen=True)
class Stack:
    """The tensor that torch.stack makes of `tensors`, not made yet: its place is the batch's slot. Only within a batch that goes
    into an arena."""

    tensors: list[torch.Tensor]

    @property
    def dtype(self) -> torch.dtype:
        return self.tensors[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.tensors), *self.tensors[0].shape)

    def numel(self) -> int:
        return len(self.tensors) * self.tensors[0].numel()

    def element_size(self) -> int:
        return self.tensors[0].element_size()

    def write(self, target: torch.Tensor) -> None:
        torch.stack(self.tensors, 0, out=target)


def _is_carried(value: object) -> bool:
    return type(value) is Stack or travels_in_arena(value)


class _Packer(_BasePickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[torch.Tensor | Stack] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not _is_carried(obj):
            return None
        # The same tensor twice in a batch stays one tensor, as it would through pickle.
        if id(obj) not in self._numbers:
            self._numbers[id(obj)] = len(self.tensors)
            self.tensors.append(obj)
        return self._numbers[id(obj)]


class _Unpacker(pickle.Unpickler):
    def __init__(self, structure: bytes, tensors: list[torch.Tensor]) -> None:
        super().__init__(io.BytesIO(structure))
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> torch.Tensor:
        return self._tensors[pid]


def pack(batch: Any) -> tuple[list[torch.Tensor | Stack], bytes]:
    """The batch's tensors and its pickled structure; that of a list of different tensors is empty, as with a native pipeline. Raises whatever
    pickling a user's object raises."""
    if type(batch) is list and all(map(_is_carried, batch)) and len(set(map(id, batch))) == len(batch):
        return batch, b""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(batch)
    return packer.tensors, file.getvalue()


def unpack(structure: bytes, tensors: list[torch.Tensor]) -> Any:
    """The batch again, holding exactly the tensors given."""
    if not structure:
        return tensors
    return _Unpacker(structure, tensors).load()


def layout(tensors: list[torch.Tensor | Stack]) -> tuple[list[dict], int]:
    """Descriptors {dtype, shape, offset, nbytes} of the tensors packed one after the other, and the bytes of the slot. Offsets are from the start of
    a slot, each aligned to 64 bytes."""
    descriptors, end = [], 0
    for tensor in tensors:
        nbytes = tensor.numel() * tensor.element_size()
        descriptors.append({"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "offset": end, "nbytes": nbytes})
        end += -(-nbytes // TENSOR_ALIGNMENT_BYTES) * TENSOR_ALIGNMENT_BYTES
    return descriptors, end
