"""The values that the script has given to globals of its modules, as `config.SIZE = 64`: a forked worker sees them, a fresh interpreter would not.

Only modules of the user's and only data of little size: numbers, text, arrays, tensors, paths, and containers and namespaces of what can be pickled. They may
be attributes of a module's classes and of its objects, as `Config.SIZE = 64` and `config.train.size = 64`. Larger ones are only compared.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import functools
import importlib.metadata
import io
import itertools
import os
import pickle
import re
import sys
import sysconfig
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sized
from pathlib import Path, PurePath
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch

from sluice.signal_handlers import pass_on_of_a_handler

_KINDS = (bool, int, float, complex, str, bytes, type(None), dict, list, tuple, set, frozenset, argparse.Namespace, SimpleNamespace)
_VALUES = (PurePath, enum.Enum, range, re.Pattern, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, torch.dtype, torch.device, torch.Size)
_MOST_MEMBERS = 1000
_MOST_BYTES = 16 << 10  # Of one value that is sent,
_MOST_SUMMED_BYTES = 4 << 20  # of a larger array of which a sum is sent, which takes two milliseconds,
_MOST_SUMMED_IN_ALL_BYTES = 64 << 20  # and of all such arrays.
_MOST_VALUES = 10_000
_DEEPEST = 3  # An object in an object of a module.
_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_OWN = str(Path(__file__).resolve().parent)
_users: set[str] = set()   # The names of modules,
_others: set[str] = set()  # as far as it was asked of which kind they are.

_NOT_SENT = b"?"  # No pickle begins with it. The kind of the value and its length follow, and of an array a sum of its bytes.

# By module and name (a dotted one for attributes), pickled: a process that cannot read one still reads the others. b"": an object of another kind.
Values = dict[str, dict[str, bytes]]


class Differs(RuntimeError):
    """A value of the script's modules is another one here, and is not sent; the message says which."""


# What enter() has found to have a value in the process that sent it, and none here. A data set that needs it fails; one that makes it when it is first
# needed does not.
lacking: str | None = None


def capture() -> Values:
    """Those of this process."""
    found: Values = {}
    left, left_bytes = _MOST_VALUES, _MOST_SUMMED_IN_ALL_BYTES
    # Of thousands, most are known to be none of the user's: those are left out without a line of Python for each.
    for name in sorted(sys.modules.keys() - _others):
        module = sys.modules.get(name)
        if left > 0 and module is not None and is_of_the_user(name):
            found[name] = {}
            for place, key, value in itertools.islice(_members(name, module), left):
                is_summed = _is_array(value) and _MOST_BYTES // 2 < value.nbytes <= min(_MOST_SUMMED_BYTES, left_bytes)
                left_bytes -= value.nbytes if is_summed else 0
                if (pickled := _pickled(key, value, is_summed)) is not None:
                    found[name][f"{place}{key}"] = pickled
            left -= len(found[name])
    return found


def _members(name: str, module: ModuleType) -> Iterator[tuple[str, str, Any]]:
    """What the module holds, and its classes and objects: where it is ("", "Config."), its name there and itself."""
    waiting: deque[tuple[str, Any, int]] = deque([("", module, 0)])
    seen = set()
    while waiting:
        place, holder, depth = waiting.popleft()
        for key, value in list(vars(holder).items()):
            yield place, key, value
            if depth < _DEEPEST and id(value) not in seen and _holds_values(name, value):
                seen.add(id(value))
                waiting.append((f"{place}{key}.", value, depth + 1))


def _holds_values(name: str, value: Any) -> bool:
    """Whether it is a class of this module, or an object of a class of the user's."""
    if isinstance(value, type):
        return value.__module__ == name and not isinstance(value, enum.EnumMeta)
    kind = type(value)
    return kind.__dictoffset__ != 0 and not isinstance(value, (ModuleType, FunctionType, enum.Enum, *_KINDS)) and is_of_the_user(kind.__module__)


def enter(values: Values) -> None:
    """Gives them to the modules that this process has imported. A module, class or object of which the script has opened something stays as it
    was imported: it may say of itself that it is open, and is not here. Raises Differs."""
    global lacking
    lacking = None
    for name, pickled_values in values.items():
        places: dict[str, dict[str, bytes]] = {}
        for dotted, pickled in pickled_values.items():
            place, _, key = dotted.rpartition(".")
            places.setdefault(place, {})[key] = pickled
        for place, members in places.items():
            holder = _found(sys.modules.get(name), place)
            if holder is None:
                continue
            for key, pickled in members.items():
                _compare(f"{name}.{place}{'.' if place else ''}{key}", vars(holder).get(key), pickled)
            if not any(pickled == b"" and vars(holder).get(key) is None for key, pickled in members.items()):
                _enter(f"{name}.{place}".rstrip("."), holder, members)


def _compare(name: str, value: Any, pickled: bytes) -> None:
    """What is here with what has not been sent. A dict that has grown, or a value that is made when it is first needed, need not be missed."""
    global lacking
    if pickled == b"" or (pickled.startswith(_NOT_SENT) and pickled != _not_sent(value, b"sum" in pickled)):
        has_grown = isinstance(value, dict) and pickled.startswith(_NOT_SENT + b"dict")
        if value is None or has_grown or (isinstance(value, _KINDS) and _length(value) == 0):
            lacking = name
        elif pickled:
            raise Differs(f"{name} is a {pickled[len(_NOT_SENT) :].decode()} in the script's process, which is too large to travel, and a {type(value).__name__} here")


def _not_sent(value: Any, is_summed: bool = False) -> bytes:
    extent = f"{value.nbytes} bytes" if _is_array(value) else f"{_length(value)}"
    return _NOT_SENT + f"{type(value).__name__} of {extent}{f' (sum {zlib.crc32(_bytes_of(value)):08x})' if is_summed and _is_array(value) else ''}".encode()


def _length(value: Any) -> int:
    return len(value) if isinstance(value, _KINDS) and isinstance(value, Sized) else 1


def _is_array(value: Any) -> bool:
    """Whether it is an array of numpy's, or a tensor in memory, of plain numbers."""
    if type(value) is torch.Tensor:
        return value.device.type == "cpu" and value.layout is torch.strided and not value.requires_grad and not value.is_shared()
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def _bytes_of(array: Any) -> Any:
    return array.contiguous().view(-1).view(torch.uint8).numpy() if isinstance(array, torch.Tensor) else array.tobytes()


def _found(holder: Any, place: str) -> Any:
    """What the dotted name stands for here; None if nothing holds values there."""
    for key in filter(None, place.split(".")):
        holder = vars(holder).get(key) if hasattr(holder, "__dict__") else None
    return holder if hasattr(holder, "__dict__") else None


def _enter(name: str, holder: Any, members: dict[str, bytes]) -> None:
    global lacking
    for key, pickled in members.items():
        if pickled and not pickled.startswith(_NOT_SENT) and (key not in vars(holder) or _pickled(key, vars(holder)[key]) != pickled):
            try:
                value = pickle.loads(pickled)
            except Exception as error:
                # A function of the script's, which an executor's own program lacks: the data set's code may do without it, in silence.
                if isinstance(error, AttributeError) and f"on {sys.modules['__main__']!r}" in str(error):
                    raise Differs(f"{name}.{key} has something of the script's, which cannot be read here ({error})") from None
                lacking = f"{name}.{key}"
                continue
            if isinstance(holder, type):
                type.__setattr__(holder, key, value)
            else:
                vars(holder)[key] = value  # Whatever its __setattr__ would make of that.


def globals_within_reach(names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Those of these modules and their classes, and of what they import, as far as it is the user's; by their full names. Not those of the script."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in sys.modules or not is_of_the_user(name):
            continue
        seen.add(name)
        for key, value in list(vars(sys.modules[name]).items()):
            yield f"{name}.{key}", value
            if isinstance(value, ModuleType):
                waiting.append(value.__name__)
            elif isinstance(value, (type, FunctionType)):
                waiting.append(value.__module__)
            if isinstance(value, type) and value.__module__ == name:
                yield from ((f"{name}.{key}.{member}", inner) for member, inner in list(vars(value).items()))


def is_of_the_user(name: str) -> bool:
    """Whether the module of this name is, which has been imported. The script itself is none."""
    if name not in _users and name not in _others:
        (_users if _is_of_the_user(name, sys.modules.get(name)) else _others).add(name)
    return name in _users


def _is_of_the_user(name: str, module: Any) -> bool:
    file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
    if name in ("__main__", "__mp_main__") or not isinstance(file, str):
        return False
    if _INSTALLED.intersection(file.split(os.sep)) or file.startswith((*_STANDARD, _OWN)):
        return False
    folders = [folder for folder in sys.path if folder and file.startswith(folder.rstrip(os.sep) + os.sep)]
    return not any(name.partition(".")[0] in _installed_in(folder) for folder in folders)


@functools.lru_cache(maxsize=256)
def _installed_in(folder: str) -> frozenset[str]:
    """The packages and modules that pip has put into a folder of the path, as `pip install --target` does: by their names there."""
    names = set()
    for distribution in importlib.metadata.distributions(path=[folder]):
        files = (distribution.read_text("RECORD") or "").splitlines()
        names |= {line.partition("/")[0].partition(",")[0].partition(".")[0] for line in files}
    return frozenset(names)


class _Bounded(io.BytesIO):
    """As much of a pickle as one value may have."""

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > _MOST_BYTES:
            raise OverflowError
        return super().write(data)


class _Pickler(pickle.Pickler):
    """Of what says where it comes from. pickle would look for other functions in every module of the process, which takes long and wakes those
    that are imported when first used."""

    def reducer_override(self, obj: Any) -> Any:
        if callable(obj) and getattr(obj, "__module__", None) is None and not hasattr(obj, "__self__"):
            raise pickle.PicklingError
        return NotImplemented


def _pickled(key: str, value: Any, is_summed: bool = False) -> bytes | None:
    """None of what is none of the script's values. `is_summed`: an array too large to be sent, of which a sum is."""
    if key.startswith("__") or isinstance(value, (type, ModuleType, FunctionType)):
        return None
    if not isinstance(value, (*_KINDS, *_VALUES)) and not _is_array(value) and not _is_number_of_numpys(value):
        return b""
    try:
        if _is_array(value) and value.nbytes > _MOST_BYTES // 2:
            return _not_sent(value, is_summed)
        if isinstance(value, Sized) and len(value) > (_MOST_BYTES if isinstance(value, (str, bytes)) else _MOST_MEMBERS):
            return _not_sent(value)
        file = _Bounded()
        _Pickler(file).dump(value)
        return file.getvalue()
    except Exception as error:
        pass_on_of_a_handler(error)
        return _not_sent(value) if isinstance(value, Sized) else None


def _is_number_of_numpys(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.generic, numpy.dtype))
