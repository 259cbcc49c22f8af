"""Recognising pipelines that the native executor reproduces exactly (protocols.md, section 5).

Everything here is a whitelist of exact types and settings. A subclass, a hook or an unusual argument keeps the pipeline in Python, because lowering
must be invisible. torchvision is never imported from here: a dataset of its cannot exist without it.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate

from sluice.failures import NotNative
from sluice.file_table import FileTable
from sluice.lowered import Lowered, name_of
from sluice.transforms import lower_transform


@dataclass(frozen=True)
class NativePipeline:
    """`header`: a line of JSON for the feeder, which the table of the files follows. `height` and `width` of the images in
    pixels; `image_dtype` float32 or uint8. A batch is [images [n, 3, height, width], labels [n] int64]."""

    header: bytes
    files: FileTable
    height: int
    width: int
    image_dtype: torch.dtype

    @property
    def samples(self) -> int:
        return self.files.count

    @property
    def draws(self) -> bool:
        """Whether its batches depend on random numbers."""
        return any(_draws(op) for op in json.loads(self.header)["ops"])

    def operations_in_words(self) -> list[str]:
        """A line for each operation, in their order: its name, and whether it is random."""
        return [f"{op['op']}{', random' if _draws(op) else ''}{_inner_in_words(op)}" for op in json.loads(self.header)["ops"]]

    def sample_bytes(self) -> int:
        return 3 * self.height * self.width * self.image_dtype.itemsize + 8


def _draws(op: dict) -> bool:
    return op["op"].startswith("random_") or op["op"] in ("color_jitter", "auto_augment")


def _inner_in_words(op: dict) -> str:
    return f": {', '.join(inner.get('name', inner['op']) for inner in op['ops'])}" if "ops" in op else ""


def lower(dataset: Any, collate_fn: Any, auto_collation: bool, known: FileTable | None = None) -> NativePipeline:
    """The native form of a loader's pipeline, with the table `known` if it still is the right one. Raises NotNative, which
    names every obstacle."""
    obstacles: list[str] = []
    if not auto_collation:
        obstacles.append("batch_size=None hands over single samples")
    if collate_fn is not default_collate:
        obstacles.append(f"collate_fn is {name_of(collate_fn)}, not torch's default")
    folder, selection = _unwrap_subsets(dataset)
    lowered = _lower_folder(folder, obstacles)
    if lowered is None or obstacles:
        raise NotNative("; ".join(obstacles))
    files = known if known is not None and known.is_of(folder, selection) else FileTable(folder, selection)
    source = {"kind": "image_files", "root": files.root, "files": files.count}
    header = json.dumps({"version": 2, "pillow": _pillow(), **_pixel_limit(), "source": source, "ops": lowered.ops}, separators=(",", ":"))
    return NativePipeline(header.encode() + b"\n", files, *lowered.size, lowered.dtype)


def _pillow() -> int:
    """Pillow's major version: 13 changed which axis a resize does first."""
    try:
        return int(importlib.metadata.version("pillow").split(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        raise NotNative("PIL is not a released Pillow but another build of it") from None


def _pixel_limit() -> dict[str, int]:
    """Beyond it Pillow warns of an image or refuses it, so a native executor leaves it to Pillow."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    if limit is None:
        return {}
    if type(limit) is not int or not 0 < limit <= 2**53:
        raise NotNative(f"PIL.Image.MAX_IMAGE_PIXELS is {limit!r}")
    return {"max_image_pixels": limit}


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


def _lower_folder(folder: Any, obstacles: list[str]) -> Lowered | None:
    """What the folder's transforms become; adds to `obstacles`."""
    module = sys.modules.get("torchvision.datasets.folder")
    if module is None or type(folder) is not module.ImageFolder:
        obstacles.append(f"the dataset is a {name_of(type(folder))}, not torchvision's ImageFolder itself")
        return None
    if folder.loader not in (module.default_loader, module.pil_loader):
        obstacles.append(f"ImageFolder's loader is {name_of(folder.loader)}, not the default")
    if folder.loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        obstacles.append("torchvision's image backend is not PIL")
    if folder.target_transform is not None:
        obstacles.append(f"target_transform {name_of(folder.target_transform)} has no native form")
    return lower_transform(folder.transform, obstacles)
