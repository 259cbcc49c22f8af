"""A pickle of the script's own code that is read in the process which has made it.

cloudpickle takes the functions and classes of a script along by value, with the globals that they use. Read at home it would fill the script's own
classes anew: from then on their methods would see the globals of the moment at which the pickle was made, for the rest of the program. Here a
class that this process has defined stays what it is.

A forked worker would see those globals all the same, and what it does to them would stay with it. So would class attributes. A Snapshot holds both as
the pickle has them. They take the place of the script's while its code makes a batch.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import pickle
import sys
import weakref
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from sluice.shipping.users_modules import SCRIPT

_CLOUDPICKLE = ("cloudpickle.cloudpickle", "cloudpickle.cloudpickle_fast")  # The latter before cloudpickle 3.0.
_PLACE_OF_IDENTITY = {"_make_skeleton_class": 4, "_make_skeleton_enum": 5}  # Among their arguments.
_MISSING: Any = object()
_foreign: weakref.WeakSet[type] = weakref.WeakSet()  # Classes that this process has only from pickles.


class Snapshot:
    """Globals and class attributes of the script's own code. Empty in a process that has not defined that code. Not thread-safe."""

    def __init__(self) -> None:
        self._globals: dict[int, tuple[dict, dict]] = {}  # The script's, and those of the pickle; by the identity of the former.
        self._attributes: dict[type, dict[str, Any]] = {}
        self._cells: list[tuple[CellType, CellType]] = []  # Variables of functions within which classes are defined.
        self._methods: list[tuple[FunctionType, FunctionType]] = []  # Those with defaults.

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """The script's code sees the snapshot inside, and changes only that."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def of_globals(self, live: dict) -> dict:
        """What is known of these globals of the script: to be added to."""
        return self._globals.setdefault(id(live), (live, {}))[1]

    def of_class(self, definition: type, state: dict[str, Any]) -> None:
        """Takes the data among the attributes, and what methods have around them. An enumeration has none that changes."""
        for name, value in state.items():
            live, taken = _function_of(vars(definition).get(name)), _function_of(value)
            if live is not None and taken is not None:
                self._cells += zip(live.__closure__ or (), taken.__closure__ or (), strict=False)
                self._methods += [(live, taken)] if taken.__defaults__ or taken.__kwdefaults__ else []
        if not isinstance(definition, enum.EnumMeta):
            data = {name: value for name, value in state.items() if not _is_code(value) and not (name.startswith("__") and name.endswith("__"))}
            data.pop("_abc_impl", None)  # cloudpickle has another thing by that name, which no abstract class takes.
            self._attributes[definition] = data

    def _exchange(self) -> None:
        for live, taken in self._globals.values():
            for name, value in taken.items():
                taken[name] = live.get(name, _MISSING)
                if value is not _MISSING:
                    live[name] = value
                else:
                    live.pop(name, None)
        for definition, attributes in self._attributes.items():
            for name, value in attributes.items():
                if (present := vars(definition).get(name, _MISSING)) is not value:
                    attributes[name] = present
                    _set(definition, name, value)
        for live_cell, taken_cell in self._cells:
            with contextlib.suppress(ValueError):  # It is empty.
                live_cell.cell_contents, taken_cell.cell_contents = taken_cell.cell_contents, live_cell.cell_contents
        for live_method, taken_method in self._methods:
            live_method.__defaults__, taken_method.__defaults__ = taken_method.__defaults__, live_method.__defaults__
            live_method.__kwdefaults__, taken_method.__kwdefaults__ = taken_method.__kwdefaults__, live_method.__kwdefaults__


class PickleReader(pickle.Unpickler):
    """Reads a pickle, wherever it was made. Classes that this process has defined itself stay as they are."""

    def load(self) -> Any:
        """Keeps nothing of what it has read. Its memo holds functions of its own, so it is a circle, and the garbage collector of Python 3.11 does
        not look into a memo."""
        try:
            return super().load()
        finally:
            self.memo.clear()

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module not in _CLOUDPICKLE:
            return found
        if name in _PLACE_OF_IDENTITY:
            return lambda *arguments: _skeleton(found, arguments)
        return functools.partial(self._fill_class, found) if name == "_class_setstate" else found

    def _fill_class(self, fill: Callable, definition: type, state: tuple) -> type:
        return fill(definition, state) if definition in _foreign else definition


class HomePickleReader(PickleReader):
    """Reads a pickle that this process has made. `snapshot`: what it holds of the script's globals and class attributes, once it is read. `parts`: what
    the pickle has numbers for."""

    def __init__(self, file: Any, parts: list[Any], **arguments: Any) -> None:
        super().__init__(file, **arguments)
        self.snapshot = Snapshot()
        self._parts = parts

    def persistent_load(self, number: int) -> Any:
        return self._parts[number]

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if module not in _CLOUDPICKLE:
            return found
        own: dict[str, Callable] = {"_make_function": _function, "_function_setstate": self._fill_function}
        return functools.partial(own[name], found) if name in own else found

    def _fill_class(self, fill: Callable, definition: type, state: tuple) -> type:
        if definition not in _foreign:
            self.snapshot.of_class(definition, state[0])
        return super()._fill_class(fill, definition, state)

    def _fill_function(self, fill: Callable, function: FunctionType, state: tuple) -> None:
        live = function.__globals__
        if live is not vars(sys.modules["__main__"]):
            fill(function, state)
            return
        taken, builtins_before = self.snapshot.of_globals(live), live.get("__builtins__")
        taken.update(state[1]["__globals__"])
        for name in fill.__globals__["_extract_code_globals"](function.__code__):
            if name not in taken and not hasattr(builtins, name):
                taken[name] = _MISSING
        state[1]["__globals__"] = {}
        fill(function, state)
        live["__builtins__"] = builtins_before


def _function(make: Callable, code: CodeType, scope: dict, *arguments: Any) -> FunctionType:
    """With the globals of the script itself, as its methods have them, if it is of the script."""
    return FunctionType(code, vars(sys.modules["__main__"]), *arguments) if scope.get("__name__") in SCRIPT else make(code, scope, *arguments)


def _skeleton(make: Callable, arguments: tuple) -> type:
    """A class is made once: making it calls what the script has put into its metaclass and __init_subclass__."""
    identity = arguments[_PLACE_OF_IDENTITY[make.__name__]]
    known = make.__globals__["_DYNAMIC_CLASS_TRACKER_BY_ID"].get(identity)
    if known is not None:
        return known
    made = make(*arguments)
    _foreign.add(made)
    return made


def _set(definition: type, name: str, value: Any) -> None:
    if value is _MISSING:
        type.__delattr__(definition, name)
    else:
        type.__setattr__(definition, name, value)


def _function_of(method: Any) -> FunctionType | None:
    function = getattr(method, "__func__", getattr(method, "fget", method))
    return function if isinstance(function, FunctionType) else None


def _is_code(value: Any) -> bool:
    return hasattr(type(value), "__get__") or isinstance(value, type)
