"""Recognising pipelines that the native executor reproduces exactly (first-slice.md, section 5).

Everything here is a whitelist of exact types and settings: a subclass, a hook or an unusual argument keeps the pipeline in
Python, because lowering must be invisible. torchvision is never imported from here: a dataset of its cannot exist without it.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate

_JPEG_EXTENSIONS = (".jpg", ".jpeg")


class NotNative(Exception):
    """Why a pipeline stays Python, as one clause for people."""


@dataclass(frozen=True)
class NativePipeline:
    """`spec`: JSON for the feeder. `samples`: how many the spec lists. `height` and `width` of the images in pixels;
    `image_dtype` float32 or uint8. A batch is [images [n, 3, height, width], labels [n] int64]."""

    spec: bytes
    samples: int
    height: int
    width: int
    image_dtype: torch.dtype

    def sample_bytes(self) -> int:
        return 3 * self.height * self.width * self.image_dtype.itemsize + 8


def lower(dataset: Any, collate_fn: Any, auto_collation: bool, worker_init_fn: Any) -> NativePipeline:
    """The native form of a loader's pipeline. Raises NotNative, which says what stands in the way."""
    if not auto_collation:
        raise NotNative("batch_size=None hands over single samples")
    if collate_fn is not default_collate:
        raise NotNative(f"collate_fn is {_name(collate_fn)}, not torch's default")
    if worker_init_fn is not None:
        raise NotNative(f"worker_init_fn {_name(worker_init_fn)} has to run in Python")
    folder, selection = _unwrap_subsets(dataset)
    _check_folder(folder)
    ops, size, dtype = _lower_transform(folder.transform)
    root, paths, labels = _files(folder, selection)
    source = {"kind": "image_files", "root": root, "paths": paths, "labels": labels}
    pillow = int(importlib.metadata.version("pillow").split(".")[0])  # 13 changed which axis a resize does first
    spec = json.dumps({"version": 1, "pillow": pillow, "source": source, "ops": ops}, separators=(",", ":")).encode()
    return NativePipeline(spec, len(paths), size[0], size[1], dtype)


def _unwrap_subsets(dataset: Any) -> tuple[Any, list[int] | None]:
    """The innermost dataset and, if it was wrapped in torch's Subset, its indices in the order of the outermost."""
    selection = None
    while type(dataset) is Subset:
        try:
            indices = [int(index) for index in dataset.indices]
            selection = indices if selection is None else [indices[index] for index in selection]
        except (TypeError, ValueError, IndexError):
            raise NotNative("a Subset's indices are not integers within its dataset") from None
        dataset = dataset.dataset
    return dataset, selection


def _check_folder(folder: Any) -> None:
    module = sys.modules.get("torchvision.datasets.folder")
    if module is None or type(folder) is not module.ImageFolder:
        raise NotNative(f"the dataset is a {_name(type(folder))}, not torchvision's ImageFolder itself")
    if folder.loader not in (module.default_loader, module.pil_loader):
        raise NotNative(f"ImageFolder's loader is {_name(folder.loader)}, not the default")
    if folder.loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        raise NotNative("torchvision's image backend is not PIL")
    if folder.target_transform is not None:
        raise NotNative(f"target_transform {_name(folder.target_transform)} has no native form")


def _files(folder: Any, selection: list[int] | None) -> tuple[str, list[str], list[int]]:
    root = os.path.abspath(folder.root)
    prefix = root.rstrip(os.sep) + os.sep
    chosen = folder.samples if selection is None else [folder.samples[index] for index in _within(selection, folder)]
    paths, labels = [], []
    for path, label in chosen:
        path = os.path.abspath(path)
        if not path.lower().endswith(_JPEG_EXTENSIONS):
            raise NotNative(f"{os.path.basename(path)} is not a JPEG file by its name")
        if not path.startswith(prefix):
            raise NotNative(f"{path} is not inside the folder {root}")
        try:
            path.encode()
        except UnicodeEncodeError:
            raise NotNative("a file name is not valid UTF-8") from None
        if type(label) is not int:
            raise NotNative(f"a label is a {type(label).__name__}, not an int")
        paths.append(path[len(prefix) :])
        labels.append(label)
    return root, paths, labels


def _within(selection: list[int], folder: Any) -> list[int]:
    if any(not -len(folder.samples) <= index < len(folder.samples) for index in selection):
        raise NotNative("a Subset's indices are not integers within its dataset")
    return selection


def _lower_transform(transform: Any) -> tuple[list[dict], tuple[int, int], torch.dtype]:
    """(ops, (height, width) of the result, its dtype)."""
    transforms = sys.modules.get("torchvision.transforms.transforms")
    if transforms is None or type(transform) is not transforms.Compose:
        raise NotNative(f"the transform is {_name(type(transform))}, not torchvision.transforms.Compose")
    steps = list(transform.transforms)
    lowered = _Steps(transforms, steps)
    lowered.geometry()
    lowered.flip()
    lowered.conversion()
    if lowered.remaining:
        step = lowered.remaining[0]
        raise NotNative(f"transform {len(steps) - len(lowered.remaining) + 1}, {_name(type(step))}, has no native form there")
    return lowered.ops, lowered.size, lowered.dtype


class _Steps:
    """Consumes the steps of a Compose from the left, in the one order that the native executor knows."""

    def __init__(self, transforms: Any, steps: list) -> None:
        self._transforms = transforms
        self.remaining = steps
        self.ops: list[dict] = [{"op": "decode_rgb"}]
        self.size = (0, 0)
        self.dtype = torch.uint8

    def _take(self, name: str) -> Any | None:
        if self.remaining and type(self.remaining[0]) is getattr(self._transforms, name):
            step, self.remaining = self.remaining[0], self.remaining[1:]
            if getattr(step, "_forward_hooks", None) or getattr(step, "_forward_pre_hooks", None):
                raise NotNative(f"{name} has a hook")
            return step
        return None

    def geometry(self) -> None:
        crop = self._take("RandomResizedCrop")
        if crop is not None:
            _check_interpolation(crop, "RandomResizedCrop")
            self.size = _pair(crop.size, "RandomResizedCrop")
            scale, ratio = [float(x) for x in crop.scale], [float(x) for x in crop.ratio]
            if not (0 < scale[0] <= scale[1] and 0 < ratio[0] <= ratio[1]):
                raise NotNative("RandomResizedCrop's scale or ratio is not an ordered positive range")
            crop_op = {"op": "random_resized_crop", "size": list(self.size), "scale": scale, "ratio": ratio}
            log_ratio = torch.log(torch.tensor(crop.ratio)).tolist()  # torch's own float32 logarithm, last bit included
            self.ops.append({**crop_op, "log_ratio": log_ratio, "interpolation": "bilinear"})
            return
        resize = self._take("Resize")
        if resize is not None:
            _check_interpolation(resize, "Resize")
            if resize.max_size is not None:
                raise NotNative("Resize has a max_size")
            size = [resize.size] if isinstance(resize.size, int) else [int(x) for x in resize.size]
            if len(size) == 2:
                self.size = (size[0], size[1])
            self.ops.append({"op": "resize", "size": size})
        crop = self._take("CenterCrop")
        if crop is not None:
            self.size = _pair(crop.size, "CenterCrop")
            self.ops.append({"op": "center_crop", "size": list(self.size)})
        if not self.size[0] or not self.size[1]:
            after = f"; next comes {_name(type(self.remaining[0]))}" if self.remaining else ""
            raise NotNative(f"nothing native brings the images to one size{after}")

    def flip(self) -> None:
        flip = self._take("RandomHorizontalFlip")
        if flip is not None:
            self.ops.append({"op": "random_horizontal_flip", "p": float(flip.p)})

    def conversion(self) -> None:
        if self._take("PILToTensor") is not None:
            return
        if self._take("ToTensor") is None:
            after = _name(type(self.remaining[0])) if self.remaining else "nothing"
            raise NotNative(f"{after} comes where ToTensor or PILToTensor must be")
        if torch.get_default_dtype() is not torch.float32:
            raise NotNative("torch's default dtype is not float32")
        self.dtype = torch.float32
        self.ops.append({"op": "to_tensor"})
        normalize = self._take("Normalize")
        if normalize is not None:
            mean, std = _channels(normalize.mean), _channels(normalize.std)
            if not all(torch.tensor(std)):
                raise NotNative("Normalize has a standard deviation of zero")
            self.ops.append({"op": "normalize", "mean": mean, "std": std})


def _check_interpolation(step: Any, name: str) -> None:
    if getattr(step.interpolation, "value", None) != "bilinear":
        raise NotNative(f"{name}'s interpolation is {step.interpolation}, not bilinear")
    if step.antialias is False:
        raise NotNative(f"{name} has antialias=False")


def _pair(size: Any, name: str) -> tuple[int, int]:
    values = [size, size] if isinstance(size, int) else list(size)
    values = values * 2 if len(values) == 1 else values
    if len(values) != 2 or not all(isinstance(value, int) and value > 0 for value in values):
        raise NotNative(f"{name}'s size {size!r} is not one or two positive integers")
    return values[0], values[1]


def _channels(values: Any) -> list[float]:
    try:
        channels = [float(value) for value in values]
    except TypeError:
        channels = [float(values)]
    channels = channels * 3 if len(channels) == 1 else channels
    if len(channels) != 3:
        raise NotNative(f"Normalize has {len(channels)} channels, not 3")
    return channels


def _name(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    module = getattr(thing, "__module__", None) or type(thing).__module__
    short = module.replace("torchvision.transforms.transforms", "torchvision.transforms")
    return name if short in ("builtins", "__main__") else f"{short}.{name}"
