"""Reads what the `__getitem__` of a Dataset class does, if it does no more than many do: look up a file and a label, open the image, transform it.

The code is not run. Its syntax tree is followed once with a column of all keys in the place of the index. Of what it calls, only pure functions of
plain values are called. Everything that is not known to change nothing and to draw nothing ends the reading: other libraries, changes of attributes,
loops and decisions that differ from sample to sample.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import os
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from torch.utils.data import Dataset, Subset

from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.lowering.call_variables import attribute_name, bound, outer_variable, super_of
from sluice.lowering.code_tree import COMPARISONS, OPERATORS, tree_of
from sluice.lowering.library_transforms import leaves_other_values, steps_of
from sluice.lowering.lowered import name_of
from sluice.lowering.pictures import Opened, Picture
from sluice.lowering.sample_attributes import Unreadable, attribute_of
from sluice.lowering.sample_calls import code_of, method_of, result_of
from sluice.lowering.sample_values import (
    Column,
    Known,
    Named,
    OpenFile,
    Several,
    Value,
    computed,
    computed_or_joined,
    in_words,
    is_image_or_plain,
    is_unchangeable,
    item,
    repeated,
    truth_of,
    unpacked,
)
from sluice.shipping.failures import NotNative

_MOST_CALLS = 8  # One within the other.


def sample_of(dataset: Any, count: int) -> Value:
    """What dataset[0] to dataset[count - 1] are. Raises NotNative, with the line that does something else."""
    function = type(dataset).__getitem__
    if not isinstance(function, FunctionType):
        raise NotNative(f"its __getitem__ is a {name_of(type(function))}")
    if hasattr(dataset, "__getitems__"):
        raise NotNative("it has a __getitems__")
    try:
        return _Call(function, [Known(dataset), Column(list(range(count)))], {}, 0, []).result()
    except NotNative:
        raise
    except Exception as error:  # Of the objects that it meets.
        pass_on_of_a_handler(error)
        raise NotNative(f"reading it raises {type(error).__name__}: {error}") from None


def made_of(transform: Any, picture: Picture, depth: int = 0, opened: list[Opened] | None = None) -> Value:
    """What a transform makes of a picture: another one or several. The code of a user's own is read; if that is not possible, it stays one step.
    `depth`: of the calls around it. `opened`: as for a call. Raises NotNative."""
    if (steps := steps_of(transform)) is not None:
        value: Value = picture
        for step in steps:
            if not isinstance(value, Picture):
                raise NotNative(f"the transform {name_of(type(step))} gets {in_words(value)}")
            value = made_of(step, value, depth, opened)
        return value
    if (code := code_of(transform)) is None:
        return picture.transformed(transform)
    function, bound = code
    turns, only_rgb = picture.opened.turns, picture.opened.only_rgb
    try:
        return _Call(function, [*bound, picture], {}, depth + 1, [picture.opened] if opened is None else opened).result()
    except Exception as error:
        pass_on_of_a_handler(error)
        picture.opened.turns, picture.opened.only_rgb = turns, only_rgb
        return picture.transformed(transform, str(error))


class _Refused(NotNative):
    """With the place in the code."""


class _Call:
    """Of one function, with its variables."""

    def __init__(self, function: FunctionType, arguments: list[Value], named: dict[str, Value], depth: int, opened: list[Opened]) -> None:
        """`depth`: of the calls around it. `opened`: by all calls until now. Raises NotNative for arguments that do not fit."""
        if depth > _MOST_CALLS:
            raise NotNative(f"{function.__qualname__} calls functions in functions")
        self._function, self._depth, self._opened = function, depth, opened
        self._parameters, self._statements = tree_of(function.__code__, function.__qualname__)
        self._variables = bound(function, self._parameters, arguments, named)

    def result(self) -> Value:
        returned = self._block(self._statements)
        if returned is None:
            raise NotNative(f"{self._function.__qualname__} returns nothing")
        return returned

    def _block(self, statements: list[ast.stmt]) -> Value | None:
        """What it returns; None if it goes on behind it."""
        for statement in statements:
            if (returned := self._placed(self._statement, statement)) is not None:
                return returned
        return None

    def _placed(self, read: Callable[[Any], Any], node: ast.AST) -> Any:
        """What is read of a node; with its place in a reason why not."""
        try:
            return read(node)
        except _Refused:
            raise
        except NotNative as reason:
            return self._refuse(node, str(reason))

    def _statement(self, node: ast.stmt) -> Value | None:
        match node:
            case ast.Return(value=ast.expr() as value):
                return self._value(value)
            case ast.Assign(targets=[target], value=given) | ast.AnnAssign(target=target, value=ast.expr() as given):
                self._assign(target, self._value(given), node)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=given) if type(op) in OPERATORS and is_unchangeable(self._variables.get(name)):
                self._variables[name] = computed(OPERATORS[type(op)], self._variables[name], self._value(given))
            case ast.Try(body=body, orelse=others, finalbody=[]):  # If an image cannot be opened, the class itself makes the batch.
                return self._block([*body, *others])
            case ast.If(test=test, body=body, orelse=others):
                if (asked := self._asks_for_rgb(test)) is None:
                    return self._block(body if self._truth(test) else others)
                picture, is_rgb = asked
                return self._block_for_rgb(picture, *((body, others) if is_rgb else (others, body)))
            case ast.For(target=target, iter=over, body=body, orelse=[]):
                return self._loop(target, self._value(over), body, node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="append"), args=[given], keywords=[])):
                match self._value(base):
                    case Several(items=list() as items, may_grow=True):
                        items.append(self._value(given))
                    case _:
                        self._refuse(node)
            case ast.With(items=items, body=body):
                for entered in items:
                    opened = self._value(entered.context_expr)
                    if not isinstance(opened, (OpenFile, Picture)):
                        self._refuse(node)
                    if entered.optional_vars is not None:
                        self._assign(entered.optional_vars, opened, node)
                return self._block(body)
            case ast.Assert(test=test) if self._truth(test):
                pass
            case ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None) | ast.Pass():
                pass
            case _:
                self._refuse(node)
        return None

    def _loop(self, target: ast.expr, over: Value, body: list[ast.stmt], node: ast.stmt) -> Value | None:
        for turn in (turns := list(repeated(over))):
            self._assign(target, turn, node)
            if (returned := self._block(body)) is not None:
                return returned
            if isinstance(over, Several) and len(over.items) != len(turns):  # It would go on.
                self._refuse(node)
        return None

    def _asks_for_rgb(self, test: ast.expr) -> tuple[Picture, bool] | None:
        """If a test asks just whether an image is RGB, and only the file tells: the image, and what the test is for RGB. Else None."""
        match test:
            case ast.Compare(left=ast.Attribute(value=base, attr="mode"), ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value="RGB")]):
                picture = self._value(base)
                if isinstance(picture, Picture) and picture.has_the_mode_of_its_file:
                    return picture, isinstance(op, ast.Eq)
        return None

    def _block_for_rgb(self, asked: Picture, body: list[ast.stmt], otherwise: list[ast.stmt]) -> Value | None:
        """One that does `otherwise` if an image is not RGB. If that is to convert it, no image needs a decision."""
        match body, otherwise:
            case [], [ast.Assign(targets=[ast.Name(id=name)], value=given)] if self._variables.get(name) == asked:
                if (picture := self._converted(asked, given)) is not None:
                    self._variables[name] = picture
                    return None
        asked.mode()
        return self._block(body)

    def _converted(self, picture: Picture, given: ast.expr) -> Picture | None:
        """The picture as RGB, if `given` converts it and does no more."""
        return value if isinstance(value := self._value(given), Picture) and value == picture.converted() else None

    def _assign(self, target: ast.expr, value: Value, statement: ast.stmt) -> None:
        match target:
            case ast.Name(id=name):
                self._variables[name] = value
            case ast.Tuple(elts=targets):
                for part, each in zip(targets, unpacked(value, len(targets)), strict=True):
                    self._assign(part, each, statement)
            case _:
                self._refuse(statement)

    def _refuse(self, node: ast.AST, reason: str = "") -> Any:
        where = f"{os.path.basename(self._function.__code__.co_filename)}:{getattr(node, 'lineno', 0)}"
        raise _Refused(f"{where} has `{ast.unparse(node).splitlines()[0][:60]}`{f', which {reason}' if reason else ''}")

    def _value(self, node: ast.expr) -> Value:
        return self._placed(self._value_of, node)

    def _value_of(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=value):
                return Known(value)
            case ast.Name(id=name):
                return self._variable(name, node)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(self._value(base), name, node)
            case ast.Subscript(value=base, slice=key):
                return self._item(self._value(base), self._value(key), node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if not any(isinstance(part, ast.Starred) for part in parts):
                return Several(list(map(self._value, parts)) if isinstance(node, ast.List) else tuple(map(self._value, parts)))
            case ast.ListComp(elt=element, generators=[ast.comprehension(target=target, iter=over, ifs=[], is_async=0)]):
                return self._listed(element, target, over, node)
            case ast.Dict(keys=keys, values=parts) if all(isinstance(key, ast.Constant) and type(key.value) is str for key in keys):
                return Named({str(getattr(key, "value", "")): self._value(part) for key, part in zip(keys, parts, strict=True)})
            case ast.Call(func=ast.Name(id="list" | "tuple") as function, args=[ast.GeneratorExp(elt=element, generators=parts)], keywords=[]) if self._is_pythons_own(function):
                return self._call(function, [ast.copy_location(ast.ListComp(element, parts), node)], [], node)
            case ast.Call(func=function, args=arguments, keywords=named):
                return self._call(function, arguments, named, node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return computed_or_joined(OPERATORS[type(op)], self._value(left), self._value(right))
            case ast.JoinedStr(values=parts):
                return computed(lambda *texts: "".join(texts), *map(self._text, parts))
            case ast.IfExp(test=test, body=body, orelse=other):
                if (asked := self._asks_for_rgb(test)) is None:
                    return self._value(body if self._truth(test) else other)
                body, other = (body, other) if asked[1] else (other, body)
                return self._one_of(asked[0], body, other)
            case ast.Slice(lower=None, upper=None, step=None):
                return Known(slice(None))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return computed(operator.neg, self._value(operand))
            case ast.BoolOp(op=op, values=[*tests, last]):
                for test in tests:
                    if self._is_true(found := self._value(test), test) == isinstance(op, ast.Or):
                        return found
                return self._value(last)
            case ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return Known(self._truth(node))
        return self._refuse(node)

    def _one_of(self, asked: Picture, body: ast.expr, otherwise: ast.expr) -> Value:
        """The same of an expression."""
        value = self._value(body)
        if value == asked and (picture := self._converted(asked, otherwise)) is not None:
            return picture
        asked.mode()
        return value

    def _item(self, base: Value, key: Value, node: ast.expr) -> Value:
        if not isinstance(base, Known) or not isinstance(base.value, Dataset):
            return item(base, key)
        if type(base.value) is Subset:
            return self._item(Known(base.value.dataset), item(Known(base.value.indices), key), node)
        function = type(base.value).__getitem__
        return self._within(function, [base, key], {}, node) if isinstance(function, FunctionType) else self._refuse(node)

    def _listed(self, element: ast.expr, target: ast.expr, over: ast.expr, node: ast.expr) -> Value:
        variables, made = dict(self._variables), []
        for value in repeated(self._value(over)):
            self._assign(target, value, node)  # type: ignore[arg-type]
            made.append(self._value(element))
        self._variables = variables
        return Several(made)

    def _text(self, part: ast.expr) -> Value:
        """Of an f-string."""
        match part:
            case ast.Constant():
                return self._value(part)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return computed(format, self._value(value))
            case ast.FormattedValue(value=value, conversion=-1, format_spec=ast.JoinedStr(values=[ast.Constant(value=str() as form)])):
                return computed(lambda value: format(value, form), self._value(value))
        return self._refuse(part)

    def _truth(self, node: ast.expr) -> bool:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=test):
                return not self._truth(test)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                a, b = self._value(left), self._value(right)
                if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(b, Known) and b.value is None and not isinstance(a, Column):
                    return (isinstance(a, Known) and a.value is None) == isinstance(op, ast.Is)
                if isinstance(op, (ast.Is, ast.IsNot)) and not any(isinstance(each, Known) and type(each.value) in (bool, type(None)) for each in (a, b)):
                    return bool(self._refuse(node))  # Which texts and numbers are one object is Python's own affair.
                if isinstance(b, Several) and isinstance(op, (ast.In, ast.NotIn)):
                    return any(self._is_so(computed(operator.eq, a, each), node) for each in b.items) == isinstance(op, ast.In)
                return self._is_so(computed(COMPARISONS[type(op)], a, b), node)
            case ast.Compare():
                return bool(self._refuse(node))
        return self._is_true(self._value(node), node)

    def _is_true(self, value: Value, node: ast.expr) -> bool:
        """What Python takes it for. Raises NotNative where a class's own code says that."""
        return self._is_so(truth_of(value), node)

    def _is_so(self, value: Value, node: ast.expr) -> bool:
        """For all samples, or for none."""
        if isinstance(value, Known):
            return bool(value.value)
        if isinstance(value, Column) and len(set(value.values)) == 1:
            return bool(value.values[0])
        return bool(self._refuse(node, "differs from sample to sample"))

    def _variable(self, name: str, node: ast.expr) -> Value:
        value = self._variables[name] if name in self._variables else outer_variable(self._function, name)
        return value if value is not None else self._refuse(node)

    def _is_pythons_own(self, function: ast.Name) -> bool:
        value = self._variable(function.id, function)
        return isinstance(value, Known) and value.value is getattr(builtins, function.id)

    def _attribute(self, base: Value, name: str, node: ast.expr) -> Value:
        if isinstance(base, Picture) and name == "mode":
            return Known(base.mode())
        if not isinstance(base, Known):
            return self._refuse(node)
        try:
            found = attribute_of(base.value, attribute_name(self._function, name))
        except Unreadable as reason:
            return self._refuse(node, str(reason))
        if type(found) is not property:
            return Known(found)
        return self._within(found.fget, [base], {}, node) if isinstance(found.fget, FunctionType) else self._refuse(node)

    def _call(self, callee: ast.expr, nodes: list[ast.expr], named_nodes: list[ast.keyword], node: ast.expr) -> Value:
        if any(isinstance(argument, ast.Starred) for argument in nodes) or any(keyword.arg is None for keyword in named_nodes):
            return self._refuse(node)
        arguments = [self._value(argument) for argument in nodes]
        named = {str(keyword.arg): self._value(keyword.value) for keyword in named_nodes}
        if isinstance(callee, ast.Attribute):
            base = self._value(callee.value)
            if not isinstance(base, Known):
                return method_of(base, callee.attr, arguments, named) or self._refuse(node)
            function = self._attribute(base, callee.attr, callee)
        else:
            function = self._value(callee)
        return self._applied(function.value, arguments, named, node) if isinstance(function, Known) else self._refuse(node)

    def _applied(self, function: Any, arguments: list[Value], named: dict[str, Value], node: ast.expr) -> Value:
        if (known := result_of(function, arguments, named)) is not None:
            return self._noted(known)
        if function is super:
            return super_of(self._function, self._parameters, self._variables, arguments) or self._refuse(node)
        if type(function) is functools.partial:
            fixed = {name: Known(value) for name, value in function.keywords.items()}
            return self._applied(function.func, [*map(Known, function.args), *arguments], fixed | named, node)
        if isinstance(function, MethodType) and isinstance(function.__func__, FunctionType):
            return self._within(function.__func__, [Known(function.__self__), *arguments], named, node)
        if isinstance(function, FunctionType):
            return self._within(function, arguments, named, node)
        return self._transformed(function, arguments, node) if not named else self._refuse(node)

    def _transformed(self, function: Any, arguments: list[Value], node: ast.expr) -> Value:
        """What a transform makes of one picture, and of values beside it that it leaves as they are."""
        if [type(each) for each in arguments].count(Picture) != 1:
            return self._refuse(node)
        if len(arguments) > 1 and not (leaves_other_values(function) and all(map(is_image_or_plain, arguments))):
            return self._refuse(node)
        if not callable(function):
            return self._refuse(node)
        made = [made_of(function, each, self._depth, self._opened) if isinstance(each, Picture) else each for each in arguments]
        return Several(tuple(made)) if len(made) > 1 else made[0]

    def _noted(self, value: Value) -> Value:
        """Only one file may be opened: executors open no other, so that code which asks for its mode, or fails for it, would not be followed."""
        if isinstance(value, Picture) and not any(value.opened is known for known in self._opened):
            if self._opened:
                raise NotNative("opens another image than the one before")
            self._opened.append(value.opened)
        return value

    def _within(self, function: FunctionType, arguments: list[Value], named: dict[str, Value], node: ast.expr) -> Value:
        try:
            return _Call(function, arguments, named, self._depth + 1, self._opened).result()
        except NotNative:
            if function.__code__.co_filename == self._function.__code__.co_filename:
                raise
            return self._refuse(node)  # Else a line of some library would be told.
