"""Whether a data set holds an open file as the bare number of its descriptor. Forked workers have the file, too; in an executor the number names another
one, or none.

A number alone tells nothing, as many a count is the number of some open file. So the file must be open here, and the attribute's name or the code that goes
with it must speak of descriptors.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from sluice.shipping.self_change import objects_within

_NAMES = re.compile(r"(^|_)(fds?|filenos?|descriptors?|handles?)(_|$)", re.IGNORECASE)
_CALLS = {"pread", "preadv", "readv", "lseek", "fdopen", "sendfile", "posix_fadvise"}
_STANDARD = (0, 1, 2)
_MOST_NUMBERS = 256


def open_descriptor_in(dataset: Any) -> str:
    """The attribute, or the variable of the script, that holds one; "" if none is found."""
    for holder in objects_within(dataset):
        kind = type(holder)
        for name, value in getattr(holder, "__dict__", {}).items():
            if any(map(_is_open, _numbers(value))) and (_NAMES.search(str(name)) or _functions_by_number(kind)):
                return f"{kind.__name__}.{name}"
        if kind.__module__ == "__main__":
            for function in _functions_by_number(kind):
                for name in sorted(names_in(function.__code__)):
                    if any(map(_is_open, _numbers(function.__globals__.get(name)))):
                        return name
    return ""


def _functions_by_number(kind: type) -> list[FunctionType]:
    """The methods that read a file by its number."""
    methods = [member for definition in kind.__mro__ for member in vars(definition).values() if isinstance(member, FunctionType)]
    return [method for method in methods if not _CALLS.isdisjoint(names_in(method.__code__))]


def names_in(code: CodeType) -> set[str]:
    """Those of globals and attributes, also of the functions within it."""
    return {*code.co_names}.union(*(names_in(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _numbers(value: Any) -> Iterator[int]:
    """Of a number, or of a short container of such."""
    if type(value) in (list, tuple, dict) and len(value) <= _MOST_NUMBERS:
        yield from (item for item in (value.values() if isinstance(value, dict) else value) if type(item) is int)
    elif type(value) is int:
        yield value


def _is_open(number: int) -> bool:
    if number in _STANDARD or number < 0:
        return False
    try:
        mode = os.fstat(number).st_mode
    except (OSError, OverflowError):
        return False
    return stat.S_ISREG(mode) or stat.S_ISBLK(mode)
