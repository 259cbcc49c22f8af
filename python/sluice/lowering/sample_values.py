"""What a Dataset's code makes of a sample, for all samples at once: the values between which sample_code.py reads it."""

from __future__ import annotations

import functools
import operator
import os
import pathlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from sluice.lowering.lowered import name_of
from sluice.lowering.pictures import Picture
from sluice.lowering.sample_frames import FrameRows, Locator, column_of, kind_of, require_numbered, values_of
from sluice.lowering.tensor_steps import Over255
from sluice.shipping.failures import NotNative
from sluice.shipping.structure import travels_in_arena


@dataclass(frozen=True)
class Known:
    """One object for all samples."""

    value: Any


@dataclass(frozen=True)
class Column:
    """A plain value for each sample."""

    values: list


class Rows:
    """A tensor or array for each sample: rows of one, which are copied when they are asked for."""

    def __init__(self, container: Any, keys: list[int] | None = None, are_arrays: bool = False) -> None:
        """`keys`: of the samples' rows, if these are not the container's one after the other. `are_arrays`: to the data set's code they are numpy's."""
        self.container, self.keys, self.are_arrays = container, keys, are_arrays

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows) and self.tensor.dtype == other.tensor.dtype and torch.equal(self.tensor, other.tensor)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.container if self.keys is None else self.keys)

    @functools.cached_property
    def tensor(self) -> torch.Tensor:
        """All rows. Raises NotNative for more than a loader may copy."""
        if self.container[:1].nbytes * len(self) > _MOST_ROWS_BYTES:
            raise NotNative(f"takes {len(self):,} rows of a {name_of(type(self.container))}")
        rows = self.container if self.keys is None else self.container[self.keys]
        return torch.from_numpy(rows) if type(rows) is not torch.Tensor else rows

    @property
    def are_numbers(self) -> bool:
        """Whether each is a tensor of one int64, without dimensions."""
        return not self.are_arrays and self.container.ndim == 1 and self.container.dtype is torch.int64

    @property
    def are_bytes(self) -> bool:
        return self.container.dtype == (torch.uint8 if type(self.container) is torch.Tensor else "uint8")

    def as_arrays(self) -> Rows:
        """What numpy() gives for each."""
        return Rows(self.container, self.keys, True)

    def permuted(self, axes: tuple[int, ...]) -> Rows:
        """With the axes of each in this order."""
        order = (0, *(1 + axis for axis in axes))
        return Rows(self.container.permute(order) if type(self.container) is torch.Tensor else self.container.transpose(order), self.keys, self.are_arrays)

    def widened(self) -> Rows | None:
        """Whole numbers as int64. None of others."""
        return Rows(self.tensor.to(torch.int64), None, self.are_arrays) if not self.tensor.is_floating_point() else None


@dataclass(frozen=True)
class OpenFile:
    """Read from its beginning."""

    paths: list


@dataclass(frozen=True)
class Labels:
    """The class number of each sample, which native executors have beside its image."""


@dataclass
class Several:
    """A tuple, or a list that the code makes, and may add to. `may_grow`: nothing else has been made of it that would have to grow, too."""

    items: tuple[Value, ...] | list[Value]
    may_grow: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Named:
    """A dict with texts as keys."""

    items: dict[str, Value]


@dataclass(frozen=True)
class Joined:
    """A tensor of images in this order, which torch.stack or torch.cat makes along the first axis. `join`: the function."""

    pictures: tuple[Picture, ...]
    join: Callable[..., torch.Tensor]


Value = Known | Column | Rows | OpenFile | Picture | Joined | Labels | Several | Named

_PYTHONS = frozenset((str, int, float, bool, type(None), bytes, type(pathlib.Path())))
NUMPYS_NUMBERS = frozenset(f"numpy.{name}" for name in "int8 int16 int32 int64 uint8 float32 float64 bool bool_".split())
NUMPYS_TEXT = "numpy.str_"
_ROWS = frozenset((tuple, list))
_MOST_ROWS_BYTES = 1 << 26


def is_unchangeable(value: Value | None) -> bool:
    """Whether x += y makes another value, as x + y does."""
    kinds = set(map(type, value.values)) if isinstance(value, Column) else {type(value.value)} if isinstance(value, Known) else {type(value)}
    return kinds <= {int, float, str, tuple}


def is_image_or_plain(value: Value) -> bool:
    return isinstance(value, Picture) or is_unchangeable(value)


def is_plain(kind: type) -> bool:
    """Whether nothing that is done with its values depends on anything else, or changes anything."""
    return kind in _PYTHONS or name_of(kind) in NUMPYS_NUMBERS or name_of(kind) == NUMPYS_TEXT


def truth_of(value: Value) -> Value:
    """Whether Python takes it for true. Raises NotNative where a class's own code says that."""
    if isinstance(value, Several):
        return Known(bool(value.items))
    if not isinstance(value, Known) or is_plain(type(value.value)):
        return computed(bool, value)
    thing = value.value
    saying = next((kind for kind in type(thing).__mro__ if {"__bool__", "__len__"} & vars(kind).keys()), None)
    if saying is not None and saying.__module__ != "builtins":
        raise NotNative(f"asks a {name_of(type(thing))} whether it is true")
    return Known(saying is None or bool(thing))


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


def computed_or_joined(function: Callable[..., Any], left: Value, right: Value) -> Value:
    """The same; also [0.5] * 3, (image, label) + (index,), and image / 255."""
    match left, right:
        case Picture(), Known(value=int() | float() as divisor) if function is operator.truediv and type(divisor) in (int, float) and divisor == 255:
            return left.transformed(Over255())
        case Several(items=items), Several(items=others) if function is operator.add and type(items) is type(others):
            return Several([*items, *others] if isinstance(items, list) else (*items, *others))
        case Several(items=items), Known(value=int() as times) if function is operator.mul and 0 <= times * len(items) <= _MOST_TURNS:
            return Several(items * times)
    return computed(function, left, right)


def item(base: Value, key: Value) -> Value:
    """base[key]. Raises NotNative where that may run other code than Python's, numpy's and torch's own, or raises."""
    if isinstance(base, Several) and isinstance(key, Known) and type(key.value) is int and -len(base.items) <= key.value < len(base.items):
        return base.items[key.value]
    if isinstance(key, Rows) and key.are_numbers and isinstance(base, Known) and _takes_tensors(base.value):
        key = Column(key.tensor.tolist())
    match base, key:
        case Known(value=container), Several(items=(Column() as rows, Known(value=column))) if _has_rows(container) and container.ndim == 2:
            if column == slice(None):
                return item(base, rows)
            if type(column) is int and -container.shape[1] <= column < container.shape[1]:
                return item(Known(container[:, column]), rows)
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
        if isinstance(base, Column) and isinstance(key, Known) and set(map(type, base.values)) <= _ROWS | {dict, str}:
            return Column([row[key.value] for row in base.values])
    except NotNative:
        raise
    except Exception as error:
        raise NotNative(f"raises {type(error).__name__} for some sample") from None
    raise NotNative(f"takes an item of {in_words(base)}")


def _takes_tensors(value: Any) -> bool:
    """Whether a tensor of one number is a number to it."""
    return type(value) in _ROWS or type(value) is range or _has_rows(value)


def _has_rows(value: Any) -> bool:
    return type(value) is torch.Tensor or name_of(type(value)) == "numpy.ndarray"


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
    if is_array and container.ndim == 1 and not any(kind is bool or name_of(kind) in ("numpy.bool", "numpy.bool_") for kind in set(map(type, keys))):
        return Column(list(container[keys]))
    if (is_array and container.dtype.isnative and container.dtype.kind in "iufb") or (type(container) is torch.Tensor and container.dim() > 0 and travels_in_arena(container)):
        if not all(kind is int or name_of(kind) == "numpy.int64" for kind in set(map(type, keys))):
            raise NotNative("takes rows by other keys than plain ones")
        keys = list(map(int, keys))
        if max(keys) >= len(container) or min(keys) < -len(container):
            raise IndexError
        return Rows(container, keys, is_array)
    raise NotNative(f"takes an item of a {name_of(type(container))}")


_MOST_TURNS = 64  # Of a loop.


def repeated(value: Value) -> Iterable[Value]:
    """What a loop over it goes through. Raises NotNative where that differs from sample to sample."""
    if isinstance(value, Several) and len(value.items) <= _MOST_TURNS:
        return list(value.items)
    if isinstance(value, Known) and (type(value.value) in _ROWS or type(value.value) is range) and len(value.value) <= _MOST_TURNS:
        return map(Known, value.value)
    raise NotNative(f"loops over {in_words(value)}")


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
    return {Column: "a value", Rows: "a tensor", OpenFile: "a file", Picture: "an image", Joined: "a tensor of images", Labels: "a label", Several: "several values", Named: "a dict"}[type(value)]
