"""Objects that pickle refuses or reads from a disk, and that another process can make anew as a fork would have them."""

from __future__ import annotations

import functools
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

from sluice.shipping.users_modules import SCRIPT

_LOCK, _REENTRANT_LOCK = type(threading.Lock()), type(threading.RLock())
_LEAST_MAPPED_BYTES = 64 << 10  # Smaller arrays are copied.
_WEAK = (weakref.WeakValueDictionary, weakref.WeakKeyDictionary, weakref.WeakSet)


def made_anew(obj: Any) -> tuple | None:
    """As __reduce__ returns it; None for all other objects, for a lock that is held, for weak references to what is still there, and for arrays
    over files of which other processes see other bytes."""
    kind = type(obj)
    if "numpy" in sys.modules and kind is sys.modules["numpy"].memmap:
        return _of_mapped_file(obj)
    if kind is _LOCK or kind is _REENTRANT_LOCK:
        return (threading.Lock if kind is _LOCK else threading.RLock, ()) if _is_free(obj) else None
    if kind in _WEAK:
        return (kind, ()) if not obj else None
    if kind is functools.cached_property:  # Until Python 3.12 it has a lock.
        return _cached_property, (obj.func, obj.attrname)
    if getattr(obj, "__module__", None) not in SCRIPT:
        return None
    if kind is functools._lru_cache_wrapper:  # cloudpickle would send its name alone.
        parameters = obj.cache_parameters()
        return _cached, (obj.__wrapped__, parameters["maxsize"], parameters["typed"])
    if kind is FunctionType and obj.__code__ is _DISPATCHER:
        # In two steps, as its functions may call it.
        return functools.singledispatch, (_of_any_kind,), (dict(obj.registry), vars(obj).get("__wrapped__"), obj.__name__), None, None, _register
    return None


def _of_mapped_file(array: Any) -> tuple | None:
    file = array
    while type(file.base) is type(array):  # A part of it, or in another shape.
        file = file.base
    is_mapped = isinstance(file.base, mmap.mmap) and file.mode == "r" and file.filename is not None
    if not is_mapped or array.nbytes < _LEAST_MAPPED_BYTES or not array.flags.c_contiguous:
        return None
    try:
        state = _state_of(str(file.filename))
    except OSError:  # It has no name any more.
        return None
    offset_bytes = file.offset + array.__array_interface__["data"][0] - file.__array_interface__["data"][0]
    return _mapped, (str(file.filename), state, array.dtype, offset_bytes, array.shape)


def _mapped(path: str, state: tuple[int, int], dtype: Any, offset_bytes: int, shape: tuple) -> Any:
    if _state_of(path) != state:
        raise OSError(f"{path} is another file here than in the script's process, or has changed")
    return sys.modules["numpy"].memmap(path, dtype, "r", offset_bytes, shape)


def _state_of(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def _is_free(lock: Any) -> bool:
    """Whether no thread holds it, this one included."""
    return "unlocked" in repr(lock)


def _cached(function: Callable, most: int | None, typed: bool) -> Callable:
    return functools.lru_cache(most, typed)(function)


def _cached_property(function: Callable, name: str | None) -> functools.cached_property:
    made = functools.cached_property(function)
    if name is not None:
        made.__set_name__(type(None), name)
    return made


def _of_any_kind(*_: Any) -> None:
    """In the place of a function that is not read yet."""


_DISPATCHER = functools.singledispatch(_of_any_kind).__code__  # type: ignore[attr-defined]


def _register(dispatcher: Any, state: tuple[dict[type, Callable], Callable | None, str]) -> None:
    functions, function, name = state
    for kind, each in functions.items():
        dispatcher.register(kind, each)
    if function is not None:
        functools.update_wrapper(dispatcher, function)
    dispatcher.__name__ = name
