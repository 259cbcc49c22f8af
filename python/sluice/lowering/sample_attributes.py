"""Attributes of the objects that a Dataset's code meets, without running code of any class (sample_code.py)."""

from __future__ import annotations

import pathlib
from enum import EnumMeta
from types import FunctionType, MethodType, ModuleType
from typing import Any

import torch

from sluice.lowering.sample_frames import Locator, column_of, kind_of
from sluice.shipping.failures import NotNative

# Of plain values: they depend on nothing else, and change nothing.
PURE_METHODS = {str: frozenset("strip lstrip rstrip replace lower upper split rsplit removeprefix removesuffix zfill format join".split()),
                type(pathlib.Path()): frozenset("joinpath with_suffix as_posix".split())}  # fmt: skip
_MISSING: Any = object()


class Unreadable(NotNative):
    """An attribute that only its class's own code tells."""


def attribute_of(thing: Any, name: str) -> Any:
    """thing.name; of a property the property itself. Raises Unreadable."""
    kind = type(thing)
    if isinstance(thing, ModuleType):
        return _or_refused(getattr(thing, name, _MISSING))
    if name in PURE_METHODS.get(kind, ()):
        return getattr(thing, name)
    if kind_of(thing):
        return _of_frame(thing, name)
    if isinstance(thing, EnumMeta):
        return _or_refused(thing.__members__.get(name, _MISSING))
    if kind is super:
        return _of_parent(thing, name)
    if kind is type:
        return _unbound(_defined(thing.__mro__, name))
    if kind.__getattribute__ is not object.__getattribute__:
        raise Unreadable("has its own way of attributes")
    defined = _defined(kind.__mro__, name)
    if type(defined) is property:
        return defined
    if hasattr(type(defined), "__set__"):
        raise Unreadable("")
    if name in getattr(thing, "__dict__", {}):
        return vars(thing)[name]
    if isinstance(thing, torch.nn.Module) and kind.__getattr__ is torch.nn.Module.__getattr__ and name in thing._modules:
        return thing._modules[name]
    return MethodType(defined, thing) if isinstance(defined, FunctionType) else _unbound(defined)


def _defined(kinds: Any, name: str) -> Any:
    return next((vars(kind)[name] for kind in kinds if name in vars(kind)), _MISSING)


def _unbound(defined: Any) -> Any:
    """What a class gives for it."""
    if isinstance(defined, staticmethod):
        return defined.__func__
    return _or_refused(defined if isinstance(defined, FunctionType) or not hasattr(type(defined), "__get__") else _MISSING)


def _of_parent(parent: Any, name: str) -> Any:
    kinds = parent.__self_class__.__mro__
    defined = _defined(kinds[kinds.index(parent.__thisclass__) + 1 :], name)
    return MethodType(defined, parent.__self__) if isinstance(defined, FunctionType) else _or_refused(_MISSING)


def _of_frame(thing: Any, name: str) -> Any:
    if name in ("iloc", "loc"):
        return Locator(thing, name == "iloc")
    if name == "values":
        return thing.values
    return _or_refused(_MISSING) if kind_of(thing) == "Series" or hasattr(type(thing), name) else column_of(thing, name)


def _or_refused(value: Any) -> Any:
    if value is _MISSING:
        raise Unreadable("")
    return value
