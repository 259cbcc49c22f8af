"""Functions of libraries in whose place the program has put its own: a forked worker has them, a fresh interpreter and native executors have the library's.

People do it to change a default, as in `torch.load = functools.partial(torch.load, weights_only=False)`, or to mend a library.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from sluice.shipping.users_modules import SCRIPT, is_of_the_user

# What data sets and transforms call: in 4,000 functions and methods this looks for two milliseconds. Of the modules, the functions alone.
_MODULES = ("torch", "numpy", "cv2", "soundfile", "os", "posixpath", "random", "glob", "json", "pickle")
_PACKAGES = ("PIL.", "torchvision.transforms.", "torchvision.datasets.", "torchvision.io.", "torchaudio.", "librosa.", "albumentations.", "imageio.", "skimage.")
# What native executors do in the place of the library.
_NATIVE = ("PIL.", "torchvision.transforms.")


def replaced_function(natively: bool = False) -> str | None:
    """The full name of one that the program has replaced or added; None if there is none. `natively`: of those alone that native executors know."""
    for name, (opens, _) in list(getattr(sys.modules.get("PIL.Image"), "OPEN", {}).items()):
        if _is_of_the_program(str(opens.__module__)):
            return f"PIL.Image.OPEN[{name!r}]"
    collation = sys.modules.get("torch.utils.data._utils.collate")
    for kind, collate in getattr(collation, "default_collate_fn_map", {}).items():
        if _is_of_the_program(str(getattr(collate, "__module__", None))):
            return f"torch.utils.data._utils.collate.default_collate_fn_map[{kind!r}]"
    for name in _imported(natively, len(sys.modules)):
        if (module := sys.modules.get(name)) is None:
            continue
        if (member := _replaced_in(vars(module), vars(module))) is not None:
            return f"{name}.{member}"
        for kind in [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == name and name not in _MODULES]:
            if (member := _replaced_in(vars(kind), vars(module))) is not None:
                return f"{name}.{kind.__name__}.{member}"
    return None


@functools.lru_cache(maxsize=2)  # Each pass of a native pipeline asks, and there are thousands of modules.
def _imported(natively: bool, modules: int) -> list[str]:
    """The names of these libraries' modules, as there are so many `modules` in all."""
    alone, packages = ((), _NATIVE) if natively else (_MODULES, _PACKAGES)
    return [name for name in list(sys.modules) if name in alone or name.startswith(packages) or f"{name}." in packages]


def _replaced_in(members: Mapping[str, Any], home: dict[str, Any]) -> str | None:
    """`home`: the globals of the library's own functions, which most are."""
    for member, value in list(members.items()):
        kind = type(value)
        if kind is staticmethod or kind is classmethod or kind is MethodType:
            value = value.__func__
        elif kind is property:
            value = value.fget
        elif kind is functools.partial and getattr(value.func, "__name__", None) == member:
            return member
        if type(value) is FunctionType:
            is_the_programs = value.__globals__ is not home and _is_of_the_program(str(value.__globals__.get("__name__")))
        else:
            is_the_programs = kind not in _OF_PYTHON and _is_of_the_program(str(kind.__module__))
        if is_the_programs:
            return member
    return None


_OF_PYTHON = frozenset((str, int, float, bool, type(None), dict, list, tuple, type, BuiltinFunctionType, ModuleType))


@functools.lru_cache(maxsize=4096)
def _is_of_the_program(module: str) -> bool:
    return module in SCRIPT or is_of_the_user(module)
