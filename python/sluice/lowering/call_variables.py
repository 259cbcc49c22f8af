"""The variables of a function whose code is read: what its parameters are bound to, and what its other names stand for."""

from __future__ import annotations

import ast
import builtins
from types import FunctionType
from typing import Any

from sluice.lowering.sample_values import Known, Value
from sluice.shipping.failures import NotNative

_GENERATOR_OR_COROUTINE = 0x2A0  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR.


def bound(function: FunctionType, parameters: ast.arguments, arguments: list[Value], named: dict[str, Value]) -> dict[str, Value]:
    """What the parameters are bound to in a call. Raises NotNative for arguments that do not fit."""
    positional = [argument.arg for argument in (*parameters.posonlyargs, *parameters.args)]
    if parameters.vararg or parameters.kwarg or len(arguments) > len(positional):
        raise NotNative(f"{function.__qualname__} takes any arguments")
    defaults = function.__defaults__ or ()
    variables: dict[str, Value] = dict(zip(positional[len(positional) - len(defaults) :], map(Known, defaults), strict=True))
    variables |= {name: Known(value) for name, value in (function.__kwdefaults__ or {}).items()}
    variables |= dict(zip(positional, arguments, strict=False))
    variables |= named
    fits = variables.keys() == {*positional, *(argument.arg for argument in parameters.kwonlyargs)}
    if not fits or function.__code__.co_flags & _GENERATOR_OR_COROUTINE:
        raise NotNative(f"{function.__qualname__} takes other arguments")
    return variables


def outer_variable(function: FunctionType, name: str) -> Known | None:
    """What a name stands for that is none of the function's own variables; None if it has no value."""
    code = function.__code__
    if name in (*code.co_varnames, *code.co_cellvars):  # Its own, and without a value yet.
        return None
    if name in code.co_freevars:
        return Known(_closure(function)[name].cell_contents)
    if name in function.__globals__:
        return Known(function.__globals__[name])
    return Known(getattr(builtins, name)) if hasattr(builtins, name) else None


def attribute_name(function: FunctionType, name: str) -> str:
    """As Python has it for a private name within a class."""
    if name.startswith("__") and not name.endswith("__") and "." in function.__qualname__:
        return f"_{function.__qualname__.split('.')[-2].lstrip('_')}{name}"
    return name


def super_of(function: FunctionType, parameters: ast.arguments, variables: dict[str, Value], arguments: list[Value]) -> Known | None:
    """What super(*arguments) is there; None if that is not known."""
    closure = _closure(function)
    if not arguments and "__class__" in closure and (first := parameters.args[:1]):
        arguments = [Known(closure["__class__"].cell_contents), variables[first[0].arg]]
    match arguments:
        case [Known(value=type() as kind), Known(value=thing)] if isinstance(thing, kind):
            return Known(super(kind, thing))
    return None


def _closure(function: FunctionType) -> dict[str, Any]:
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
