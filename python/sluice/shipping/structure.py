"""A batch as tensors plus structure. The tensors travel through the arena. The structure (dicts, lists, strings, named tuples ...) is a pickle in
which the place n stands for tensor n. The place (n, shape, strides, offset) is a view of tensor n: so a tensor keeps its strides, and those that share
memory share it again, as after torch's own way from a worker.

Only plain, dense CPU tensors of the listed types take the fast way. All others (subclasses, sparse tensors, tensors that require gradients) are pickled
whole, which is slower and always right.
"""

from __future__ import annotations

import io
import mmap
import pickle
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, cast, final

import torch

from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.shipping.own_code import PickleReader

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
        and not value.is_nested
    )


# The number of a carried tensor; shape, strides and offset of a view of it, in elements. Without an offset it is a copy with these strides.
_View = tuple[int, tuple[int, ...], tuple[int, ...], "int | None"]
_Place = int | _View
_MOST_GAPS = 2  # How many times the elements of some tensors the memory may hold that is carried for them.


@final
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


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether shape and bytes say all of it: contiguous, and no dimension of length 1 has a stride of its own."""
    if not tensor.is_contiguous():
        return False
    if 1 not in tensor.shape:
        return True
    stride = 1
    for size, found in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if found != stride:
            return False
        stride *= size
    return True


def _is_whole(value: torch.Tensor | Stack) -> bool:
    return type(value) is Stack or is_plain(value)


def _views(tensors: list[torch.Tensor | Stack]) -> tuple[list[torch.Tensor | Stack], list[_Place]]:
    """What has to be carried for `tensors`, and the place of each. Plain ones that share no memory are carried as they are, with their numbers
    as places."""
    of_memory: dict[Any, list[int]] = {}
    for number, tensor in enumerate(tensors):
        memory = ("alone", number) if type(tensor) is Stack or tensor.numel() == 0 else (tensor.untyped_storage().data_ptr(), tensor.dtype)
        of_memory.setdefault(memory, []).append(number)
    if len(of_memory) == len(tensors) and all(map(_is_whole, tensors)):
        return tensors, list(range(len(tensors)))
    carried: list[torch.Tensor | Stack] = []
    places: list[_Place] = [0] * len(tensors)
    for members in of_memory.values():
        for group in _overlapping(tensors, members):
            _carry_group(tensors, group, carried, places)
    return carried, places


def _overlapping(tensors: list[Any], members: list[int]) -> list[list[int]]:
    """Divides tensors of one memory so that none overlaps one of another group."""
    if len(members) == 1:
        return [members]
    groups: list[list[int]] = []
    end = 0
    for number in sorted(members, key=lambda number: tensors[number].storage_offset()):
        if not groups or tensors[number].storage_offset() >= end:
            groups.append([])
        groups[-1].append(number)
        end = max(end, tensors[number].storage_offset() + _reach(tensors[number]))
    return groups


def _carry_group(tensors: list[Any], group: list[int], carried: list[Any], places: list[_Place]) -> None:
    """Adds to `carried` and `places` what these tensors, which overlap, need: the part of the memory that they use. A part that is mostly gaps is not
    carried: then each comes by itself."""
    if len(group) == 1 and _is_whole(tensors[group[0]]):
        places[group[0]] = len(carried)
        carried.append(tensors[group[0]])
        return
    start = tensors[group[0]].storage_offset()
    end = max(tensors[number].storage_offset() + _reach(tensors[number]) for number in group)
    has_gaps = end - start > _MOST_GAPS * sum(tensors[number].numel() for number in group)
    for number in group:
        tensor = tensors[number]
        places[number] = (len(carried), tuple(tensor.shape), tensor.stride(), None if has_gaps else tensor.storage_offset() - start)
        if has_gaps:
            carried.append(tensor)
    if not has_gaps:
        carried.append(tensors[group[0]].as_strided((end - start,), (1,), start))


def _reach(tensor: torch.Tensor) -> int:
    """How many elements lie between the first and the last one of `tensor` in memory, these included."""
    return 0 if tensor.numel() == 0 else 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


class _Carrying:
    """A pickler's part that leaves the tensors out.

    It reduces them. A persistent id would do, too, but is asked for before everything else: a call of Python for each number in a batch's lists, which
    takes 5 to 20 times as long as pickling them."""

    def __init__(self, file: io.BytesIO, places: list[_Place] | None = None) -> None:
        """`places`: instead of their numbers, of the tensors in the order in which they are met."""
        # multiprocessing's, so torch's: what objects make of the protocol shows. By version 5 numpy's read-only arrays stay read-only.
        super().__init__(file, pickle.DEFAULT_PROTOCOL)  # type: ignore[call-arg]
        self.tensors: list[torch.Tensor | Stack] = []
        self._places = places

    def reducer_override(self, obj: Any) -> Any:
        """The same tensor twice in a batch comes here once and stays one tensor, as it would through pickle."""
        if not _is_carried(obj):
            return self._reduce_otherwise(obj)
        number = len(self.tensors)
        self.tensors.append(obj)
        return carried_tensor, (number if self._places is None else self._places[number],)

    def _reduce_otherwise(self, obj: Any) -> Any:
        """What the pickler does on its own."""
        return NotImplemented


def carried_tensor(place: Any) -> torch.Tensor:
    """What a structure calls for each of its tensors. The reader of structures has its own in the place of this."""
    raise pickle.UnpicklingError(f"tensor {place} has travelled beside this pickle")


class _Packer(_Carrying, _BasePickler):
    def _reduce_otherwise(self, obj: Any) -> Any:
        return _reduce_of_base(self, obj)


_reduce_of_base = getattr(_BasePickler, "reducer_override", _Carrying._reduce_otherwise)


class _PackerAtHome(_Carrying, pickle.Pickler):
    """For this process, which knows all classes by their names."""


class _PackerInFork(_Carrying, ForkingPickler):
    """For the process that has forked this one: what torch and multiprocessing hand over in their own way comes as from a worker of torch's."""


_Kind = type[_Packer | _PackerAtHome | _PackerInFork]


_NAME_OF_CARRIED = (__name__, carried_tensor.__name__)


class _Unpacker(PickleReader):
    def __init__(self, structure: bytes, tensors: list[torch.Tensor]) -> None:
        super().__init__(io.BytesIO(structure))
        self._tensors = tensors
        self._views: dict[_View, torch.Tensor] = {}

    def find_class(self, module: str, name: str) -> Any:
        return self._carried if (module, name) == _NAME_OF_CARRIED else super().find_class(module, name)

    def _carried(self, place: Any) -> torch.Tensor:
        if type(place) is int:
            return self._tensors[place]
        if place not in self._views:
            number, shape, strides, offset = place
            carried = self._tensors[number]
            if offset is None:
                self._views[place] = torch.empty_strided(shape, strides, dtype=carried.dtype).copy_(carried)
            else:
                self._views[place] = carried.as_strided(shape, strides, carried.storage_offset() + offset)
        return self._views[place]


def pack(batch: Any) -> tuple[list[torch.Tensor | Stack], bytes]:
    """The batch's tensors and its pickled structure; that of a list of different tensors is empty, as with a native pipeline. Raises whatever
    pickling a user's object raises."""
    return _packed(batch, _Packer)


def pack_for_a_fork(batch: Any) -> tuple[list[torch.Tensor | Stack], bytes]:
    """As `pack`, in a fork of the process that unpacks it."""
    return _packed(batch, _PackerInFork)


def _packed(batch: Any, kind: _Kind) -> tuple[list[torch.Tensor | Stack], bytes]:
    if type(batch) is list and all(map(_is_carried, batch)) and len(set(map(id, batch))) == len(batch):
        tensors, places = _views(batch)
        if places == list(range(len(batch))):
            return tensors, b""
    packer, structure = _dumped(batch, kind)
    tensors, places = _views(packer.tensors)
    return tensors, structure if places == list(range(len(tensors))) else _dumped(batch, kind, places)[1]


def detached(batch: Any) -> Any:
    """A copy that shares no memory and no object with the data set that has made the batch, as after torch's own way from a worker. The batch
    itself if it cannot be pickled: torch's workers could not hand it over at all."""
    try:
        tensors, structure = _packed(batch, _PackerAtHome)
        return unpack(structure, [cast(torch.Tensor, tensor).clone() for tensor in tensors])
    except Exception as error:
        pass_on_of_a_handler(error)
        return batch


def _dumped(batch: Any, kind: _Kind, places: list[_Place] | None = None) -> tuple[_Carrying, bytes]:
    file = io.BytesIO()
    packer = kind(file, places)
    packer.dump(batch)
    return packer, file.getvalue()


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


def write(tensors: list[torch.Tensor | Stack], descriptors: list[dict], memory: mmap.mmap, start: int) -> list[dict]:
    """Into the slot that starts there, where the descriptors say. The descriptors with offsets in the whole memory."""
    for tensor, descriptor in zip(tensors, descriptors, strict=True):
        if tensor.numel() == 0:
            continue
        target = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=start + descriptor["offset"]).view(tensor.shape)
        if type(tensor) is Stack:
            tensor.write(target)
        else:
            target.copy_(tensor)
    return [{**descriptor, "offset": start + descriptor["offset"]} for descriptor in descriptors]
