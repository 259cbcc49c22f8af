"""torchvision's own classes and functions of transforms: which objects are of them, and unchanged by the program."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import torch


def generations() -> list:
    return [module for name in ("torchvision.transforms", "torchvision.transforms.v2") if (module := sys.modules.get(name))]


def is_of(module: Any, kind: type) -> bool:
    """Whether a class is one that torchvision's module comes with: a program may have put one of its own in the place."""
    return kind.__module__.startswith(f"{module.__name__}.")


def is_changed(step: Any) -> bool:
    """Whether a program has added code of its own to a transform, or put it in the place of a method."""
    if getattr(step, "_forward_hooks", None) or getattr(step, "_forward_pre_hooks", None):
        return True
    return any(callable(getattr(type(step), name, None)) for name in getattr(step, "__dict__", ())) or not all(map(_has_own_methods, type(step).__mro__))


def _has_own_methods(kind: type) -> bool:
    """Of a class of torchvision's: whether the library has defined all of them."""
    if not kind.__module__.startswith("torchvision.transforms."):
        return True
    functions = (getattr(value, "__func__", value) for value in vars(kind).values())
    return all(value.__globals__.get("__name__", "").startswith("torchvision.transforms.") for value in functions if isinstance(value, FunctionType))


def steps_of(transform: Any) -> list[Any] | None:
    """What comes one after the other in torchvision's own Compose, or in a Sequential; None of others."""
    if is_changed(transform):
        return None
    if any(type(transform) is module.Compose and is_of(module, module.Compose) for module in generations()):
        return list(transform.transforms)
    return list(transform) if type(transform) is torch.nn.Sequential else None


def leaves_other_values(transform: Any) -> bool:
    """Whether it changes the image among its arguments, and returns numbers and texts beside it as they are: torchvision's of the second generation do."""
    v2 = sys.modules.get("torchvision.transforms.v2")
    steps = transform.transforms if v2 is not None and type(transform) is v2.Compose else [transform]
    return v2 is not None and all(isinstance(step, v2.Transform) and is_of(v2, type(step)) for step in steps)


# Functions of torchvision's that do what a transform does which draws nothing, with its arguments behind the image.
_FUNCTIONS = {
    "to_tensor": "ToTensor", "pil_to_tensor": "PILToTensor", "to_image": "ToImage", "to_dtype": "ToDtype", "convert_image_dtype": "ConvertImageDtype",
    "normalize": "Normalize", "resize": "Resize", "center_crop": "CenterCrop", "pad": "Pad"
}  # fmt: skip


def transform_of_function(function: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """The transform that does what torchvision's function does with these arguments; None of another function."""
    name = getattr(function, "__name__", "")
    if (kind := _FUNCTIONS.get(name)) is None:
        return None
    for transforms in generations():
        functions = sys.modules.get(f"{transforms.__name__}.functional")
        is_its_own = function is getattr(functions, name, None)
        if is_its_own and function.__globals__["__name__"].startswith(f"{transforms.__name__}."):
            return getattr(transforms, kind)(*arguments, **named)
    return None


def transform_of_resize(size: tuple[int, int], resample: Any) -> Any:
    """The transform that does what resize() of Pillow's images does. `size`: (width, height). `resample`: Pillow's number; None: its default. None of others."""
    transforms, pillow = sys.modules.get("torchvision.transforms"), sys.modules["PIL.Image"]
    names = {pillow.Resampling.NEAREST: "nearest", pillow.Resampling.BILINEAR: "bilinear", pillow.Resampling.BICUBIC: "bicubic", None: "bicubic"}
    if transforms is None or resample not in names:
        return None
    return transforms.Resize([size[1], size[0]], transforms.InterpolationMode(names[resample]))
