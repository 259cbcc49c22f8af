"""What a Dataset's code makes of a sample, for all samples at once: the values between which sample_code.py reads it."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from sluice.failures import NotNative
from sluice.lowered import name_of
from sluice.sample_frames import FrameRows, Locator, column_of, kind_of, require_numbered, values_of
from sluice.structure import travels_in_arena


@dataclass(frozen=True)
class Known:
    """One object for all samples."""

    value: Any


@dataclass(frozen=True)
class Column:
    """A plain value for each sample."""

    values: list


class Rows:
    """A tensor for each sample: the rows of one, which is no other's memory."""

    def __init__(self, tensor: torch.Tensor, are_arrays: bool = False) -> None:
        """`are_arrays`: to the data set's code they are numpy's."""
        self.tensor, self.are_arrays = tensor, are_arrays

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self.tensor.dtype == other.tensor.dtype and torch.equal(self.tensor, other.tensor)

    __hash__ = None  # type: ignore[assignment]

    @property
    def are_numbers(self) -> bool:
        """Whether each is a tensor of one int64, without dimensions."""
        return self.tensor.dim() == 1 and self.tensor.dtype is torch.int64 and not self.are_arrays


@dataclass(frozen=True)
class OpenFile:
    """Read from its beginning."""

    paths: list


@dataclass(frozen=True)
class Picture:
    """What PIL opens, with what it has become since then. `transforms`: which it has been given to."""

    paths: list
    is_rgb: bool = False
    transforms: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Several:
    """A tuple or list."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Named:
    """A dict with texts as keys."""

    items: dict[str, Value]


Value = Known | Column | Rows | OpenFile | Picture | Several | Named

_PYTHONS = frozenset((str, int, float, bool, type(None), bytes, type(pathlib.Path())))
NUMPYS_NUMBERS = frozenset(f"numpy.{name}" for name in "int8 int16 int32 int64 uint8 float32 float64 bool bool_".split())
NUMPYS_TEXT = "numpy.str_"
_ROWS = frozenset((tuple, list))
_MOST_ROWS_BYTES = 1 << 26


def is_plain(kind: type) -> bool:
    """Whether nothing that is done with its values depends on anything else, or changes anything."""
    return kind in _PYTHONS or name_of(kind) in NUMPYS_NUMBERS or name_of(kind) == NUMPYS_TEXT


def computed(function: Callable[..., Any], *operands: Value) -> Value:
    """A function of plain values that does nothing else, for each sample. Raises NotNative for other operands, and where it raises."""
    for operand in operands:
        if not isinstance(operand, (Known, Column)):
            raise NotNative(f"computes with {in_words(operand)}")
        kinds = set(map(type, operand.values)) if isinstance(operand, Column) else {type(operand.value)}
        if others := [kind for kind in kinds if not is_plain(kind)]:
            raise NotNative(f"computes with a {name_of(others[0])}")
    try:
        if all(isinstance(operand, Known) for operand in operands):
            return Known(function(*(operand.value for operand in operands if isinstance(operand, Known))))
        count = next(len(operand.values) for operand in operands if isinstance(operand, Column))
        return Column(list(map(function, *(operand.values if isinstance(operand, Column) else [operand.value] * count for operand in operands))))  # type: ignore[union-attr]
    except Exception as error:
        raise NotNative(f"raises {type(error).__name__} for some sample") from None


def item(base: Value, key: Value) -> Value:
    """base[key]. Raises NotNative where that may run other code than Python's, numpy's and torch's own, or raises."""
    if isinstance(base, Several) and isinstance(key, Known) and type(key.value) is int and -len(base.items) <= key.value < len(base.items):
        return base.items[key.value]
    if isinstance(key, Rows) and key.are_numbers and isinstance(base, Known) and _takes_tensors(base.value):
        key = Column(key.tensor.tolist())
    if isinstance(base, Named) and isinstance(key, Known) and type(key.value) is str and key.value in base.items:
        return base.items[key.value]
    if isinstance(base, Known) and kind_of(base.value) == "DataFrame" and isinstance(key, Known):
        return Known(column_of(base.value, key.value))
    try:
        if isinstance(base, Known) and isinstance(base.value, Locator) and isinstance(key, Several):
            match key.items:
                case [Column(values=keys), Known(value=name)]:
                    return Column(base.value.items_of(keys, name))
        if isinstance(base, Known) and isinstance(base.value, FrameRows) and isinstance(key, Known):
            return Column(base.value.column(key.value))
        if isinstance(base, Known) and isinstance(key, Known) and (_is_container(base.value) or type(base.value) is str):
            return Known(base.value[key.value])
        if isinstance(base, Known) and isinstance(key, Column):
            return _items(base.value, key.values)
        if isinstance(base, Column) and isinstance(key, Known) and set(map(type, base.values)) <= _ROWS | {dict}:
            return Column([row[key.value] for row in base.values])
    except NotNative:
        raise
    except Exception as error:
        raise NotNative(f"raises {type(error).__name__} for some sample") from None
    raise NotNative(f"takes an item of {in_words(base)}")


def _takes_tensors(value: Any) -> bool:
    """Whether a tensor of one number is a number to it."""
    return type(value) in _ROWS or type(value) in (range, torch.Tensor) or name_of(type(value)) == "numpy.ndarray"


def _is_container(value: Any) -> bool:
    return type(value) in _ROWS or type(value) in (dict, range)


def _items(container: Any, keys: list) -> Value:
    if not all(map(is_plain, set(map(type, keys)))):
        raise NotNative("takes items by other keys than plain ones")
    if isinstance(container, Locator):
        found = container.items(keys)
        return Known(found) if isinstance(found, FrameRows) else Column(found)
    if kind_of(container) == "Series":
        require_numbered(container)
        return Column(values_of(container, keys))
    if (type(container) in _ROWS or type(container) is range) and keys == list(range(len(keys))):
        if len(container) < len(keys):
            raise IndexError
        return Column(list(container[: len(keys)]))
    if _is_container(container):
        return Column([container[key] for key in keys])
    is_array = name_of(type(container)) == "numpy.ndarray"
    if is_array and container.ndim == 1:
        return Column(list(container[keys]))
    if is_array and container.dtype.isnative and container.dtype.kind in "iufb" and container.nbytes <= _MOST_ROWS_BYTES:
        return Rows(torch.from_numpy(container[keys]), are_arrays=True)
    if type(container) is torch.Tensor and container.dim() > 0 and travels_in_arena(container) and container.nbytes <= _MOST_ROWS_BYTES:
        return Rows(container[keys])
    raise NotNative(f"takes an item of a {name_of(type(container))}")


def unpacked(value: Value, count: int) -> Iterable[Value]:
    """So many values of one. Raises NotNative."""
    if isinstance(value, Several) and len(value.items) == count:
        return value.items
    if isinstance(value, Column) and set(map(type, value.values)) <= _ROWS and set(map(len, value.values)) == {count}:
        return [Column(list(column)) for column in zip(*value.values, strict=True)]
    if isinstance(value, Known) and type(value.value) in _ROWS and len(value.value) == count:
        return map(Known, value.value)
    raise NotNative(f"unpacks {in_words(value)}")


def paths_of(value: Value) -> list:
    """Of files that code opens by this. Raises NotNative."""
    if isinstance(value, OpenFile):
        return value.paths
    if isinstance(value, Column) and set(map(type, value.values)) == {str}:
        return value.values
    if isinstance(value, Column):
        named = computed(_path_of, value)
        assert isinstance(named, Column)
        return named.values
    raise NotNative(f"opens {in_words(value)}")


def _path_of(thing: Any) -> Any:
    path = os.fspath(thing)
    return str(path) if isinstance(path, str) else path  # numpy's are texts of a kind.


def in_words(value: Value) -> str:
    if isinstance(value, Known):
        return f"a {name_of(type(value.value))}"
    if isinstance(value, Column) and value.values:
        return f"a {name_of(type(value.values[0]))}"
    return {Column: "a value", Rows: "a tensor", OpenFile: "a file", Picture: "an image", Several: "several values", Named: "a dict"}[type(value)]
