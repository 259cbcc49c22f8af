"""What a call of a function is known by in a cache: the function's name and version, a digest of its own code, and its arguments as bytes."""

from __future__ import annotations

import hashlib
import inspect
import os
import stat
import struct
from collections.abc import Callable
from pathlib import PurePath
from types import CodeType, FunctionType
from typing import Any, NamedTuple

# As src/transport/function_call.h has them.
_MOST_NAME_BYTES = 512
_MOST_VERSION_BYTES = 64
_MOST_ARGUMENT_BYTES = 16 << 10
_MOST_FILES = 8
_MOST_PATH_BYTES = 4095
_PLAIN = "str, bytes, int, float, bool, None, Path, and tuples of them"


class CallKey(NamedTuple):
    """`files`: absolute paths of the regular files that the arguments name."""

    arguments: bytes
    files: list[str]


class NoKey(Exception):
    """A call that cannot be found again; the message says why."""


class _NotPlain(Exception):
    pass


class FunctionKey:
    """Of one function. Cheap to make: the digest is computed when it is first needed."""

    def __init__(self, function: Callable, version: str, key: Callable[..., Any] | None) -> None:
        """Raises TypeError for what is no function of Python, ValueError for a version that is too long or empty."""
        if not isinstance(inspect.unwrap(function), FunctionType):
            raise TypeError(f"sluice.cached takes a function that is written in Python, not {function!r}")
        if not isinstance(version, str) or not 0 < len(version.encode()) <= _MOST_VERSION_BYTES:
            raise ValueError(f"sluice.cached(version={version!r}): use a text of 1 to {_MOST_VERSION_BYTES} bytes")
        self.function, self.user_version, self.key = function, version, key
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._version = ""

    def __reduce__(self) -> tuple:
        return FunctionKey, (self.function, self.user_version, self.key)

    @property
    def version(self) -> str:
        """The user's, and a digest of the code."""
        if not self._version:
            self._version = f"{self.user_version} {_code_digest(self.function)}"
        return self._version

    def of(self, arguments: tuple, named: dict[str, Any]) -> CallKey:
        """Raises TypeError for arguments that say nothing of themselves, and NoKey."""
        texts: list[Any] = []
        parts: list[bytes] = []
        try:
            if self.key is not None:
                _add(parts, self.key(*arguments, **named), texts)
            else:
                _add(parts, arguments, texts)
                _add(parts, tuple(sorted(named.items())) if named else (), texts)
        except _NotPlain as other:
            raise TypeError(self._complaint(arguments, named, other.args[0])) from None
        encoded = b"".join(parts)
        if len(encoded) > _MOST_ARGUMENT_BYTES:
            raise NoKey(f"its arguments have more than {_MOST_ARGUMENT_BYTES >> 10} KiB (give sluice.cached a key= of less)")
        if len(self.name.encode(errors="replace")) > _MOST_NAME_BYTES:
            raise NoKey(f"its name has more than {_MOST_NAME_BYTES} bytes")
        return CallKey(encoded, _files(texts))

    def _complaint(self, arguments: tuple, named: dict[str, Any], value: Any) -> str:
        kind = type(value).__qualname__
        if self.key is not None:
            return f"{self.name} is marked with sluice.cached, and its key= gives an object of class {kind}: only {_PLAIN} can be compared"
        try:
            bound = inspect.signature(self.function).bind(*arguments, **named).arguments
        except (TypeError, ValueError):
            bound = named
        name = next((name for name, given in bound.items() if given is value or (isinstance(given, tuple) and any(part is value for part in given))), "?")
        return (f"{self.name} is marked with sluice.cached, and its argument {name!r} is an object of class {kind}: only {_PLAIN} can be compared; "
                f"say what the result depends on with sluice.cached(version=..., key=lambda ...: (...))")  # fmt: skip


def _add(parts: list[bytes], value: Any, texts: list[Any]) -> None:
    """Two values have the same bytes if they are of one type and equal. `texts`: gets what may name a file."""
    kind = type(value)
    if kind is str or kind is bytes:
        data = value.encode("utf-8", "surrogatepass") if kind is str else value
        parts.append((b"S" if kind is str else b"B") + struct.pack("<Q", len(data)) + data)
        texts.append(value)
    elif kind is int:
        data = b"%d" % value
        parts.append(b"I" + struct.pack("<Q", len(data)) + data)
    elif kind is float:
        parts.append(b"D" + struct.pack("<d", value))
    elif value is None or kind is bool:
        parts.append(b"N" if value is None else b"T" if value else b"F")
    elif kind is tuple:
        parts.append(b"U" + struct.pack("<Q", len(value)))
        for part in value:
            _add(parts, part, texts)
    elif isinstance(value, PurePath):
        _add(parts, ("path", str(value)), [])
        texts.append(str(value))
    else:
        raise _NotPlain(value)


def _files(texts: list[Any]) -> list[str]:
    """Raises NoKey for more of them than a record has room for."""
    files = []
    for text in texts:
        path = os.fsencode(text) if type(text) is bytes or "\0" not in text else b""
        if not path or len(path) > _MOST_PATH_BYTES or b"\0" in path:
            continue
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
        except (OSError, ValueError):
            continue
        absolute = os.path.join(os.getcwdb(), path)
        try:
            files.append(absolute.decode())
        except UnicodeDecodeError:
            raise NoKey(f"a file's name is no UTF-8: {path!r}") from None
        if len(files) > _MOST_FILES or len(absolute) > _MOST_PATH_BYTES:
            raise NoKey(f"its arguments name more than {_MOST_FILES} files, or one by too long a path")
    return files


def _code_digest(function: Callable) -> str:
    """Of the code of `function` and of what it wraps, constants and defaults included; not of what that calls."""
    digest = hashlib.sha256()
    while function is not None:
        if isinstance(function, FunctionType):
            digest.update(_of_constant((function.__code__, function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items())))))
        function = getattr(function, "__wrapped__", None)  # type: ignore[assignment]
    return digest.hexdigest()


def _of_constant(value: Any) -> bytes:
    """The same in each process. Defaults that are objects count by their class: their words would hold an address."""
    if isinstance(value, CodeType):
        return _of_constant((value.co_code, value.co_consts, value.co_names, value.co_varnames, value.co_freevars))
    if isinstance(value, tuple):
        return b"(%d" % len(value) + b"".join(map(_of_constant, value)) + b")"
    if isinstance(value, frozenset):
        return b"{" + b"".join(sorted(map(_of_constant, value))) + b"}"
    is_plain = value is None or value is ... or type(value) in (str, bytes, int, float, complex, bool)
    text = f"{type(value).__qualname__} {value!r}" if is_plain else type(value).__qualname__
    return b"%d:" % len(text) + text.encode("utf-8", "surrogatepass")
