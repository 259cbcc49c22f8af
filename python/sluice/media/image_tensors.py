"""torchvision's ToTensor and Normalize of RGB images, natively and with torchvision's bytes.

What is not the usual case (another mode, dtype or shape, in place, a subclass, a hook) is torchvision's own business.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import torch
from PIL import Image
from torch import nn

from sluice.media.image_library import ImageLibrary

_FUNCTIONS = "torchvision.transforms.functional"
_TRANSFORMS = "torchvision.transforms.transforms"
_MOST_KEPT = 64
_OWN_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_compiled_call_impl")
_HOOKS_OF_ALL = [hooks for name, hooks in vars(nn.modules.module).items() if name.startswith("_global_") and name.endswith("_hooks")]


class ImageTensors:
    """Takes the place of torchvision's `to_tensor`, and of what calls a Normalize, in this process. TorchScript compiles neither:
    it goes by Normalize.forward, which stays."""

    def __init__(self, library: ImageLibrary, image_classes: frozenset[type]) -> None:
        """`image_classes`: those whose pixels are what tobytes() says."""
        self._library = library
        self._image_classes = image_classes
        self._means_and_deviations: dict[tuple, tuple[torch.Tensor, torch.Tensor] | None] = {}
        self._to_tensor_before: Any = None
        self._lock = threading.Lock()

    def install(self) -> None:
        """Once torchvision is imported; before that, and afterwards, it does nothing."""
        if self._to_tensor_before is not None:
            return
        functions: Any = sys.modules.get(_FUNCTIONS)
        transforms: Any = sys.modules.get(_TRANSFORMS)
        if not hasattr(functions, "to_tensor") or not hasattr(transforms, "Normalize"):
            return
        with self._lock:
            if self._to_tensor_before is None:
                transforms.Normalize.__call__ = self._calling(transforms.Normalize)
                self._to_tensor_before = functions.to_tensor
                functions.to_tensor = self._to_tensor

    def remove(self) -> None:
        if self._to_tensor_before is not None:
            vars(sys.modules[_FUNCTIONS])["to_tensor"] = self._to_tensor_before
            del sys.modules[_TRANSFORMS].Normalize.__call__
            self._to_tensor_before = None

    def _to_tensor(self, pic: Any) -> torch.Tensor:
        if type(pic) not in self._image_classes or pic.mode != "RGB" or torch.get_default_dtype() is not torch.float32:
            return self._to_tensor_before(pic)
        width, height = pic.size
        pixels = pic.tobytes()
        tensor = torch.empty((3, height, width), dtype=torch.float32, device="cpu")
        self._library.tensor(pixels, tensor.data_ptr())
        return tensor

    def _calling(self, normalize_class: Any) -> Any:
        """What calls a transform of the class."""
        forward = normalize_class.forward

        def call(transform: nn.Module, *arguments: Any, **options: Any) -> Any:
            usual = len(arguments) == 1 and not options and type(transform) is normalize_class and not transform.inplace
            if usual and _is_plain_image(arguments[0]) and normalize_class.forward is forward and not is_hooked(transform):
                numbers = self._numbers(transform.mean, transform.std)
                if numbers is not None:
                    return self._normalized(arguments[0], *numbers)
            return nn.Module.__call__(transform, *arguments, **options)

        return call

    def _normalized(self, tensor: torch.Tensor, means: torch.Tensor, deviations: torch.Tensor) -> torch.Tensor:
        normalized = torch.empty_like(tensor)
        plane = tensor.shape[1] * tensor.shape[2]
        self._library.normalize(tensor.data_ptr(), plane, means.data_ptr(), deviations.data_ptr(), normalized.data_ptr())
        return normalized

    def _numbers(self, mean: Any, std: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Both as torch rounds them; None for what is not three finite numbers each, or would be refused."""
        if not (_are_numbers(mean) and _are_numbers(std)):
            return None
        key = (*mean, *std)
        if key not in self._means_and_deviations:
            means, deviations = (torch.tensor(list(map(float, values)), dtype=torch.float32, device="cpu") for values in (mean, std))
            usable = bool(torch.isfinite(means).all() and torch.isfinite(deviations).all() and (deviations != 0).all())
            if len(self._means_and_deviations) >= _MOST_KEPT:
                self._means_and_deviations.clear()
            self._means_and_deviations[key] = (means, deviations) if usable else None
        return self._means_and_deviations[key]


def _is_plain_image(tensor: Any) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.dtype is torch.float32
        and tensor.ndim == 3
        and tensor.shape[0] == 3
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not tensor.requires_grad
        and tensor.is_contiguous()
        and not tensor.is_neg()
    )


def is_hooked(transform: nn.Module) -> bool:
    """Whether torch would call more than the class's forward()."""
    own = vars(transform)
    return "forward" in own or any(map(own.get, _OWN_HOOKS)) or any(_HOOKS_OF_ALL) or torch.jit.is_tracing()


def _are_numbers(values: Any) -> bool:
    return type(values) in (list, tuple) and len(values) == 3 and all(type(value) in (float, int) for value in values)
