"""What functions and methods of Python, PyTorch, numpy, Pillow and torchvision make of values in a Dataset's code (sample_code.py). Only those are here that change
nothing and draw nothing."""

from __future__ import annotations

import os
import pathlib
import sys
import warnings
from types import FunctionType, MethodType
from typing import Any

import torch

from sluice.lowering.library_transforms import is_changed, transform_of_function, transform_of_resize
from sluice.lowering.lowered import name_of
from sluice.lowering.pictures import RGB, Opened, Picture, of_rows
from sluice.lowering.sample_attributes import PURE_METHODS
from sluice.lowering.sample_values import Column, Joined, Known, Named, OpenFile, Rows, Several, Value, computed, in_words, paths_of
from sluice.lowering.tensor_steps import AsFloats, Over255
from sluice.lowering.transforms import transform_of_kind
from sluice.shipping.failures import NotNative

_PURE = (os.path.join, os.path.basename, os.path.splitext, os.fspath, str, int, float, pathlib.Path)


def result_of(function: Any, arguments: list[Value], named: dict[str, Value]) -> Value | None:
    """None of a function that is not known. Raises NotNative."""
    if _is_one_of(function, _PURE) and not named:
        return computed(function, *(Column(each.tensor.tolist()) if isinstance(each, Rows) and each.are_numbers and function is int else each for each in arguments))
    if _is_one_of(function, (torch.tensor, torch.as_tensor)):
        return _tensor(arguments, named)
    if _is_one_of(function, (torch.stack, torch.cat)):
        return _joined(function, *arguments, **named)
    if _is_one_of(function, (list, tuple, dict, len, range, open, torch.is_tensor)):
        return _of_python(function, arguments, named)
    if (image := _image(function, arguments, named) or _transform(function, arguments, named)) is not None:
        return image
    numpy = sys.modules.get("numpy")
    if numpy is not None and function is numpy.transpose and len(arguments) == 2 and isinstance(arguments[0], Rows) and not named:
        return method_of(arguments[0], "transpose", arguments[1:], {})
    if getattr(function, "__name__", "") in PURE_METHODS.get(type(getattr(function, "__self__", None)), ()) and not named:
        return computed(function, *arguments)
    return None


def method_of(base: Value, name: str, given: list[Value], named: dict[str, Value]) -> Value | None:
    """What base.name(..) is. None of a method that is not known. Raises NotNative."""
    if (arguments := _in_order(name, given, named)) is None:
        return None
    match base:
        case Picture() if name == "convert" and _are(arguments, RGB):
            return base.converted()
        case Picture() if (name == "float" and not arguments) or (name in ("to", "type") and _is_known(arguments, torch.float32)):
            return base.transformed(AsFloats())
        case Picture() if name == "div" and _is_known(arguments, 255):
            return base.transformed(Over255())
        case Picture(opened=Opened(are_tensors=False)) if name == "resize" and (resize := _resize(arguments)) is not None:
            return base.transformed(resize)
        case Rows(are_numbers=True, tensor=tensor) if name in ("item", "tolist") and not arguments:
            return Column(tensor.tolist())
        case Rows(are_arrays=False) if name == "numpy" and not arguments:
            return base.as_arrays()
        case Rows(are_arrays=True) if name == "astype" and len(arguments) == 1 and _is_int(arguments[0]):
            return base.widened()
        case Rows(are_arrays=True) if name == "transpose" and (axes := _axes_of(arguments, base)) is not None:
            return base.permuted(axes)
        case Column(values=[first, *_]) if name in PURE_METHODS.get(str if isinstance(first, str) else type(first), ()):
            return computed(lambda value, *others: getattr(value, name)(*others), base, *arguments)
    return None


_NAMES = {"convert": ("mode",), "resize": ("size", "resample"), "astype": ("dtype",), "to": ("dtype",), "type": ("dtype",), "div": ("other",)}  # Of methods' parameters.


def _in_order(name: str, given: list[Value], named: dict[str, Value]) -> list[Value] | None:
    """All arguments of a method, as if none had been named. None if others are than those that are known."""
    names = _NAMES.get(name, ())[len(given) :][: len(named)]
    return [*given, *(named[each] for each in names)] if set(names) == set(named) else None


def code_of(transform: Any) -> tuple[FunctionType, list[Value]] | None:
    """What is called where a user's own transform is, with its first arguments. None for others."""
    if isinstance(transform, FunctionType):
        return transform, []
    if isinstance(transform, MethodType) and isinstance(transform.__func__, FunctionType):
        return transform.__func__, [Known(transform.__self__)]
    torchvisions = sys.modules.get("torchvision.transforms")
    if torchvisions is not None and type(transform) is torchvisions.Lambda:
        return (transform.lambd, []) if isinstance(transform.lambd, FunctionType) else None
    function: Any = getattr(type(transform), "__call__", None)  # noqa: B004: the function itself.
    if function is torch.nn.Module.__call__:
        function = type(transform).forward if not is_changed(transform) else None
    is_own = isinstance(function, FunctionType) and not function.__module__.startswith(("torchvision.", "torch."))
    return (function, [Known(transform)]) if is_own else None


def _of_python(function: Any, arguments: list[Value], named: dict[str, Value]) -> Value | None:
    match arguments:
        case [Several(items=items)] if (function is list or function is tuple) and not named:
            return Several(tuple(items))
        case [Several(items=items)] if function is len and not named:
            return Known(len(items))
        case [] if function is dict:
            return Named(named)
        case [Known(value=list() | tuple() | dict() as known)] if function is len and type(known) in (list, tuple, dict) and not named:
            return Known(len(known))
        case [_, *others] if function is open and _are(others, "rb") and not named:
            return OpenFile(paths_of(arguments[0]))
        case [Column()] if function is torch.is_tensor and not named:
            return Known(False)
        case _ if function is range and not named and all(isinstance(argument, Known) for argument in arguments):
            return computed(range, *arguments)
    return None


def _image(function: Any, arguments: list[Value], named: dict[str, Value]) -> Picture | None:
    """What opens one, what makes one of an array, and what makes a tensor of one."""
    tv_tensors, v2 = sys.modules.get("torchvision.tv_tensors"), sys.modules.get("torchvision.transforms.v2")
    match arguments:
        case [Picture() as picture] if tv_tensors is not None and function is tv_tensors.Image and v2 is not None and not named:
            return picture.transformed(v2.ToImage())
    if not isinstance(function, FunctionType):
        return None
    own = [function.__globals__ is vars(module) for name in ("PIL.Image", "torchvision.utils", "torchvision.datasets.folder", "torchvision.io.image") if (module := sys.modules.get(name))]
    match function.__name__, arguments:
        case _ if not any(own):  # A program's own function, also in the place of a library's.
            return None
        case "fromarray" | "_Image_fromarray", [Rows() as rows, *modes] if len(modes) + len(named) <= 1 and named.keys() <= {"mode"}:
            mode = [*modes, *named.values(), Known(None)][0]
            return of_rows(rows, mode.value) if isinstance(mode, Known) else None
        case "open", [path] if not named:
            return Picture(Opened(paths_of(path)))
        case "pil_loader" | "default_loader" as name, [path] if not named:
            if name == "default_loader" and sys.modules["torchvision"].get_image_backend() != "PIL":
                raise NotNative("asks another image backend than PIL")
            return Picture(Opened(paths_of(path)), True)
        case "decode_image" | "read_image", [Column() as path, *modes]:
            return _decoded(path, dict(zip(("mode", "apply_exif_orientation"), modes, strict=False)) | named)
    return None


def _decoded(path: Column, options: dict[str, Value]) -> Picture | None:
    """What torchvision makes of a file: with three channels for the mode RGB, else with those of the file. It warns that it will do so no longer."""
    if any(action == "error" and issubclass(DeprecationWarning, kind) for action, _, kind, _, _ in warnings.filters):
        raise NotNative("warns of what is deprecated, and the program makes errors of warnings")
    match options.pop("mode", Known("UNCHANGED")):
        case Known(value=mode) if (name := mode.upper() if type(mode) is str else _name_of_mode(mode)) in ("UNCHANGED", RGB):
            paths = paths_of(path)
            known = all(isinstance(each, Known) and each.value is False for each in options.values()) and all(type(each) is str for each in paths)
            return Picture(Opened(paths, are_tensors=True), is_rgb=name == RGB) if known else None
    return None


def _name_of_mode(mode: Any) -> str:
    return mode.name if type(mode) is sys.modules["torchvision.io.image"].ImageReadMode else ""


def _transform(function: Any, arguments: list[Value], named: dict[str, Value]) -> Value | None:
    """What makes a transform of torchvision's, and what applies one to a picture without making it."""
    picture = arguments[0] if arguments and isinstance(arguments[0], Picture) else None
    plain = [_plain(value) for value in (arguments if picture is None else arguments[1:])]
    plain_named = {name: _plain(value) for name, value in named.items()}
    if any(value is _UNKNOWN for value in (*plain, *plain_named.values())):
        return None
    try:
        transform = (transform_of_kind if picture is None else transform_of_function)(function, plain, plain_named)
    except Exception as error:
        raise NotNative(f"raises {type(error).__name__}") from None
    if transform is None:
        return None
    for value in (*arguments, *named.values()):
        _keep(value)
    return Known(transform) if picture is None else picture.transformed(transform)


def _keep(value: Value) -> None:
    """Of lists that a transform has now."""
    if isinstance(value, Several):
        value.may_grow = False
        for each in value.items:
            _keep(each)


_UNKNOWN = object()
_FIRST = Known(0)


def _plain(value: Value) -> Any:
    """What it is for all samples."""
    if isinstance(value, Several):
        items = [_plain(item) for item in value.items]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else type(value.items)(items)
    return value.value if isinstance(value, Known) else _UNKNOWN


def _resize(arguments: list[Value]) -> Any:
    """What resize() of Pillow's image gets, as a transform."""
    match [_plain(value) for value in arguments]:
        case [(int() as width, int() as height), *resample] if len(resample) <= 1:
            return transform_of_resize((width, height), *(resample or [None]))
    return None


def _joined(function: Any, tensors: Value, dim: Value = _FIRST) -> Joined | None:
    """Of images that code joins along their first axis, with a new one or not."""
    if not isinstance(tensors, Several) or not tensors.items or not _is_known([dim], 0):
        return None
    pictures = tuple(each for each in tensors.items if isinstance(each, Picture))
    return Joined(pictures, function) if len(pictures) == len(tensors.items) else None


def _tensor(arguments: list[Value], named: dict[str, Value]) -> Value | None:
    """Of a number."""
    dtype = named.get("dtype", Known(None))
    if named.keys() <= {"dtype"} and isinstance(dtype, Known) and len(arguments) == 1 and isinstance(arguments[0], Column):
        kinds, values, kind = set(map(type, arguments[0].values)), arguments[0].values, dtype.value
        if {*map(name_of, kinds)} == {"numpy.int64"}:
            kinds, values, kind = {int}, list(map(int, values)), torch.int64 if kind is None else kind
        if kinds in ({int}, {float}) and (kind is None or isinstance(kind, torch.dtype)):
            return Rows(torch.tensor(values, dtype=kind))
    raise NotNative(f"makes a tensor of {in_words(arguments[0])}" if arguments else "makes a tensor of nothing")


def _is_one_of(function: Any, functions: tuple) -> bool:
    return any(function is each for each in functions)


def _is_known(arguments: list[Value], value: Any) -> bool:
    """Whether they are one, and that is this number or object."""
    return len(arguments) == 1 and isinstance(arguments[0], Known) and type(arguments[0].value) in (type(value), float) and arguments[0].value == value


def _are(arguments: list[Value], text: str) -> bool:
    """Whether they are one text."""
    return len(arguments) == 1 and isinstance(arguments[0], Known) and type(arguments[0].value) is str and arguments[0].value == text


def _is_int(value: Value) -> bool:
    return isinstance(value, Known) and (value.value is int or (isinstance(value.value, type) and name_of(value.value) == "numpy.int64"))


def _axes_of(arguments: list[Value], rows: Rows) -> tuple[int, ...] | None:
    """What transpose() gets, if it is all axes."""
    given = arguments[0].items if len(arguments) == 1 and isinstance(arguments[0], Several) else arguments
    axes = tuple(map(_plain, given))
    return axes if set(map(type, axes)) == {int} and sorted(axes) == list(range(rows.container.ndim - 1)) else None
