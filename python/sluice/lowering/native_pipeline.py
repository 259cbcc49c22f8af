"""Recognising pipelines that the native executor reproduces exactly (protocols.md, section 5).

Everything here is a whitelist of exact types and settings. A subclass, a hook or an unusual argument keeps the pipeline in Python, because lowering
must be invisible. torchvision is never imported from here: a dataset of its cannot exist without it.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Subset
from torch.utils.data._utils.collate import default_collate

from sluice.base.settings import EXACT, RELAXED
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.lowering.arrangement import Arrangement, pictures_of
from sluice.lowering.file_table import FileTable
from sluice.lowering.lowered import ImageForm, Lowered, LoweredImages, name_of
from sluice.lowering.own_images import OwnImages
from sluice.lowering.pictures import RGB, Opened, Picture, views_of
from sluice.lowering.sample_code import made_of
from sluice.lowering.sample_values import Labels, Several
from sluice.lowering.transforms import lower_views
from sluice.shipping.failures import NotNative
from sluice.shipping.replaced import replaced_function

if TYPE_CHECKING:
    from sluice.lowering.pixel_table import PixelTable
    from sluice.lowering.range_table import RangeTable

    Table = FileTable | RangeTable | PixelTable


@dataclass(frozen=True)
class NativePipeline:
    """`header`: a line of JSON for the feeder, which the table of the files follows; it may hold secrets. `images`: of a sample, most often one.
    `order`: of what its operations do to pixels, one of settings.ORDERS. A batch is [images [n, channels, height, width] for each of `images`, labels [n] int64].
    `arrangement`: what the client makes of these where samples are no pairs of an image and a label."""

    header: bytes = field(repr=False)
    files: Table
    images: tuple[ImageForm, ...]
    order: str = EXACT
    arrangement: Arrangement | None = field(default=None, repr=False)

    @property
    def samples(self) -> int:
        return self.files.count

    def takes(self, keys: type) -> bool:
        """Whether keys of this type give the same as plain numbers: a data set's own code may put them into its samples."""
        return self.arrangement is None or name_of(keys) in ("int", "numpy.int64")

    @property
    def draws(self) -> bool:
        """Whether its batches depend on random numbers."""
        return any(map(draws, self.operations()))

    @property
    def reads_files(self) -> bool:
        """Else its images are in memory."""
        return self.files.reads_files

    def operations(self) -> list[dict]:
        """Those that all images share, then those of each."""
        return [op for ops in self._lists() for op in ops]

    def shared_operations(self) -> list[dict]:
        """Those that are done once for all images of a sample."""
        return self._lists()[0]

    def _lists(self) -> list[list[dict]]:
        document = json.loads(self.header)
        return [document["ops"], *document.get("views", [])]

    def operations_in_words(self) -> list[str]:
        """A line for each operation, in their order: its name, and whether it is random."""
        shared, *own = ([f"{op['op']}{', random' if draws(op) else ''}{_inner_in_words(op)}" for op in ops] for ops in self._lists())
        return [*shared, *(line for number, lines in enumerate(own, 1) for line in (f"then for image {number}", *(f"  {each}" for each in lines)))]

    @property
    def values(self) -> int:
        """Of a sample's images: one for each channel of a pixel."""
        return sum(image.values for image in self.images)

    def tensor_bytes(self) -> int:
        """Of a sample's images."""
        return sum(image.values * image.dtype.itemsize for image in self.images)

    def sample_bytes(self) -> int:
        return self.tensor_bytes() + 8


def draws(op: dict) -> bool:
    """Whether the operation, as a specification has it, depends on random numbers."""
    return op["op"].startswith("random_") or op["op"] in ("color_jitter", "auto_augment")


def _inner_in_words(op: dict) -> str:
    return f": {', '.join(inner.get('name', inner['op']) for inner in op['ops'])}" if "ops" in op else ""


def lower(dataset: Any, collate_fn: Any, auto_collation: bool, known: Table | None = None,
          looks_at_files: bool = False, order: str = EXACT) -> NativePipeline:
    """The native form of a loader's pipeline, with the table `known` if it still is the right one. Raises NotNative, which
    names every obstacle; `looks_at_files`: the first one among the files, too, where there are others."""
    try:
        return _lower(dataset, collate_fn, auto_collation, known, looks_at_files, order)
    except NotNative:
        raise
    except Exception as error:  # Of a user's object that is looked at.
        pass_on_of_a_handler(error)
        raise NotNative(f"looking at it raises {type(error).__name__}: {error}") from None


def _lower(dataset: Any, collate_fn: Any, auto_collation: bool, known: Table | None, looks_at_files: bool, order: str) -> NativePipeline:
    obstacles: list[str] = []
    if not auto_collation:
        obstacles.append("batch_size=None hands over single samples")
    if torch.get_default_dtype() is not torch.float32:
        obstacles.append(f"the default dtype is {torch.get_default_dtype()}, and native executors draw and compute in float32")
    if collate_fn is not default_collate:
        obstacles.append(f"collate_fn is {name_of(collate_fn)}, not torch's default")
    innermost, selection = _unwrap_subsets(dataset, obstacles)
    source, lowered, arrangement = _lower_dataset(innermost, selection, obstacles)
    libraries = _libraries(obstacles, reads_files=not _is_in_memory(source)) if lowered is not None else {}
    files = known if known is not None and type(known) is _kind_of_table(source) and _is_still(known, source, selection) else None
    if files is None and lowered is not None and (looks_at_files or not obstacles):
        files = _table_of(source, selection, obstacles)
    if lowered is None or files is None or obstacles:
        raise NotNative(obstacles)
    shared, *own = lowered.lists()
    if order != RELAXED:  # Only there it matters where an operation stands.
        for op in (op for ops in (shared, *own) for op in ops):
            op.pop("keep_position", None)
    chosen = {} if order == EXACT else {"order": order}  # An executor of an older version knows none.
    views = {"views": own} if own else {}
    header = json.dumps({"version": 2, **libraries, **chosen, "source": files.source, "ops": shared, **views}, separators=(",", ":"))
    if isinstance(source, OwnImages):
        arrangement = source.arrangement(selection)
    if arrangement is not None:
        arrangement.require_joinable(lowered.images())
    return NativePipeline(header.encode() + b"\n", files, lowered.images(), order, arrangement)


def _libraries(obstacles: list[str], reads_files: bool) -> dict[str, int]:
    """What has to be known of Pillow: its major version, as 13 changed which axis a resize does first, and the number of pixels beyond
    which it warns of a file's image or refuses it, so that a native executor leaves it to Pillow."""
    from PIL import Image

    found = {}
    if function := replaced_function(natively=True):
        obstacles.append(f"the program has put {function} in the place of the library's, or added it")
    try:
        found["pillow"] = int(importlib.metadata.version("pillow").split(".")[0])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        obstacles.append("PIL is not a released Pillow but another build of it")
    limit = Image.MAX_IMAGE_PIXELS if reads_files else None
    if limit is not None and (type(limit) is not int or not 0 < limit <= 2**53):
        obstacles.append(f"PIL.Image.MAX_IMAGE_PIXELS is {limit!r}")
    elif limit is not None:
        found["max_image_pixels"] = limit
    return found


def _unwrap_subsets(dataset: Any, obstacles: list[str]) -> tuple[Any, list[int] | None]:
    """The innermost dataset and, if it was wrapped in torch's Subset, its indices in the order of the outermost."""
    selection: list[int] | None = None
    bad = False
    while type(dataset) is Subset:
        try:
            indices = [int(index) for index in dataset.indices]
            selection = indices if selection is None else [indices[index] for index in selection]
        except (TypeError, ValueError, IndexError):
            bad = True
        dataset = dataset.dataset
    if bad:
        obstacles.append("a Subset's indices are not integers within its dataset")
    return dataset, None if bad else selection


def _table_of(dataset: Any, selection: list[int] | None, obstacles: list[str]) -> Table | None:
    try:
        return _kind_of_table(dataset)(dataset, selection)
    except NotNative as obstacle:
        obstacles.append(str(obstacle))
        return None


def _is_still(known: Table, source: Any, selection: list[int] | None) -> bool:
    try:
        return known.is_of(source, selection)
    except NotNative:
        return False


def _lower_dataset(dataset: Any, selection: list[int] | None, obstacles: list[str]) -> tuple[Any, LoweredImages | None, Arrangement | None]:
    """What has its samples, what its transforms become, and the form of a sample if it is no pair of an image and a label. Adds to `obstacles`."""
    module = sys.modules.get("torchvision.datasets.folder")
    is_folder = module is not None and type(dataset) is module.ImageFolder
    if not (is_folder or _is_in_memory(dataset) or _is_shards(dataset)):
        return *_lower_class(dataset, selection, obstacles), None
    first, opened, found = Lowered(), Opened([], RGB), list[str]()
    if is_folder:
        _check_folder(dataset, module, found)
        _check_code(dataset, module, found)
    elif _is_in_memory(dataset):
        from sluice.lowering.pixel_table import lowered_images, module_of

        _check_code(dataset, module_of(dataset), found)
        try:
            first = lowered_images(dataset)
        except NotNative as obstacle:
            obstacles.append(str(obstacle))
            return dataset, None, None
        opened = Opened([], RGB if first.channels == 3 else "L")
    if dataset.target_transform is not None:
        found.append(f"target_transform {name_of(dataset.target_transform)} has no native form")
    if found and not _is_shards(dataset):
        others: list[str] = []
        files, lowered = _lower_class(dataset, selection, others)
        if lowered is not None:
            obstacles += others
            return files, lowered, None
    obstacles += found
    try:
        made = made_of(dataset.transform, Picture(opened, is_rgb=True))
        views = views_of(pictures_of(made))
    except NotNative as obstacle:
        obstacles.append(f"the transform is {name_of(type(dataset.transform))}, and {obstacle}")
        return dataset, None, None
    form = None if isinstance(made, Picture) else Arrangement(Several((made, Labels())), views.pictures, None)
    return dataset, lower_views(views, obstacles, first), form


def _lower_class(dataset: Any, selection: list[int] | None, obstacles: list[str]) -> tuple[Any, LoweredImages | None]:
    """The same of a class that is known by its code alone."""
    try:
        own = OwnImages(dataset)
    except NotNative as reason:
        known = "torchvision's ImageFolder, one of its data sets in memory, or sluice's TarShards itself"
        obstacles.append(f"the dataset is a {name_of(type(dataset))}, not {known} (its own code: {reason})")
        return dataset, None
    if selection is not None and min(selection, default=0) < 0:  # The code of a class may make of -1 another sample than the last.
        obstacles.append("a Subset has negative indices")
    if not own.are_in_memory:
        return own, lower_views(own.views, obstacles, Lowered.of_files(own.views.only_rgb, own.are_tensors))
    from sluice.lowering.pixel_table import lowered_images

    try:
        return own, lower_views(own.views, obstacles, lowered_images(own))
    except NotNative as reason:
        obstacles.append(str(reason))
        return own, None


def _is_shards(dataset: Any) -> bool:
    module = sys.modules.get("sluice.shards")
    return module is not None and type(dataset) is module.TarShards


def _is_in_memory(dataset: Any) -> bool:
    """Whether it is a data set of torchvision's that has its images in memory, or an own class that has."""
    if isinstance(dataset, OwnImages):
        return dataset.are_in_memory
    if not type(dataset).__module__.startswith("torchvision.datasets."):
        return False
    from sluice.lowering.pixel_table import module_of  # Needs numpy, as such a data set does.

    return module_of(dataset) is not None


def _kind_of_table(dataset: Any) -> type:
    if _is_in_memory(dataset):
        from sluice.lowering.pixel_table import PixelTable

        return PixelTable
    if not _is_shards(dataset):
        return FileTable
    from sluice.lowering.range_table import RangeTable  # Needs numpy, which a trainer of files need not have.

    return RangeTable


def _check_code(dataset: Any, module: Any, obstacles: list[str]) -> None:
    """A program may have put a method of its own in the place of torchvision's."""
    if getattr(type(dataset).__getitem__, "__globals__", None) is not vars(module):
        obstacles.append(f"{type(dataset).__name__}.__getitem__ is {name_of(type(dataset).__getitem__)}, not torchvision's")
    if hasattr(dataset, "__getitems__"):
        obstacles.append(f"the {type(dataset).__name__} has a __getitems__, which torchvision's has not")


def _check_folder(folder: Any, module: Any, obstacles: list[str]) -> None:
    if folder.loader not in (module.default_loader, module.pil_loader):
        obstacles.append(f"ImageFolder's loader is {name_of(folder.loader)}, not the default")
    if folder.loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        obstacles.append("torchvision's image backend is not PIL")
