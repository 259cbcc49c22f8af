"""Transforms that change pixels at random, as native operations: RandAugment and its kin, rotations, and single augmentations.

The magnitudes are those of the user's own torchvision.
"""

from __future__ import annotations

import functools
import math
import sys
import zlib
from collections.abc import Callable
from typing import Any

import torch

from sluice.lowering.lowered import MAX_OPS, MAX_SIDE_PIXELS, Lowered, fill_colour, probability
from sluice.shipping.failures import NotNative

# torch.rand gives one of 2^24 numbers. An operation applies to those below its `p`.
_GRID = 2.0**24


def below_or_equal(chance: float) -> float:
    """The `p` of random_apply for a comparison in float32 that includes the chance itself."""
    return min(1.0, (math.floor(torch.tensor(chance, dtype=torch.float32).item() * _GRID) + 1) / _GRID)


# torch adds up float32 in an order of its own. Up to here all sums of greys are exact, as no grey of a tensor is above 254.
MOST_PIXELS_OF_EXACT_MEAN = 2**24 // 254


def arithmetic_of_colours(lowered: Lowered, channels: int | None = None) -> dict[str, str]:
    """A field of operations; none on a PIL image. `channels`: that the image has before; None: those that it has now."""
    if lowered.kind == "image":
        return {}
    if not lowered.v2:
        raise NotNative("rounds otherwise on a tensor in the first generation")
    if (channels or lowered.channels) != 3:
        raise NotNative("has no native form on a tensor of one channel")
    if not _are_tensors_known():
        raise NotNative("rounds otherwise than executors do, on this processor or in this torchvision")
    return {"arithmetic": "tensor"}


@functools.cache
def _are_tensors_known() -> bool:
    """Whether torchvision makes of a small tensor what executors do. They round once for a product and its sum, as torch does on processors with FMA."""
    functions: Any = sys.modules["torchvision.transforms.v2.functional"]
    values = torch.arange(3 * 64 * 48, device="cpu").mul_(7919).floor_divide_(8).remainder_(256).to(torch.uint8).reshape(3, 64, 48)
    values[:, 0, :4] = torch.tensor([[20, 40, 110, 250], [152, 244, 111, 9], [7, 244, 26, 228]], dtype=torch.uint8, device="cpu")  # Greys that round.
    image = functions.adjust_hue(functions.adjust_contrast(functions.adjust_saturation(values, 1.4), 0.7), 0.1)
    image = functions.autocontrast(functions.adjust_sharpness(functions.adjust_brightness(image, 0.9), 1.7))
    made = torch.cat([image, functions.rgb_to_grayscale(values, num_output_channels=3)])
    return zlib.crc32(bytes(made.flatten().tolist())) == _KNOWN


_KNOWN = 0xEDF1AA06


def at_random(name: str, magnitude: Callable[[Any, Lowered], float | None] = lambda step, lowered: None) -> Callable[[Any, Lowered], None]:
    """One augmentation, with a probability."""

    def lower(step: Any, lowered: Lowered) -> None:
        below = probability(step) if lowered.v2 else math.ceil(probability(step) * _GRID) / _GRID
        augmentation = _augmentation(name, magnitude(step, lowered), False)
        if name in ("Sharpness", "AutoContrast") and arithmetic_of_colours(lowered, 3):
            augmentation["name"] = f"tensor_{augmentation['name']}"
        lowered.add("random_apply", p=below, ops=[{"op": "augment", **augmentation}])

    return lower


def _augmentation(name: str, magnitude: Any, signed: bool) -> dict[str, Any]:
    """`magnitude`: None, a number, or those to draw from, as torchvision has them."""
    magnitudes = [] if magnitude is None else magnitude.tolist() if isinstance(magnitude, torch.Tensor) else magnitude
    magnitudes = [float(value) for value in (magnitudes if isinstance(magnitudes, list) else [magnitudes])]
    if name in ("TranslateX", "TranslateY"):
        magnitudes = [float(int(value)) for value in magnitudes]
    if name == "Posterize" and not all(1 <= value <= 8 and value == int(value) for value in magnitudes):
        raise NotNative("posterizes to other than 1 to 8 bits")
    if not all(math.isfinite(value) and abs(value) <= _LARGEST_MAGNITUDES.get(name, 1e6) for value in magnitudes):
        raise NotNative(f"has a magnitude of {name} that is too large")
    fields: dict[str, Any] = {"name": _AUGMENTATIONS[name]}
    if magnitudes:
        fields["magnitudes"] = magnitudes
    return {**fields, "signed": True} if signed else fields


_AUGMENTATIONS = {"Identity": "identity", "ShearX": "shear_x", "ShearY": "shear_y", "TranslateX": "translate_x", "TranslateY": "translate_y",
                  "Rotate": "rotate", "Brightness": "brightness", "Color": "color", "Contrast": "contrast", "Sharpness": "sharpness",
                  "Posterize": "posterize", "Solarize": "solarize", "AutoContrast": "autocontrast", "Equalize": "equalize", "Invert": "invert"}
_LARGEST_MAGNITUDES = {"ShearX": 100, "ShearY": 100, "TranslateX": MAX_SIDE_PIXELS, "TranslateY": MAX_SIDE_PIXELS}


def solarize_threshold(step: Any, lowered: Lowered) -> float:
    if lowered.kind == "image":
        return step.threshold
    if not 0 <= step.threshold <= 255:
        raise NotNative(f"has a threshold of {step.threshold} on a tensor")
    return torch.tensor(step.threshold, dtype=torch.float32).item()  # as torch compares


def sharpness(step: Any, lowered: Lowered) -> float:
    """An augmentation's factor is 1 + magnitude. On a tensor the magnitude itself counts."""
    factor = float(step.sharpness_factor)
    if factor < 0 or lowered.kind == "image" and 1.0 + (factor - 1.0) != factor:
        raise NotNative(f"has a sharpness_factor of {factor}")
    return factor - 1.0


def _space(step: Any, lowered: Lowered, bins: int, depends_on_size: bool = True) -> dict[str, tuple[Any, bool]]:
    """The user's own torchvision's magnitudes: a name, and a tensor (with dimensions where one is drawn or chosen) or None."""
    if depends_on_size and lowered.size is None:
        raise NotNative("depends on the size of an image, and nothing before it brings them to one")
    size = lowered.size or (1, 1)
    if lowered.v2:
        space = {name: (magnitudes(bins, *size), signed) for name, (magnitudes, signed) in step._AUGMENTATION_SPACE.items()}
        for name in {"Solarize"} & space.keys():  # a share of 255
            space[name] = ([255.0 * float(share) for share in space[name][0]], space[name][1])
    else:
        space = step._augmentation_space(bins, size) if depends_on_size else step._augmentation_space(bins)
    if not space.keys() <= _AUGMENTATIONS.keys():
        raise NotNative(f"has the augmentations {sorted(space.keys() - _AUGMENTATIONS.keys())}")
    return {name: (None if magnitudes is None or getattr(magnitudes, "ndim", 1) == 0 else magnitudes, signed) for name, (magnitudes, signed) in space.items()}


def trivial_augment(step: Any, lowered: Lowered) -> None:
    if type(step.num_magnitude_bins) is not int or not 2 <= step.num_magnitude_bins <= 256:
        raise NotNative(f"has {step.num_magnitude_bins} magnitude bins, not 2 to 256")
    space = _space(step, lowered, step.num_magnitude_bins, depends_on_size=False)
    lowered.add("random_augment", choices=[_augmentation(name, *choice) for name, choice in space.items()], **_affine_style(step, lowered), **lowered.generation)


def rand_augment(step: Any, lowered: Lowered) -> None:
    bins, chosen = step.num_magnitude_bins, step.magnitude
    if not all(type(value) is int for value in (bins, chosen, step.num_ops)) or not 0 <= chosen < bins or bins < 2:
        raise NotNative(f"has the magnitude {chosen} of {bins}")
    space = _space(step, lowered, bins)
    choices = [_augmentation(name, None if magnitudes is None else float(magnitudes[chosen]), signed) for name, (magnitudes, signed) in space.items()]
    for _ in range(min(step.num_ops, MAX_OPS + 1)):
        lowered.add("random_augment", choices=choices, **_affine_style(step, lowered), **lowered.generation)


def auto_augment(step: Any, lowered: Lowered) -> None:
    space = _space(step, lowered, 10)

    def change(name: str, probability: float, chosen: int | None) -> dict[str, Any]:
        magnitudes, signed = space[name]
        return {"p": float(probability), **_augmentation(name, None if magnitudes is None or chosen is None else float(magnitudes[chosen]), signed)}

    policies = [[change(*first), change(*second)] for first, second in (step._policies if lowered.v2 else step.policies)]
    lowered.add("auto_augment", policies=policies, **_affine_style(step, lowered), **lowered.generation)


def random_rotation(step: Any, lowered: Lowered) -> None:
    if step.expand or step.center is not None:
        raise NotNative("turns about a point of its own, or changes the size")
    low, high = (float(angle) for angle in step.degrees)
    if not -1e6 <= low <= high <= 1e6:
        raise NotNative(f"has the degrees {step.degrees!r}")
    lowered.add("random_rotation", degrees=[low, high], **_affine_style(step, lowered))


def _affine_style(step: Any, lowered: Lowered) -> dict[str, Any]:
    name = getattr(step.interpolation, "value", step.interpolation)
    if name not in ("nearest", "bilinear"):
        raise NotNative(f"has the interpolation {name}, not nearest or bilinear")
    return {"interpolation": name, **fill_colour(step.fill, lowered.channels)}
