"""What a Dataset's code itself does to an image that is a tensor of bytes, as one of the steps that its transforms are (pictures.py)."""

from __future__ import annotations

from sluice.lowering.lowered import Lowered
from sluice.shipping.failures import NotNative


class TensorStep:
    """`in_words`: as the code has it."""

    in_words = ""

    def lower(self, lowered: Lowered) -> None:
        """Raises NotNative."""
        raise NotImplementedError


class AsFloats(TensorStep):
    """To float32 from 0 to 255."""

    in_words = "float()"

    def lower(self, lowered: Lowered) -> None:
        if lowered.kind == "image":
            raise NotNative("has no native form on an image")
        if lowered.kind == "bytes":
            lowered.kind = "unscaled"
            lowered.add("to_float", scale=False)


class Over255(TensorStep):
    """To float32 from 0 to 1, by the division that ToTensor does, too."""

    in_words = "/ 255"

    def lower(self, lowered: Lowered) -> None:
        if lowered.kind == "unscaled" and lowered.ops[-1] == {"op": "to_float", "scale": False}:
            lowered.ops.pop()
        elif lowered.kind != "bytes":
            raise NotNative("has no native form on what is no tensor of bytes")
        lowered.kind = "floats"
        lowered.add("to_tensor")
