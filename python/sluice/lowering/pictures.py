"""Images in what is read from a Dataset's code (sample_code.py): what they were opened from, and what has been done to them since then."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sluice.lowering.lowered import MAX_SIDE_PIXELS
from sluice.lowering.tensor_steps import TensorStep
from sluice.shipping.failures import NotNative

if TYPE_CHECKING:
    from sluice.lowering.sample_values import Rows

RGB, GREY = "RGB", "L"


class Opened:
    """What a sample's images are made of: an image file of each sample, or an image in memory. Pictures of the same share this."""

    def __init__(self, paths: list, mode: str | None = None, rows: Rows | None = None, are_tensors: bool = False) -> None:
        """`paths`: none of images in memory. `mode`: Pillow's, if it is known. `rows`: the images in memory, if the data set's class does not tell.
        `are_tensors`: of bytes, as torchvision decodes them."""
        self.paths, self.mode, self.rows, self.are_tensors = paths, mode, rows, are_tensors
        self.only_rgb = False  # Whether the code was read as it is for images that Pillow opens as RGB.
        self.turns: tuple[Step, ...] = ()  # In which transforms were applied to its pictures.

    @property
    def count(self) -> int:
        return len(self.paths) if self.rows is None else len(self.rows)


@dataclass(frozen=True)
class Step:
    """A transform is applied, as the turn of this number. `reason`: why the code of a user's own was not read."""

    transform: Any
    turn: int
    reason: str = ""

    @property
    def may_draw(self) -> bool:
        """Or may change the image that it gets."""
        kind = type(self.transform)
        if isinstance(self.transform, TensorStep):
            return False
        return not (kind.__name__ in _NEVER_DRAW and kind.__module__.startswith("torchvision.transforms.")) or bool(getattr(self.transform, "inplace", False))


_NEVER_DRAW = frozenset("Resize CenterCrop Pad Grayscale ToTensor PILToTensor ToImage ToPureTensor ToDtype ConvertImageDtype Normalize".split())


@dataclass(frozen=True)
class Picture:
    """What Pillow or torchvision opens, with what it has become since then. `is_rgb`: because the code converts it."""

    opened: Opened
    is_rgb: bool = False
    steps: tuple[Step, ...] = ()

    @property
    def has_the_mode_of_its_file(self) -> bool:
        return not self.steps and not self.is_rgb and self.opened.mode is None and not self.opened.are_tensors

    def mode(self) -> str:
        """Pillow's. Where only the file tells, this takes the file for RGB, and says so to all pictures of it. Raises NotNative."""
        if self.steps or self.opened.are_tensors:
            raise NotNative("asks for the mode of a transformed image, or of a tensor")
        if self.is_rgb:
            return RGB
        if self.opened.mode is None:
            self.opened.only_rgb = True
        return self.opened.mode or RGB

    def converted(self) -> Picture | None:
        """To RGB. None where native executors know no such step."""
        if self.steps or self.opened.are_tensors:
            return None
        return replace(self, is_rgb=True) if self.opened.mode in (None, RGB) else self._coloured()

    def _coloured(self) -> Picture | None:
        """With three equal channels, as Grayscale(3) makes them of a grey image, too."""
        transforms = sys.modules.get("torchvision.transforms")
        return self.transformed(transforms.Grayscale(3)) if transforms is not None and self.opened.mode == GREY else None

    def transformed(self, transform: Any, reason: str = "") -> Picture:
        """By one that is not looked into, for `reason`."""
        step = Step(transform, len(self.opened.turns), reason)
        self.opened.turns += (step,)
        return replace(self, steps=(*self.steps, step))


@dataclass(frozen=True)
class Views:
    """The images of a sample, in the order in which their transforms draw. `shared`: the steps that all of them go through at once. `own`: those that
    follow for each. `only_rgb`: of files that Pillow opens as RGB alone."""

    pictures: tuple[Picture, ...]
    shared: tuple[Step, ...]
    own: tuple[tuple[Step, ...], ...]
    only_rgb: bool


def of_rows(rows: Rows, mode: str | None) -> Picture:
    """What Image.fromarray makes of each. `mode`: that the code asks for. Raises NotNative."""
    shape = tuple(rows.container.shape[1:])
    known = GREY if len(shape) == 2 else RGB if len(shape) == 3 and shape[2] == 3 else None
    if known is None or not rows.are_arrays or not rows.are_bytes or mode not in (None, known):
        raise NotNative("makes images of other arrays than uint8 of one or three channels")
    if not all(0 < side <= MAX_SIDE_PIXELS for side in shape[:2]):
        raise NotNative(f"makes images of {shape[0]}x{shape[1]} pixels")
    return Picture(Opened([], known, rows), is_rgb=known == RGB)


def views_of(pictures: list[Picture]) -> Views:
    """Raises NotNative for pictures that native executors could not make one after the other."""
    if not pictures:
        raise NotNative("its samples have no image of a file or an array")
    opened = pictures[0].opened
    if any(picture.opened is not opened for picture in pictures):
        raise NotNative("its samples have images of several files")
    ordered = sorted(pictures, key=lambda picture: _drawing(picture.steps))
    shared = _common_start([picture.steps for picture in ordered]) if len(ordered) > 1 else ordered[0].steps
    own = [picture.steps[len(shared) :] for picture in ordered]
    if [turn for steps in (shared, *own) for turn in _drawing(steps)] != _drawing(opened.turns):
        raise NotNative("its images take turns in their random transforms, or some are not used")
    if len(own) > 1 and not all(own):
        raise NotNative("one of its images is what another one is made of")
    if len({picture.is_rgb for picture in ordered}) > 1:
        raise NotNative("it converts some of its images to RGB and some not")
    only_rgb = opened.mode is None and (opened.only_rgb or not ordered[0].is_rgb)
    return Views(tuple(ordered), shared, tuple(own), only_rgb)


def _drawing(steps: tuple[Step, ...]) -> list[int]:
    """The turns of those that may draw."""
    return [step.turn for step in steps if step.may_draw]


def _common_start(lists: list[tuple[Step, ...]]) -> tuple[Step, ...]:
    count = 0
    while all(len(steps) > count and steps[count] is lists[0][count] for steps in lists):
        count += 1
    return lists[0][:count]


def require_rgb(path: Any) -> None:
    """Of a file that no code converts. Raises NotNative for one of another mode. What cannot be opened is left to those who read it."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of large images: who reads them warns.
            with sys.modules["PIL.Image"].open(path) as image:
                mode = image.mode
    except Exception:
        return
    if mode != RGB:
        raise NotNative(f"it does not convert its images to RGB, and {os.path.basename(path)} is {mode}")
