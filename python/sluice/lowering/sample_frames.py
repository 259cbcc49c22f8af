"""What a Dataset's code takes from a pandas data frame, for all samples at once (sample_values.py). pandas is never imported from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sluice.lowering.lowered import name_of
from sluice.shipping.failures import NotNative

_KINDS = {f"pandas.{place}{kind}": kind for kind in ("DataFrame", "Series") for place in ("", f"core.{'frame' if kind == 'DataFrame' else 'series'}.")}


def kind_of(thing: Any) -> str:
    """DataFrame, Series, or nothing for other types."""
    return _KINDS.get(name_of(type(thing)), "")


@dataclass(frozen=True, eq=False)
class Locator:
    """A frame's or series' `iloc` or `loc`."""

    thing: Any
    by_place: bool

    def items(self, keys: list) -> list | FrameRows:
        """Of the rows with these keys. Raises NotNative."""
        if not self.by_place:
            require_numbered(self.thing)
        return FrameRows(self.thing, keys) if kind_of(self.thing) == "DataFrame" else values_of(self.thing, keys)

    def items_of(self, keys: list, column: Any) -> list:
        """Of the rows with these keys, one column. Raises NotNative."""
        if kind_of(self.thing) != "DataFrame" or type(column) not in (int, str) or (type(column) is int) != self.by_place:
            raise NotNative("takes an item of a pandas frame in another way")
        if self.by_place:
            return values_of(self.thing.iloc[:, column], keys)
        require_numbered(self.thing)
        return values_of(column_of(self.thing, column), keys)


@dataclass(frozen=True, eq=False)
class FrameRows:
    """A row of a frame for each sample."""

    frame: Any
    keys: list

    def column(self, name: Any) -> list:
        """Raises NotNative where pandas makes one type of all values of a row."""
        if not any(map(_is_of_objects, self.frame.dtypes)):
            raise NotNative("takes an item of a row of a pandas frame of numbers")
        return values_of(column_of(self.frame, name), self.keys)


def column_of(frame: Any, name: Any) -> Any:
    """Raises NotNative if there is none with that name, or more than one."""
    if type(name) is not str or list(frame.columns).count(name) != 1:
        raise NotNative("takes no column of a pandas frame by its name")
    return frame[name]


def require_numbered(thing: Any) -> None:
    """Raises NotNative unless its rows are called 0, 1, 2 and so on."""
    index = thing.index
    if name_of(type(index)).rpartition(".")[2] != "RangeIndex" or (index.start, index.step) != (0, 1):
        raise NotNative("takes rows of a pandas frame by their names")


def values_of(series: Any, keys: list) -> list:
    """Of a series, by place. Raises NotNative for other types than texts and numbers."""
    if not (_is_of_objects(series.dtype) or str(series.dtype) in ("int64", "float64", "bool")):
        raise NotNative(f"takes an item of a pandas column of {series.dtype}")
    values = series.tolist() if _is_of_objects(series.dtype) else list(series.to_numpy())
    return [values[key] for key in keys]


def _is_of_objects(dtype: Any) -> bool:
    """Texts and others that come as they are."""
    return dtype == object or str(dtype) in ("str", "string")
