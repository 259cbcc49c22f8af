"""JPEG, PNG and WebP images that decode late, for Dataset classes that open files with PIL (docs/designs/lazy-images.md).

After install(), `PIL.Image.open` of such a file gives an image that stands for Pillow's. What training does first with an image is recorded:
convert("RGB"), crop, resize, a mirror. The first use of pixels computes only those that are shown, natively, with Pillow's bytes.
The object then turns into the plain Pillow object that it stands for. Pillow itself serves whatever cannot be recorded, and every
file that the native library refuses.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile

from sluice.media.image_changes import ImageChanges
from sluice.media.image_library import ImageLibrary, find_image_library
from sluice.media.image_plan import ImagePlan
from sluice.media.image_tensors import ImageTensors
from sluice.media.lazy_formats import JPEG, PNG, WEBP, Format

_FLIP_LEFT_RIGHT = 0
# Where an image keeps its pixels: newer Pillows have another name for it.
_CORE = "_im" if "_im" in vars(Image.Image()) else "im"

_library: ImageLibrary | None = None
_torchvision: list[ImageTensors | ImageChanges] = []
_pillow = 0


def find() -> None:
    """What install() needs. It takes 20 ms, which the forks of a process that has it need not take again."""
    global _library, _pillow
    if _library is None:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
            _pillow = int(importlib.metadata.version("pillow").split(".")[0])
        _library = find_image_library() if _pillow else None
        if _library is not None:
            classes = frozenset((Image.Image, LazyImage, *_FILE_CLASSES, *(lazy._plain_class for lazy in _FILE_CLASSES)))
            _torchvision[:] = [ImageTensors(_library, classes), ImageChanges(_library, classes, _image_of_pixels)]


def install() -> bool:
    """Makes this process's PIL lazy. False where it cannot be: no native library, a PIL that is not the released Pillow, or one
    that opens such files by code of other packages."""
    find()
    Image.preinit()
    if _library is None or any(Image.OPEN[form.name][0] not in (form.factory, opener) for form, opener in _OPENERS):
        return False
    for form, opener in _OPENERS:
        Image.OPEN[form.name] = (opener, Image.OPEN[form.name][1])
    return True


def remove() -> None:
    """Images opened from now on are Pillow's."""
    for form, opener in _OPENERS:
        factory, accept = Image.OPEN.get(form.name, (None, None))
        if factory is opener:
            Image.OPEN[form.name] = (form.factory, accept)
    for functions in _torchvision:
        functions.remove()


# The classes of images have both bases.
if TYPE_CHECKING:
    _Base = Image.Image
else:
    _Base = object


class _Pending:
    """What an image will be made of: the file's bytes, and what to show of them. Thread-safe."""

    __slots__ = ("decoded", "file", "lock", "pixels", "plain_class", "plan")

    def __init__(self, file: bytes, plan: ImagePlan, plain_class: type, decoded: bytes | None = None) -> None:
        """`plain_class`: of Pillow, which opens the file. `decoded`: all pixels of the file, where they are known."""
        self.file = file
        self.decoded = decoded
        self.plan = plan
        self.plain_class = plain_class
        self.pixels: bytes | None = None  # of the RGB image, once computed
        self.lock = threading.RLock()

    def compute(self) -> bytes:
        """The RGB pixels. Raises what Pillow raises of the file."""
        with self.lock:
            if self.pixels is None:
                pixels = self.native_pixels()
                self.pixels = self.by_pillow().tobytes() if pixels is None else pixels
            return self.pixels

    def native_pixels(self) -> bytes | None:
        """The RGB pixels; None of what the library leaves to Pillow."""
        if _library is None:
            return None
        return _library.pixels(self.file, self.plan) if self.decoded is None else _library.part(self.decoded, self.plan)

    def core(self) -> Any:
        """The RGB pixels as Pillow keeps them."""
        if self.pixels is None and self.decoded is None and self.plan.shows_all():
            return self.by_pillow().im
        return Image.frombytes("RGB", self.plan.size(), self.compute()).im

    def by_pillow(self) -> Image.Image:
        p = self.plan
        image = self.opened().convert("RGB")
        image = image.crop((p.source_left, p.source_top, p.source_left + p.source_width, p.source_top + p.source_height))
        image = image.resize((p.resized_width, p.resized_height), p.interpolation)
        image = image.crop((p.window_left, p.window_top, p.window_left + p.window_width, p.window_top + p.window_height))
        return image.transpose(_FLIP_LEFT_RIGHT) if p.flip else image

    def opened(self) -> Any:
        return self.plain_class(io.BytesIO(self.file))

    def changed(self, plan: ImagePlan) -> _Pending:
        return _Pending(self.file, plan, self.plain_class, self.decoded)


class _Lazy(_Base):
    """What both kinds of lazy images share. The instance's `_sluice` is its _Pending; an image whose file was not read has none."""

    _plain_class: type

    def _read(self) -> _Pending | None:
        """What this image is made of; None if only Pillow can make it."""
        return self.__dict__.get("_sluice")

    def _plain(self) -> Any:
        """This very object, as Pillow's. Raises what Pillow raises of the file."""
        getattr(self, _CORE)
        return self

    def _get_core(self) -> Any:
        if (pending := self.__dict__.get("_sluice")) is not None:
            with pending.lock:
                if "_sluice" in self.__dict__:  # Else another thread was faster.
                    self._set_core(self._core_of(pending))
        else:
            self.__class__ = self._plain_class
            self.__dict__.pop("_sluice_file", None)
        return self.__dict__[_CORE]

    def _set_core(self, core: Any) -> None:
        self.__dict__[_CORE] = core
        self.__class__ = self._plain_class
        self.__dict__.pop("_sluice", None)

    def _core_of(self, pending: _Pending) -> Any:
        return pending.core()

    def tobytes(self, encoder_name: str = "raw", *args: Any) -> bytes:
        if self.mode == "RGB" and encoder_name == "raw" and args in ((), ("RGB",)) and (pending := self._read()) is not None:
            return pending.compute()
        return self._plain().tobytes(encoder_name, *args)

    def convert(self, mode: str | None = None, *args: Any, **options: Any) -> Image.Image:
        lazy = None
        if mode == "RGB" and not args and not options and "transparency" not in self.info:
            lazy = self._derived(lambda plan: plan)
        return self._plain().convert(mode, *args, **options) if lazy is None else lazy

    def copy(self) -> Image.Image:
        lazy = self._recorded(lambda plan: plan)
        return self._plain().copy() if lazy is None else lazy

    __copy__ = copy

    def crop(self, box: Any = None) -> Image.Image:
        lazy = self._recorded(lambda plan: plan if box is None else plan.cropped(box))
        return self._plain().crop(box) if lazy is None else lazy

    def resize(self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None) -> Image.Image:
        lazy = None
        if box is None and reducing_gap is None:
            lazy = self._recorded(lambda plan: plan.resized(size, resample))
        return self._plain().resize(size, resample, box, reducing_gap) if lazy is None else lazy

    def transpose(self, method: Any) -> Image.Image:
        lazy = None
        if isinstance(method, int) and method == _FLIP_LEFT_RIGHT:
            lazy = self._recorded(lambda plan: plan.mirrored())
        return self._plain().transpose(method) if lazy is None else lazy

    def _recorded(self, change: Any) -> Image.Image | None:
        return self._derived(change) if self.mode == "RGB" else None

    def _derived(self, change: Any) -> Image.Image | None:
        """The RGB image with a changed plan; None if no plan says it."""
        pending = self._read()
        if pending is None or pending.pixels is not None:
            return None
        plan = change(pending.plan)
        return None if plan is None else _lazy_image(pending.changed(plan), self)

    def __eq__(self, other: object) -> bool:
        return self._plain() == other

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._plain().__reduce_ex__(protocol)


class LazyImage(_Lazy, Image.Image):
    """Stands for an RGB image that Pillow makes of an opened file."""

    _plain_class = Image.Image


class _LazyFile(_Lazy):
    """Stands for an opened file. It is as Pillow's until the first call that reads pixels: that reads the whole file, as Pillow's load() does, and
    decodes nothing, unless only that shows whether Pillow can."""

    _sluice_format: Format

    def _read(self) -> _Pending | None:
        pending = super()._read()
        if pending is None and (pending := self._sluice_format.take_file(self, self._pending_of)) is not None:
            self._sluice = pending
        return pending

    def _pending_of(self, file: bytes) -> _Pending | None:
        """None if Pillow may refuse the file."""
        plan = ImagePlan.of_all(self.size, _pillow)
        if not self._sluice_format.is_read_at_open:
            return _Pending(file, plan, self._plain_class)
        decoded = _library.decoded(file, plan) if _library is not None else None
        return None if decoded is None else _Pending(file, plan, self._plain_class, decoded)

    def _core_of(self, pending: _Pending) -> Any:
        if self.mode == "RGB":
            return pending.core()
        image = pending.opened()
        image.load()
        return image.im

    def load(self) -> Any:
        return self._plain().load() if self._read() is None else _PixelAccess(self)


class LazyJpegImageFile(_LazyFile, JpegImageFile):
    _plain_class = JpegImageFile
    _sluice_format = JPEG


class LazyPngImageFile(_LazyFile, PngImageFile):
    _plain_class = PngImageFile
    _sluice_format = PNG


class LazyWebPImageFile(_LazyFile, WebPImageFile):
    _plain_class = WebPImageFile
    _sluice_format = WEBP

    def load(self) -> Any:
        return self._plain().load()  # RGB pixels do not tell the alpha that load() decodes, too.


_FILE_CLASSES = (LazyJpegImageFile, LazyPngImageFile, LazyWebPImageFile)


def _opener(lazy: type[_LazyFile]) -> Callable[..., Any]:
    """What opens such files in the place of Pillow's own."""

    def opened(*arguments: Any, **options: Any) -> Any:
        for functions in _torchvision:
            functions.install()  # Here, because the first image tells that all imports are done.
        image = lazy._sluice_format.factory(*arguments, **options)
        if type(image) is lazy._plain_class:  # An image of several pictures may be of another class.
            image.__class__ = lazy
            lazy._sluice_format.keep_file(image)
        return image

    return opened


_OPENERS = [(lazy._sluice_format, _opener(lazy)) for lazy in _FILE_CLASSES]


class _PixelAccess:
    """What load() returns. Most callers only want the file read and closed."""

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    def __getitem__(self, position: Any) -> Any:
        return self._access()[position]

    def __setitem__(self, position: Any, color: Any) -> None:
        self._access()[position] = color

    def _access(self) -> Any:
        getattr(self._image, _CORE)
        return self._image.load()


for _lazy_class in (LazyImage, *_FILE_CLASSES):
    setattr(_lazy_class, _CORE, property(_lazy_class._get_core, _lazy_class._set_core))
    # Programs print and compare the names of types.
    _lazy_class.__module__ = _lazy_class._plain_class.__module__
    _lazy_class.__name__ = _lazy_class.__qualname__ = _lazy_class._plain_class.__name__


def _image_of_pixels(pixels: bytes, size: tuple[int, int], parent: Image.Image | None) -> LazyImage:
    pending = _Pending(b"", ImagePlan.of_all(size, _pillow), Image.Image)
    pending.pixels = pixels
    return _lazy_image(pending, parent)


def _lazy_image(pending: _Pending, parent: Image.Image | None) -> LazyImage:
    """`parent`: the image that it is made of; None for a new one."""
    image: Any = Image.Image()
    image._mode, image._size = "RGB", pending.plan.size()
    if parent is not None:
        image.info = parent._copy_info() if hasattr(parent, "_copy_info") else parent.info.copy()
    image._sluice = pending
    image.__class__ = LazyImage
    return image
