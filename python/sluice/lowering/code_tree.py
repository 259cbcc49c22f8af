"""The syntax tree of a function that is surely the code it runs: its file may have changed since it was imported."""

from __future__ import annotations

import ast
import functools
import linecache
import operator
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from sluice.shipping.failures import NotNative

_MOST_LINES = 4_000  # Of a file: parsing them takes a tenth of a second.


# What a tree has an operator as.
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv
}  # fmt: skip
COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge
}  # fmt: skip

_Tree = tuple[ast.arguments, list[ast.stmt]]


def tree_of(code: CodeType, name: str) -> _Tree:
    """Its parameters and statements. `name`: of the function, for people. Raises NotNative where there is no source, or where it makes other code."""
    tree = _tree(code)
    if isinstance(tree, str):
        raise NotNative(f"the source of {name} {tree}")
    return tree


@functools.lru_cache(maxsize=64)
def _tree(code: CodeType) -> _Tree | str:
    """Or why there is none: each pass asks."""
    try:
        lines = linecache.getlines(code.co_filename)  # Not inspect: that looks at all modules, which takes 40 ms.
        if not 0 < len(lines) <= _MOST_LINES:
            raise ValueError
        # The whole file: how a function is compiled depends on what is around it.
        tree = ast.parse("".join(lines))
        made = compile(tree, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return "is not to be had"
    found = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda)) and _is_of(node, code)]
    if len(found) != 1 or not any(_are_alike(part, code) for part in _codes_within(made)):
        return "is not that of its code"
    function = found[0]
    if isinstance(function, ast.FunctionDef):
        return function.args, function.body
    return function.args, [ast.copy_location(ast.Return(function.body), function.body)]


def _is_of(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    return name == code.co_name and min(part.lineno for part in (node, *decorators)) == code.co_firstlineno


def _codes_within(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _codes_within(part)


_COMPARED = ("co_name", "co_firstlineno", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_posonlyargcount",
             "co_kwonlyargcount", "co_flags")  # fmt: skip


def _are_alike(one: CodeType, other: CodeType) -> bool:
    if any(getattr(one, name) != getattr(other, name) for name in _COMPARED) or len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _are_alike(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else type(a) is type(b) and repr(a) == repr(b)
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )
