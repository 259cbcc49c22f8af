"""What the script has given to its modules, as `config.SIZE = 64`: a forked worker sees it, a fresh interpreter would not.

Only modules of the user's count. Data of little size travels: numbers, text, arrays, tensors, paths, transforms, and containers and namespaces of what can be
pickled. It may be attributes of a module's classes and of its objects, as `Config.SIZE = 64` and `config.train.size = 64`. Larger data is only compared.
Functions and classes of other modules travel by name; those of the script cannot (module_code.py).
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import enum
import functools
import io
import itertools
import marshal
import pickle
import re
import sys
import zlib
from collections import deque
from collections.abc import Iterator, Sized
from pathlib import PurePath
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import torch

from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.shipping.module_code import by_reference, is_code, is_of_the_script, words_of_code
from sluice.shipping.users_modules import is_of_the_user, users_modules

_KINDS = (bool, int, float, complex, str, bytes, type(None), dict, list, tuple, set, frozenset, argparse.Namespace, SimpleNamespace)
_VALUES = (PurePath, enum.Enum, range, re.Pattern, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, torch.dtype, torch.device, torch.Size)
_TRANSFORMS = ("torchvision.transforms.", "albumentations.")
_MOST_MEMBERS = 1000
_MOST_BYTES = 16 << 10  # Of one value that is sent,
_MOST_SUMMED_BYTES = 16 << 20  # of a larger one of which a sum is sent, which takes some ten milliseconds,
_MOST_SUMMED_IN_ALL_BYTES = 64 << 20  # and of all those.
_MEMBERS_AT_ONCE = 1000
_PLAIN = 2  # The last version of marshal's form that knows no references.
_SETS_HAVE_AN_ORDER = sys.version_info >= (3, 11)  # In marshal's form. Before, it depended on the process.
_MOST_VALUES = 10_000
_DEEPEST = 3  # An object in an object of a module.
_MISSING: Any = object()

# Of what is not sent, words about it: behind a byte with which no pickle begins.
_DATA = b"?"    # Its kind and length, and a sum if it has one.
_OBJECT = b"*"  # The kind of what is no data.
_CODE = b"!"
_SUM = "sum"

# By module and name (a dotted one for attributes), pickled or in words: a process that cannot read one still reads the others.
Values = dict[str, dict[str, bytes]]


class Differs(RuntimeError):
    """A value of the script's modules is another one here, and is not sent; the message says which."""


# What enter() has found to have a value in the process that sent it, and none here. A data set that needs it fails; one that makes it when it is first
# needed does not.
lacking: str | None = None


def capture() -> Values:
    """Those of this process."""
    found: Values = {}
    left, sums = _MOST_VALUES, _Sums(_MOST_SUMMED_IN_ALL_BYTES)
    for name, module in users_modules():
        if left > 0:
            members = itertools.islice(_members(name, module), left)
            found[name] = {place: sent for place, value in members if (sent := _sent(name, place, value, sums)) is not None}
            left -= len(found[name])
    return found


def _members(name: str, module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What the module holds, and its classes and objects: where it is ("size", "Config.size") and itself."""
    waiting: deque[tuple[str, Any, int]] = deque([("", module, 0)])
    seen = set()
    while waiting:
        place, holder, depth = waiting.popleft()
        for key, value in list(vars(holder).items()):
            yield f"{place}{key}", value
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
    for name, sent_values in values.items():
        places: dict[str, dict[str, bytes]] = {}
        for dotted, sent in sent_values.items():
            place, _, key = dotted.rpartition(".")
            places.setdefault(place, {})[key] = sent
        for place, members in places.items():
            holder = _found(sys.modules.get(name), place)
            if holder is None:
                continue
            here = {key: vars(holder).get(key, _MISSING) for key in members}
            for key, sent in members.items():
                if _is_words(sent):
                    _compare(name, f"{place}.{key}".lstrip("."), here[key], sent)
            if not any(sent.startswith(_OBJECT) and (here[key] is None or here[key] is _MISSING) for key, sent in members.items()):
                _enter(name, place, holder, members)


def _compare(name: str, place: str, value: Any, sent: bytes) -> None:
    """What is here with what has not been sent. What is made when it is first needed need not be missed: that is an object where there is none here, or data
    where there is less. Code is nothing of that kind, but the module's own may not ask for what it has no name for."""
    global lacking
    if value is not _MISSING and sent == _sent(name, place, value, _Sums(sys.maxsize) if f"({_SUM} ".encode() in sent else None):
        return
    has_grown = isinstance(value, dict) and sent.startswith(_DATA + b"dict")
    is_made_when_needed = value is None or type(value) is object or has_grown or (isinstance(value, _KINDS) and _length(value) == 0)
    if value is _MISSING or (is_made_when_needed and not sent.startswith(_CODE)):
        lacking = f"{name}.{place}"
    elif not sent.startswith(_OBJECT) or callable(value):
        here = (_sent(name, place, value, None) or b"")[1:].decode() if is_code(value) else type(value).__name__
        raise Differs(f"{name}.{place} does not travel: in the script's process it is '{sent[1:].decode()}', here '{here or 'its own'}'")


def _is_words(sent: bytes) -> bool:
    return sent[:1] in (_DATA, _OBJECT, _CODE)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, _KINDS) and isinstance(value, Sized) else 1


class _Sums:
    """Of values too large to be sent. Those of so many bytes, in all, have one."""

    def __init__(self, left_bytes: int) -> None:
        self._left_bytes = left_bytes
        self._known: dict[int, str] = {}  # By the identity of values, which several modules may have.

    def of(self, value: Any) -> str:
        """Empty if it has none: it is too large, or holds what is not plain, or Python has it in another order elsewhere."""
        if id(value) not in self._known:
            self._known[id(value)] = self._computed(value)
        return self._known[id(value)]

    def _computed(self, value: Any) -> str:
        most, total, number = min(_MOST_SUMMED_BYTES, self._left_bytes), 0, 0
        try:
            for part in _parts(value, most):
                total += len(part)
                number = zlib.crc32(part, number)
                if total > most:
                    return ""
            return f" ({_SUM} {number:08x})" if total > 0 else ""
        except ValueError:  # Something is not plain.
            return ""
        finally:
            self._left_bytes -= total


def _parts(value: Any, most_bytes: int) -> Iterator[bytes]:
    """Bytes that are equal for equal values, piece by piece."""
    if _is_array(value):
        if value.nbytes <= most_bytes:
            yield _bytes_of(value)
    elif type(value) in (str, bytes) or (type(value) in (set, frozenset) and _SETS_HAVE_AN_ORDER):
        yield marshal.dumps(value, _PLAIN)
    elif type(value) in (list, tuple, dict) and _SETS_HAVE_AN_ORDER:
        members = iter(value.items() if isinstance(value, dict) else value)
        while some := list(itertools.islice(members, _MEMBERS_AT_ONCE)):
            yield marshal.dumps(some, _PLAIN)


def _is_array(value: Any) -> bool:
    """Whether it is an array of numpy's, or a tensor in memory, of plain numbers."""
    if type(value) is torch.Tensor:
        return value.device.type == "cpu" and value.layout is torch.strided and not value.requires_grad and not value.is_shared()
    numpy = sys.modules.get("numpy")
    return numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject


def _bytes_of(array: Any) -> bytes:
    plain = array.contiguous().view(-1).view(torch.uint8).numpy() if isinstance(array, torch.Tensor) else array
    return plain.tobytes()


def _found(holder: Any, place: str) -> Any:
    """What the dotted name stands for here; None if nothing holds values there."""
    for key in filter(None, place.split(".")):
        holder = vars(holder).get(key) if hasattr(holder, "__dict__") else None
    return holder if hasattr(holder, "__dict__") else None


def _enter(name: str, place: str, holder: Any, members: dict[str, bytes]) -> None:
    global lacking
    for key, sent in members.items():
        dotted = f"{place}.{key}".lstrip(".")
        if not _is_words(sent) and (key not in vars(holder) or _sent(name, dotted, vars(holder)[key], None) != sent):
            try:
                value = pickle.loads(sent)
            except Exception:  # Of a module that is not here.
                lacking = f"{name}.{dotted}"
                continue
            if isinstance(holder, type):
                type.__setattr__(holder, key, value)
            else:
                vars(holder)[key] = value  # Whatever its __setattr__ would make of that.


class _Bounded(io.BytesIO):
    """As much of a pickle as one value may have."""

    def write(self, data: Any) -> int:
        if self.tell() + memoryview(data).nbytes > _MOST_BYTES:
            raise OverflowError
        return super().write(data)


class _OfTheScript(Exception):
    """A value holds something that no other process can read."""


class _Pickler(pickle.Pickler):
    """Of what says where it comes from. pickle would look for other functions in every module of the process, which takes long and wakes those
    that are imported when first used."""

    def reducer_override(self, obj: Any) -> Any:
        if is_of_the_script(obj):
            raise _OfTheScript
        if callable(obj) and getattr(obj, "__module__", None) is None and not hasattr(obj, "__self__"):
            raise pickle.PicklingError
        return NotImplemented


def _sent(module: str, place: str, value: Any, sums: _Sums | None) -> bytes | None:
    """What stands for the value: its pickle, or words if it cannot or need not travel. None of what the module itself defines."""
    key = place.rpartition(".")[2]
    if key.startswith("__") and not is_code(value):
        return None
    try:
        if is_code(value) and not isinstance(value, functools.partial):
            words = words_of_code(module, place, value)
            return (by_reference(module, place, value) or _CODE + words.encode()) if words else None
        return _data(value, sums) if _is_data(value) else _OBJECT + _kind(value).encode()
    except _OfTheScript:
        return _CODE + f"{type(value).__name__} with something of the script's".encode()
    except Exception as error:
        pass_on_of_a_handler(error)
        return _in_words(value, sums)


def _is_data(value: Any) -> bool:
    return isinstance(value, (*_KINDS, *_VALUES, functools.partial)) or _is_array(value) or _is_number_of_numpys(value) or _kind(value).startswith(_TRANSFORMS)


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _data(value: Any, sums: _Sums | None) -> bytes:
    if _is_array(value) and value.nbytes > _MOST_BYTES // 2:
        return _in_words(value, sums)
    if isinstance(value, Sized) and len(value) > (_MOST_BYTES if isinstance(value, (str, bytes)) else _MOST_MEMBERS):
        return _in_words(value, sums)
    file = _Bounded()
    _Pickler(file).dump(value)
    return file.getvalue()


def _in_words(value: Any, sums: _Sums | None) -> bytes:
    if is_code(value):
        return _CODE + words_of_code("", "", value).encode()
    if not isinstance(value, Sized) and not _is_array(value):
        return _OBJECT + _kind(value).encode()
    extent = f"{value.nbytes} bytes" if _is_array(value) else f"{_length(value)}"
    return _DATA + f"{type(value).__name__} of {extent}{sums.of(value) if sums is not None else ''}".encode()


def _is_number_of_numpys(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.generic, numpy.dtype))
