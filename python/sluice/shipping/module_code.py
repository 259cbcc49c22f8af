"""What a name of the user's module stands for, where that is code: in words that are equal in all processes in which it stands for the same.

A script puts its own functions into its modules, as in `data.load = load_quickly`, or those of another module of its. A forked worker has them. A fresh
interpreter has what the module says.
"""

from __future__ import annotations

import functools
import pickle
import sys
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from sluice.shipping.users_modules import SCRIPT, is_of_the_user

_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_AROUND = (staticmethod, classmethod, MethodType, property, functools.partial, functools._lru_cache_wrapper, functools.cached_property)


def is_code(value: Any) -> bool:
    """A function, a class, a module, or what is around a function, such as a property."""
    return isinstance(value, (*_FUNCTIONS, *_AROUND, type, ModuleType))


def is_of_the_script(value: Any) -> bool:
    """A function or a class of the script itself, or an object of such a class."""
    place = value.__globals__.get("__name__") if isinstance(value, FunctionType) else getattr(value if isinstance(value, type) else type(value), "__module__", None)
    return place in SCRIPT


def words_of_code(module: str, name: str, value: Any) -> str:
    """`module`, `name`: where it was found, the latter dotted within a class. Empty for what the module itself defines by this name, and for modules."""
    value, around = _inner(value)
    if isinstance(value, ModuleType) or not is_code(value):
        return ""
    if is_of_the_script(value):
        return f"{around}code of the script"
    if isinstance(value, type):
        return "" if not around and value.__module__ == module and value.__qualname__ == name else f"{around}{value.__module__}.{value.__qualname__}"
    if not isinstance(value, FunctionType):
        return f"{around}{value.__module__}.{value.__qualname__}"
    code, home = value.__code__, value.__globals__.get("__name__", "")
    if not around and home == module and code.co_name == name.rpartition(".")[2]:
        return ""
    # A library's lines are others in another version of it, where the function does the same.
    return f"{around}{home}.{code.co_name}" + (f" of line {code.co_firstlineno}" if is_of_the_user(home) else "")


def by_reference(module: str, name: str, value: Any) -> bytes | None:
    """A pickle by which another process finds a function or class in another place; None if it is none, or is nowhere else."""
    if not isinstance(value, (FunctionType, type)) or is_of_the_script(value):
        return None
    found: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    is_elsewhere = found is value and (value.__module__, value.__qualname__) != (module, name)
    return pickle.dumps(value) if is_elsewhere else None


def _inner(value: Any) -> tuple[Any, str]:
    """The function within, and what is around it."""
    around = ""
    inner: Any
    for _ in range(8):
        if isinstance(value, (staticmethod, classmethod, MethodType)):
            inner = value.__func__
        elif isinstance(value, (property, functools.cached_property, functools.partial)):
            inner = value.fget if isinstance(value, property) else value.func
        elif isinstance(value, functools._lru_cache_wrapper):
            inner = value.__wrapped__
        else:
            break
        # As methods of classes have it, where a function is the class's own.
        around += "" if isinstance(value, (staticmethod, classmethod, property)) else f"{type(value).__name__} of "
        value = inner
    return value, around
