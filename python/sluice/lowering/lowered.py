"""What a transform has been lowered to so far, and the arguments that many transforms have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from sluice.shipping.failures import NotNative

MAX_SIDE_PIXELS = 16384
MAX_OPS = 64


@dataclass
class Lowered:
    """The operations so far, and what they make. `kind`: an image, a tensor of its bytes, one of `floats` from 0 to 1 or normalised, or one of
    `unscaled` floats from 0 to 255. `size` is (height, width) once all samples have the same. `channels`: 3, or 1 of grey images."""

    ops: list[dict] = field(default_factory=lambda: [{"op": "decode_rgb"}])
    kind: str = "image"
    size: tuple[int, int] | None = None
    channels: int = 3
    v2: bool = False  # whether the transform at hand is of the second generation

    @classmethod
    def of_files(cls, only_rgb: bool, are_tensors: bool) -> Lowered:
        """`only_rgb`: nothing converts what is not RGB. `are_tensors`: torchvision decodes them, not Pillow. Both give the same bytes, but of files of 16 bits."""
        limits = {"only_rgb": only_rgb, "only_8_bits": are_tensors}
        return cls(ops=[{"op": "decode_rgb", **{name: True for name, holds in limits.items() if holds}}], kind="bytes" if are_tensors else "image")

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.kind in ("floats", "unscaled") else torch.uint8

    @property
    def generation(self) -> dict[str, int]:
        return {"generation": 2} if self.v2 else {}

    def add(self, op: str, **fields: Any) -> None:
        self.ops.append({"op": op, **fields})


@dataclass(frozen=True)
class ImageForm:
    """Of one image of a sample. `height` and `width` in pixels; `dtype` float32 or uint8; `channels`: 3, or 1 of grey images."""

    height: int
    width: int
    dtype: torch.dtype = torch.float32
    channels: int = 3

    @property
    def values(self) -> int:
        return self.channels * self.height * self.width

    def in_words(self) -> str:
        return f"[n, {self.channels}, {self.height}, {self.width}] {str(self.dtype).removeprefix('torch.')}"


@dataclass(frozen=True)
class LoweredImages:
    """Of a sample: what all its images share, and what each becomes behind that. Usually there is one."""

    shared: Lowered
    own: list[Lowered]

    def lists(self) -> list[list[dict]]:
        """Of operations: all of a single image's, or the shared ones and then each image's."""
        return [self.shared.ops, *(each.ops for each in self.own)] if len(self.own) > 1 else [self.shared.ops + self.own[0].ops]

    def images(self) -> tuple[ImageForm, ...]:
        """REQUIRES: each has a size"""
        return tuple(ImageForm(*each.size, each.dtype, each.channels) for each in self.own if each.size is not None)


def probability(step: Any) -> float:
    if not 0 <= step.p <= 1:
        raise NotNative(f"has the probability {step.p!r}")
    return float(step.p)


def fill_colour(fill: Any, channels: int = 3) -> dict[str, list[int]]:
    if channels == 1 and not isinstance(fill, (int, float, type(None))):
        raise NotNative(f"has the fill {fill!r}, not a number, for grey images")
    fills = [0] * 3 if fill is None else [fill] * 3 if isinstance(fill, (int, float)) else list(fill) if isinstance(fill, (list, tuple)) else []
    fills = fills * 3 if len(fills) == 1 else fills
    if len(fills) != 3 or not all(isinstance(value, (int, float)) and 0 <= value < 256 for value in fills):
        raise NotNative(f"has the fill {fill!r}, not one or three numbers from 0 to 255")
    return {"fill": [int(value) for value in fills]} if any(fills) else {}


def name_of(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    module = getattr(thing, "__module__", None) or type(thing).__module__
    short = module.replace("torchvision.transforms.transforms", "torchvision.transforms")
    return name if short in ("builtins", "__main__") else f"{short}.{name}"
