"""What a transform has been lowered to so far, and the arguments that many transforms have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from sluice.failures import NotNative

MAX_SIDE_PIXELS = 16384
MAX_OPS = 64


@dataclass
class Lowered:
    """The operations so far, and what they make: an image, a tensor of its bytes, or one of floats. `size` is (height, width)
    once all samples have the same. `channels`: 3, or 1 of grey images."""

    ops: list[dict] = field(default_factory=lambda: [{"op": "decode_rgb"}])
    kind: str = "image"
    size: tuple[int, int] | None = None
    channels: int = 3
    v2: bool = False  # whether the transform at hand is of the second generation

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.kind == "floats" else torch.uint8

    @property
    def generation(self) -> dict[str, int]:
        return {"generation": 2} if self.v2 else {}

    def add(self, op: str, **fields: Any) -> None:
        self.ops.append({"op": op, **fields})


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
