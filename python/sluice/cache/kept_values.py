"""The results of functions as bytes, for a cache (docs/designs/cache.md). Reading them runs no code, whatever they are: no pickle is in them.

A value is a tag and what belongs to it, little-endian: `N T F` for None, True, False; `I` an integer, `D` a float, `S` a text, `B` bytes; `L U M` a list, a tuple,
a dictionary; `A a X` an array and a scalar of numpy, a tensor of torch. Types, shapes and strides come back as they were: the last bits of a sum may depend on
how its summands lie in memory. Memory that two tensors of a result share comes back as two.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Iterator
from typing import Any

import torch

from sluice.shipping.structure import DTYPE_NAMES, DTYPES, travels_in_arena

MOST_BYTES = 256 << 20
_MARK = b"sluice 1"
_MOST_DEPTH = 32
_MOST_VALUES = 1 << 20
_MOST_GAPS = 8  # How many times its elements an array's memory may hold.
_ALIGNMENT = 16
_KINDS = "biufcSUmM"  # Of numpy's types: those whose bytes are all that they are.
_SINGLE: dict[Any, bytes] = {None: b"N", True: b"T", False: b"F"}


class NotKept(Exception):
    """A value that cannot be kept; the message says what of it."""


class Damaged(Exception):
    """Bytes that are no value."""


def encode(value: Any) -> bytes:
    """Raises NotKept."""
    writer = _Writer()
    writer.add(value, 0)
    return b"".join(writer.parts)


def decode(data: bytes) -> Any:
    """A new value, which shares no memory with another. Raises Damaged."""
    try:
        reader = _Reader(data)
        value = reader.value(0)
    except Exception as error:  # Whatever numpy and torch say to numbers that no writer has written.
        raise Damaged(str(error)) from None
    if reader.place != len(data):
        raise Damaged("more bytes than the value has")
    return value


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = [_MARK]
        self._bytes = len(_MARK)
        self._values = 0

    def _put(self, part: bytes) -> None:
        self.parts.append(part)
        self._bytes += len(part)
        if self._bytes > MOST_BYTES:
            raise NotKept(f"more than {MOST_BYTES >> 20} MiB")

    def _sized(self, tag: bytes, data: bytes) -> None:
        self._put(tag + struct.pack("<I", len(data)))
        self._put(data)

    def add(self, value: Any, depth: int) -> None:
        self._values += 1
        if depth > _MOST_DEPTH or self._values > _MOST_VALUES:
            raise NotKept("too many values within one another" if depth > _MOST_DEPTH else f"more than {_MOST_VALUES} values")
        kind = type(value)
        if value is None or kind is bool:
            self._put(_SINGLE[value])
        elif kind is int:
            self._sized(b"I", value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True))
        elif kind is float:
            self._put(b"D" + struct.pack("<d", value))
        elif kind is str:
            self._sized(b"S", value.encode("utf-8", "surrogatepass"))
        elif kind is bytes:
            self._sized(b"B", value)
        elif kind is list or kind is tuple:
            self._several(b"L" if kind is list else b"U", len(value), iter(value), depth)
        elif kind is dict:
            self._several(b"M", len(value), (part for pair in value.items() for part in pair), depth)
        elif kind is torch.Tensor:
            self._tensor(value)
        else:
            self._array(value)

    def _several(self, tag: bytes, count: int, values: Iterator[Any], depth: int) -> None:
        self._put(tag + struct.pack("<I", count))
        for value in values:
            self.add(value, depth + 1)

    def _tensor(self, tensor: torch.Tensor) -> None:
        if not travels_in_arena(tensor):
            raise NotKept(f"a tensor that is not a plain one of the CPU ({tensor.dtype}, {tensor.device}, {tensor.layout})")
        element_bytes = tensor.element_size()
        strides = [element_bytes * stride for stride in tensor.stride()]
        _require_plain(tensor.shape, strides, element_bytes)
        least = tensor[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)]
        flat = least.contiguous().reshape(-1)
        self._header(b"X", DTYPE_NAMES[tensor.dtype], tensor.shape, strides)
        self._put(ctypes.string_at(flat.data_ptr(), flat.numel() * element_bytes) if flat.numel() else b"")

    def _array(self, value: Any) -> None:
        numpy: Any = sys.modules.get("numpy")
        is_array = numpy is not None and type(value) is numpy.ndarray
        if not is_array and (numpy is None or not isinstance(value, numpy.generic) or type(numpy.empty((), value.dtype)[()]) is not type(value)):
            raise NotKept(f"an object of class {type(value).__qualname__}")
        if value.dtype.kind not in _KINDS:
            raise NotKept(f"an array of {value.dtype}")
        array = numpy.asarray(value)
        _require_plain(array.shape, array.strides, array.itemsize)
        least = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]
        self._header(b"A" if is_array else b"a", value.dtype.str, array.shape, array.strides)
        self._put(least.tobytes())

    def _header(self, tag: bytes, dtype: str, shape: Any, strides: Any) -> None:
        """The elements follow, in C order, at a multiple of the alignment."""
        name = dtype.encode()
        head = tag + struct.pack(f"<BB{2 * len(shape)}q", len(name), len(shape), *shape, *strides) + name
        self._put(head + bytes(-(self._bytes + len(head)) % _ALIGNMENT))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = bytearray(data)  # torch would warn of memory that cannot be written to.
        self._values = 0
        self.place = 0
        if self._take(len(_MARK)) != _MARK:
            raise ValueError("another form")

    def _take(self, count: int) -> bytes:
        end = self.place + count
        if end > len(self._data):
            raise ValueError("it ends too early")
        taken = bytes(self._data[self.place : end])
        self.place = end
        return taken

    def _numbers(self, form: str) -> tuple:
        return struct.unpack(form, self._take(struct.calcsize(form)))

    def value(self, depth: int) -> Any:
        self._values += 1
        if depth > _MOST_DEPTH or self._values > _MOST_VALUES:
            raise ValueError("too much")
        tag = self._take(1)
        if tag in b"NTF":
            return {b"N": None, b"T": True, b"F": False}[tag]
        if tag == b"D":
            return self._numbers("<d")[0]
        if tag in b"AaX":
            return self._array(tag)
        (count,) = self._numbers("<I")
        if tag in b"ISB":
            data = self._take(count)
            return data if tag == b"B" else data.decode("utf-8", "surrogatepass") if tag == b"S" else int.from_bytes(data, "little", signed=True)
        if tag in b"LU":
            values = [self.value(depth + 1) for _ in range(count)]
            return values if tag == b"L" else tuple(values)
        if tag == b"M":
            return {self.value(depth + 1): self.value(depth + 1) for _ in range(count)}
        raise ValueError("a tag that is none")

    def _array(self, tag: bytes) -> Any:
        name_bytes, dimensions = self._numbers("<BB")
        numbers = self._numbers(f"<{2 * dimensions}q")
        shape, strides = numbers[:dimensions], numbers[dimensions:]
        dtype = self._take(name_bytes).decode()
        self._take(-self.place % _ALIGNMENT)
        return self._tensor(dtype, shape, strides) if tag == b"X" else self._numpy(dtype, shape, strides, tag == b"a")

    def _elements(self, shape: tuple[int, ...], strides: tuple[int, ...], element_bytes: int) -> tuple[list[int], int, int]:
        """The shape without what is repeated, the number of elements and their place."""
        _require_plain(shape, strides, element_bytes)
        least = [min(size, 1) if stride == 0 else size for size, stride in zip(shape, strides, strict=True)]
        count, place = math.prod(least), self.place
        if count < 0 or count * element_bytes > len(self._data) - place:
            raise ValueError("it ends too early")
        self.place += count * element_bytes
        return least, count, place

    def _tensor(self, name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
        dtype = DTYPES[name]
        least, count, place = self._elements(shape, strides, dtype.itemsize)
        steps = tuple(stride // dtype.itemsize for stride in strides)
        made = torch.empty_strided(least, [step or 1 for step in steps], dtype=dtype)
        if count:
            made.copy_(torch.frombuffer(self._data, dtype=dtype, count=count, offset=place).view(least))
        return made if 0 not in steps else made.as_strided(shape, steps)

    def _numpy(self, name: str, shape: tuple[int, ...], strides: tuple[int, ...], is_scalar: bool) -> Any:
        import numpy

        dtype = numpy.dtype(name)
        if dtype.kind not in _KINDS:
            raise ValueError("a type that is not kept")
        least, count, place = self._elements(shape, strides, dtype.itemsize)
        elements = numpy.frombuffer(self._data, dtype, count, place).reshape(least) if count * dtype.itemsize else numpy.zeros(least, dtype)
        if is_scalar:
            return elements[()]
        steps = [abs(stride) or dtype.itemsize for stride in strides]
        memory = numpy.empty(max(1, _span(least, steps, dtype.itemsize)), numpy.uint8)
        made = numpy.ndarray(least, dtype, memory, 0, steps)
        backwards = tuple(slice(None, None, -1) if stride < 0 else slice(None) for stride in strides)
        made = made[backwards] if any(stride < 0 for stride in strides) else made
        made[...] = elements
        if 0 not in strides:
            return made
        return numpy.lib.stride_tricks.as_strided(made, shape, strides, writeable=tuple(least) == shape)


def _span(shape: Any, strides: Any, element_bytes: int) -> int:
    """From the first byte to behind the last one."""
    if 0 in shape:
        return 0
    return element_bytes + sum((size - 1) * abs(stride) for size, stride in zip(shape, strides, strict=True))


def _require_plain(shape: Any, strides: Any, element_bytes: int) -> None:
    """Raises NotKept for elements that overlap otherwise than by being repeated, or lie far apart; a ValueError for what is no shape."""
    if any(size < 0 for size in shape):
        raise ValueError("a negative size")
    axes = sorted((abs(stride), size) for stride, size in zip(strides, shape, strict=True) if size > 1 and stride != 0)
    end = element_bytes
    for stride, size in axes:
        if stride < end:
            raise NotKept("an array whose elements overlap")
        end += (size - 1) * stride
    if end > _MOST_GAPS * element_bytes * math.prod([size for _, size in axes]) + 4096 and 0 not in shape:
        raise NotKept("a few elements of a much larger array (return a copy of them)")
