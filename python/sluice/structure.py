"""A batch as tensors plus structure: the tensors travel through the arena, the structure (dicts, lists, strings,
named tuples ...) as a pickle in which tensor n is the persistent id n.

Only plain, dense CPU tensors of the listed types take the fast way; anything else (subclasses, sparse tensors, tensors that
require gradients, complex numbers) is pickled whole, which is slower and always right.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import torch

try:  # Classes of the user's __main__ come back as themselves only through cloudpickle's class tracking.
    from cloudpickle import Pickler as _BasePickler
except ImportError:  # pragma: no cover - cloudpickle is a declared dependency
    from pickle import Pickler as _BasePickler

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool")
}
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


class _Packer(_BasePickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[torch.Tensor] = []
        self._numbers: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> int | None:
        if not travels_in_arena(obj):
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


def pack(batch: Any) -> tuple[list[torch.Tensor], bytes]:
    """The batch's tensors and its pickled structure. Raises whatever pickling a user's object raises."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(batch)
    return packer.tensors, file.getvalue()


def unpack(structure: bytes, tensors: list[torch.Tensor]) -> Any:
    """The batch again, holding exactly the tensors given."""
    return _Unpacker(structure, tensors).load()


def layout(tensors: list[torch.Tensor]) -> tuple[list[dict], int]:
    """Descriptors {dtype, shape, offset, nbytes} of the tensors packed one after the other, offsets from the start of a
    slot, each aligned to 64 bytes; and the bytes of the slot."""
    descriptors, end = [], 0
    for tensor in tensors:
        nbytes = tensor.numel() * tensor.element_size()
        descriptors.append({"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "offset": end, "nbytes": nbytes})
        end += -(-nbytes // TENSOR_ALIGNMENT_BYTES) * TENSOR_ALIGNMENT_BYTES
    return descriptors, end
