"""torchvision's transforms as native operations (protocols.md, section 5): one function and one line of a table for each.

A transform that is not in the table, a subclass, a hook or an unusual argument is an obstacle, and all obstacles are named.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch

from sluice.lowering.augmentations import (
    MOST_PIXELS_OF_EXACT_MEAN, arithmetic_of_colours, at_random, auto_augment, below_or_equal, rand_augment, random_rotation, sharpness, solarize_threshold,
    trivial_augment,
)  # fmt: skip
from sluice.lowering.late_changes import keeps_position
from sluice.lowering.library_transforms import generations, is_changed, is_of
from sluice.lowering.lowered import MAX_OPS, MAX_SIDE_PIXELS, Lowered, LoweredImages, fill_colour, name_of, probability
from sluice.lowering.pictures import Step, Views
from sluice.lowering.tensor_steps import AsFloats, TensorStep
from sluice.shipping.failures import NotNative


def lower_views(views: Views, obstacles: list[str], source: Lowered) -> LoweredImages:
    """What the images of a sample become. Adds to `obstacles` what keeps them in Python. `source`: what the first transform gets, and what is shared is
    added to."""
    before = len(obstacles)
    _lower_steps(views.shared, obstacles, source, "")
    several = len(views.own) > 1
    if several and source.dtype is torch.float32:
        obstacles.append("its images share transforms to floats")
    made, told = [], set[tuple[int, ...]]()
    for number, steps in enumerate(views.own, 1):
        view, found = dataclasses.replace(source, ops=[]), list[str]()
        _lower_steps(steps, found, view, f" of image {number}" if several else "")
        made.append(view)
        transforms = tuple(id(step.transform) for step in steps)
        if transforms not in told:  # The same transforms have the same obstacles.
            obstacles += found
        told.add(transforms)
    if len(obstacles) == before:
        for view in made:
            obstacles += [each for each in _obstacles_of_the_result(view, len(source.ops) + len(view.ops)) if each not in obstacles]
    return LoweredImages(source, made)


def _lower_steps(steps: Sequence[Step], obstacles: list[str], lowered: Lowered, of: str) -> None:
    for number, step in enumerate(steps, 1):
        transform = step.transform
        name = transform.in_words if isinstance(transform, TensorStep) else name_of(transform if isinstance(transform, FunctionType) else type(transform))
        try:
            _lower_step(transform, lowered)
        except NotNative as reason:
            obstacles.append(f"transform {number}{of}, {name}, {reason}{f' ({step.reason})' if step.reason else ''}" if transform is not None else "there is no transform")


def transform_of_kind(kind: Any, arguments: Sequence[Any], named: dict[str, Any]) -> Any:
    """A transform of torchvision's, if `kind` is one that has a native form, or Compose; else None. Making one draws nothing and changes nothing."""
    is_known = isinstance(kind, type) and any(is_of(module, kind) and kind is getattr(module, kind.__name__, None) for module in generations())
    return kind(*arguments, **named) if is_known and kind.__name__ in (*_TRANSFORMS, "Compose") else None


def _obstacles_of_the_result(lowered: Lowered, operations: int) -> list[str]:
    obstacles = []
    if lowered.size is None:
        obstacles.append("nothing brings the images to one size")
    elif max(lowered.size) > MAX_SIDE_PIXELS:
        obstacles.append(f"the images have a side above {MAX_SIDE_PIXELS} pixels")
    if lowered.kind == "image":
        obstacles.append("the transforms end with an image: ToTensor or PILToTensor is missing")
    if operations > MAX_OPS:
        obstacles.append(f"there are more than {MAX_OPS} operations")
    return obstacles


def _module_of(step: Any) -> Any:
    """torchvision's module that has it; None of a transform without a line in the table."""
    name = type(step).__name__
    return next((module for module in generations() if name in _TRANSFORMS and type(step) is getattr(module, name, None) and is_of(module, type(step))), None)


def _lower_step(step: Any, lowered: Lowered) -> None:
    if isinstance(step, TensorStep):
        return step.lower(lowered)
    name, module = type(step).__name__, _module_of(step)
    if module is None:
        is_torchvisions = type(step).__module__.startswith("torchvision.")
        raise NotNative("has no native form" + (_REASONS.get(name, "") if is_torchvisions else ""))
    if is_changed(step):
        raise NotNative("has a hook, or a method of its own")
    takes, lower = _TRANSFORMS[name]
    conversion = _conversion_behind_moves(name, lowered)
    if lowered.kind not in takes and not conversion:
        raise NotNative(f"has no native form on {_KINDS[lowered.kind]}")
    lowered.v2 = module.__name__.endswith(".v2")
    before = len(lowered.ops)
    lower(step, lowered)
    if keeps_position(step):
        for op in lowered.ops[before:]:
            op["keep_position"] = True
    lowered.ops += conversion


def _conversion_behind_moves(name: str, lowered: Lowered) -> list[dict]:
    """The operations at the end that change each value by itself, if the transform only moves values: it is lowered before these. They are taken away."""
    start = len(lowered.ops)
    while name in _MOVES and start and lowered.ops[start - 1]["op"] in ("to_tensor", "to_float", "normalize"):
        start -= 1
    if start == len(lowered.ops) or lowered.ops[start]["op"] == "normalize":  # Behind something else.
        return []
    conversion = lowered.ops[start:]
    del lowered.ops[start:]
    return conversion


_KINDS = {"image": "an image", "bytes": "a tensor of bytes", "unscaled": "a tensor of floats from 0 to 255", "floats": "a tensor of floats"}

# Why an operation stays in Python although it is common.
_REASONS = {"GaussianBlur": ": torch computes its weights with the exponential of a vendor's library, whose last bit depends on the processor"}


def _random_resized_crop(step: Any, lowered: Lowered) -> None:
    scale = [float(x) for x in step.scale]
    if not 0 < scale[0] <= scale[1] <= 1:
        raise NotNative("has a scale that is no ordered range within 0 and 1")
    lowered.size = _pair(step.size)
    lowered.add("random_resized_crop", size=list(lowered.size), scale=scale, **_ratio(step), interpolation=_interpolation(step, lowered))


def _resize(step: Any, lowered: Lowered) -> None:
    size = [step.size] if isinstance(step.size, int) else list(step.size or [])
    if len(size) not in (1, 2) or not all(_is_side(side) for side in size):
        raise NotNative(f"has the size {step.size!r}, not one or two positive integers")
    limit = {}
    if step.max_size is not None:
        if len(size) == 2 or not isinstance(step.max_size, int) or not size[0] < step.max_size <= 2 * MAX_SIDE_PIXELS:
            raise NotNative(f"has a max_size of {step.max_size!r} with the size {step.size!r}")
        limit = {"max_size": step.max_size}
    if len(size) == 2:
        lowered.size = (size[0], size[1])
    elif lowered.size is not None:
        lowered.size = _shorter_side_resized(lowered.size, size[0], step.max_size)
    lowered.add("resize", size=size, **limit, interpolation=_interpolation(step, lowered))


def _shorter_side_resized(image: tuple[int, int], side: int, max_size: int | None) -> tuple[int, int]:
    shorter, longer = side, int(side * max(image) / min(image))
    if max_size is not None and longer > max_size:
        shorter, longer = int(max_size * shorter / longer), max_size
    return (longer, shorter) if image[1] <= image[0] else (shorter, longer)


def _center_crop(step: Any, lowered: Lowered) -> None:
    before, lowered.size = lowered.size, _pair(step.size)
    if lowered.dtype is torch.float32 and not (before is not None and before[0] >= lowered.size[0] and before[1] >= lowered.size[1]):
        raise NotNative("may add a border to a tensor of floats")
    lowered.add("center_crop", size=list(lowered.size))


def _random_crop(step: Any, lowered: Lowered) -> None:
    if lowered.dtype is torch.float32 and (step.padding is not None or step.pad_if_needed):
        raise NotNative("may add a border to a tensor of floats")
    border = {} if step.padding is None and not step.pad_if_needed else _border(step, lowered)
    if step.padding is not None:
        padding = step.padding
        if lowered.v2:  # keeps it as left, right, top, bottom
            padding = [padding[place] for place in (0, 2, 1, 3)]
            if step.pad_if_needed and step.padding_mode != "constant":
                raise NotNative("pads in two ways at once")
        lowered.add("pad", padding=_padding(padding), **border)
    lowered.size = _pair(step.size)
    needed = {"pad_if_needed": True, **border} if step.pad_if_needed else {}
    lowered.add("random_crop", size=list(lowered.size), **lowered.generation, **needed)


def _pad(step: Any, lowered: Lowered) -> None:
    left, top, right, bottom = padding = _padding(step.padding)
    if lowered.size is not None:
        lowered.size = (lowered.size[0] + top + bottom, lowered.size[1] + left + right)
    lowered.add("pad", padding=padding, **_border(step, lowered))


def _with_probability(op: str) -> Callable[[Any, Lowered], None]:
    return lambda step, lowered: lowered.add(op, p=probability(step))


def _random_grayscale(step: Any, lowered: Lowered) -> None:
    lowered.add("random_grayscale", p=probability(step), **arithmetic_of_colours(lowered))


def _grayscale(step: Any, lowered: Lowered) -> None:
    before, lowered.channels = lowered.channels, step.num_output_channels
    if lowered.channels not in (1, 3):
        raise NotNative(f"makes {lowered.channels} channels, not 1 or 3")
    if (before, lowered.channels) != (1, 1):
        lowered.add("grayscale", **({"channels": 1} if lowered.channels == 1 else {}), **arithmetic_of_colours(lowered, before))


def _color_jitter(step: Any, lowered: Lowered) -> None:
    names = ("brightness", "contrast", "saturation", "hue")
    ranges = {name: [float(x) for x in value] for name in names if (value := getattr(step, name)) is not None}
    if any(high > 1e6 for _, high in ranges.values()):
        raise NotNative("has a factor above a million")
    if lowered.kind == "bytes" and "contrast" in ranges and (lowered.size is None or math.prod(lowered.size) > MOST_PIXELS_OF_EXACT_MEAN):
        raise NotNative(f"takes the mean of more than {MOST_PIXELS_OF_EXACT_MEAN} pixels, or of any number, which torch adds up in an order of its own")
    lowered.add("color_jitter", **ranges, **arithmetic_of_colours(lowered))


def _random_apply(step: Any, lowered: Lowered) -> None:
    if type(step.transforms) not in (list, tuple, torch.nn.ModuleList) or not step.transforms:
        raise NotNative("has no list of transforms")
    inner = Lowered(ops=[], kind=lowered.kind, size=lowered.size, channels=lowered.channels)
    for transform in step.transforms:
        try:
            _lower_step(transform, inner)
        except NotNative as reason:
            raise NotNative(f"applies {name_of(type(transform))}, which {reason}") from None
    if (inner.kind, inner.channels) != (lowered.kind, lowered.channels) or any(op["op"] in _CHANGE_SIZE | {"random_apply"} for op in inner.ops):
        raise NotNative("applies transforms of the size, of the number of channels, to tensors, or applied at random themselves")
    kept = [op.pop("keep_position", False) for op in inner.ops]
    below = probability(step) if lowered.v2 else below_or_equal(probability(step))
    if inner.ops:
        lowered.add("random_apply", p=below, ops=inner.ops, **({"keep_position": True} if any(kept) else {}))


_CHANGE_SIZE = {"random_resized_crop", "resize", "center_crop", "random_crop", "pad"}


def _to_bytes(step: Any, lowered: Lowered) -> None:
    lowered.kind = "bytes"


def _to_tensor(step: Any, lowered: Lowered) -> None:
    lowered.kind = "floats"
    lowered.add("to_tensor")


def _to_dtype(step: Any, lowered: Lowered) -> None:
    if step.dtype is lowered.dtype:
        return
    if step.dtype is not torch.float32 or type(step.scale) is not bool:
        raise NotNative("is not to uint8 or float32")
    if not step.scale:
        return AsFloats().lower(lowered)
    lowered.kind = "floats"
    lowered.add("to_float")


def _convert_image_dtype(step: Any, lowered: Lowered) -> None:
    if step.dtype is lowered.dtype:
        return
    if step.dtype is not torch.float32 or lowered.kind != "bytes":
        raise NotNative("is not from bytes to float32")
    lowered.kind = "floats"
    lowered.add("to_float" if lowered.v2 else "to_tensor")  # The one multiplies, the other divides.


def _nothing(step: Any, lowered: Lowered) -> None:
    """Which class of tensors it is: a batch is of torch's own."""


def _normalize(step: Any, lowered: Lowered) -> None:
    mean, std = _channels(step.mean, lowered), _channels(step.std, lowered)
    if not all(torch.tensor(std)):
        raise NotNative("has a standard deviation of zero")
    if not all(map(math.isfinite, mean + std)):
        raise NotNative("has a number that is not finite")
    lowered.add("normalize", mean=mean, std=std)


def _random_erasing(step: Any, lowered: Lowered) -> None:
    if step.value is None or isinstance(step.value, str):
        raise NotNative("erases with random values, which torch draws in its own way")
    scale = [float(x) for x in step.scale]
    if not 0 <= scale[0] <= scale[1] <= 1:
        raise NotNative("has a scale that is no ordered range within 0 and 1")
    lowered.add("random_erasing", p=probability(step), scale=scale, **_ratio(step), value=_channels(step.value, lowered))


# A line for each transform: what it takes, and the function that lowers it. Crops and flips of a tensor of bytes only move
# pixels, and native executors know how a resize and colours round there; everything else rounds differently.
_TRANSFORMS: dict[str, tuple[tuple[str, ...], Callable[[Any, Lowered], None]]] = {
    "RandomResizedCrop": (("image", "bytes"), _random_resized_crop),
    "Resize": (("image", "bytes"), _resize),
    "CenterCrop": (("image", "bytes"), _center_crop),
    "RandomCrop": (("image", "bytes"), _random_crop),
    "Pad": (("image", "bytes"), _pad),
    "RandomHorizontalFlip": (("image", "bytes"), _with_probability("random_horizontal_flip")),
    "RandomVerticalFlip": (("image", "bytes"), _with_probability("random_vertical_flip")),
    "RandomGrayscale": (("image", "bytes"), _random_grayscale),
    "Grayscale": (("image", "bytes"), _grayscale),
    "ColorJitter": (("image", "bytes"), _color_jitter),
    "RandomRotation": (("image",), random_rotation),
    "RandomInvert": (("image", "bytes"), at_random("Invert")),
    "RandomPosterize": (("image", "bytes"), at_random("Posterize", lambda step, lowered: step.bits)),
    "RandomSolarize": (("image", "bytes"), at_random("Solarize", solarize_threshold)),
    "RandomAdjustSharpness": (("image", "bytes"), at_random("Sharpness", sharpness)),
    "RandomAutocontrast": (("image", "bytes"), at_random("AutoContrast")),
    "RandomEqualize": (("image", "bytes"), at_random("Equalize")),
    "TrivialAugmentWide": (("image",), trivial_augment),
    "RandAugment": (("image",), rand_augment),
    "AutoAugment": (("image",), auto_augment),
    "RandomApply": (("image", "bytes"), _random_apply),
    "PILToTensor": (("image",), _to_bytes),
    "ToImage": (("image", "bytes"), _to_bytes),
    "ToPureTensor": (("bytes", "unscaled", "floats"), _nothing),
    "ToTensor": (("image",), _to_tensor),
    "ToDtype": (("bytes", "unscaled", "floats"), _to_dtype),
    "ConvertImageDtype": (("bytes", "unscaled", "floats"), _convert_image_dtype),
    "Normalize": (("unscaled", "floats"), _normalize),
    "RandomErasing": (("unscaled", "floats"), _random_erasing),
}


# These only move values, so they may as well move bytes before these become floats.
_MOVES = ("RandomHorizontalFlip", "RandomVerticalFlip", "CenterCrop", "RandomCrop")


def _interpolation(step: Any, lowered: Lowered) -> str:
    name = getattr(step.interpolation, "value", step.interpolation)
    if name not in ("bilinear", "bicubic", "nearest"):
        raise NotNative(f"has the interpolation {name}, not bilinear, bicubic or nearest")
    if type(step.interpolation) is str and not lowered.v2:
        raise NotNative("has a text for its interpolation, which torchvision refuses")
    if step.antialias is False:
        raise NotNative("has antialias=False")
    if lowered.kind == "image":
        return name
    if not lowered.v2 or step.antialias is not True or not _are_bytes_resized_as_such(name):
        raise NotNative("resizes a tensor of bytes as one of floats")
    return f"tensor_{name}"


def _are_bytes_resized_as_such(interpolation: str) -> bool:
    """Whether torchvision gives torch uint8 to interpolate on this processor, and no floats."""
    geometry: Any = sys.modules.get("torchvision.transforms.v2.functional._geometry")
    says_so = getattr(geometry, "_do_native_uint8_resize_on_cpu", None)
    return interpolation != "nearest" and says_so is not None and bool(says_so(geometry.InterpolationMode(interpolation)))


def _ratio(step: Any) -> dict[str, list[float]]:
    ratio = [float(x) for x in step.ratio]
    if not 0 < ratio[0] <= ratio[1] <= MAX_SIDE_PIXELS:
        raise NotNative("has a ratio that is no ordered positive range")
    return {"ratio": ratio, "log_ratio": torch.log(torch.tensor(step.ratio)).tolist()}  # torch's own float32 logarithm, last bit included


def _is_side(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_SIDE_PIXELS


def _pair(size: Any) -> tuple[int, int]:
    values = [size, size] if isinstance(size, int) else list(size)
    values = values * 2 if len(values) == 1 else values
    if len(values) != 2 or not all(_is_side(value) for value in values):
        raise NotNative(f"has the size {size!r}, not one or two positive integers")
    return values[0], values[1]


def _padding(padding: Any) -> list[int]:
    """[left, top, right, bottom]"""
    values = [padding] if isinstance(padding, int) else list(padding)
    values = values * (4 // len(values)) if len(values) in (1, 2) else values
    if len(values) != 4 or not all(value == 0 or _is_side(value) for value in values):
        raise NotNative(f"has the padding {padding!r}, not one, two or four integers from 0")
    return values


def _border(step: Any, lowered: Lowered) -> dict[str, Any]:
    if lowered.kind == "bytes" and not (step.padding_mode == "constant" and type(step.fill) is int):
        raise NotNative("pads a tensor with more than one whole number")
    if step.padding_mode != "constant":
        return {"mode": step.padding_mode}
    return fill_colour(step.fill, lowered.channels)


def _channels(values: Any, lowered: Lowered) -> list[float]:
    """A number for each channel of an executor's images; grey ones have three equal channels there."""
    try:
        channels = [float(value) for value in values]
    except TypeError:
        channels = [float(values)]
    if len(channels) not in (1, lowered.channels):
        raise NotNative(f"has {len(channels)} channels, not {lowered.channels}")
    return channels * 3 if len(channels) == 1 else channels
