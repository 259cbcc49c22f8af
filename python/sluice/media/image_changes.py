"""torchvision's GaussianBlur and changes of colour on RGB images of PIL, natively and with torchvision's bytes.

The weights of a blur are torch's own, as their last bit depends on the processor; the library adds up as torch does. What is not
the usual case (another mode, a subclass, a hook) is torchvision's own business.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from PIL import Image
from torch.nn import functional

from sluice.media.image_library import ImageLibrary
from sluice.media.image_tensors import is_hooked

_COLOURS = "torchvision.transforms._functional_pil"
_ADJUSTMENTS = ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue")  # By the library's numbers.
_KEEPS_INFO = "adjust_saturation"  # The others make a new image.
_SATURATION = 2
_GREYSCALE = "to_grayscale"
_MOST_PROOFS = 64

# Of pixels, the size, and the image whose info it gets, if any.
MakeImage = Callable[[bytes, tuple[int, int], Image.Image | None], Image.Image]


class _Generation(NamedTuple):
    """Of torchvision's transforms: its modules, and the method by which a GaussianBlur draws its sigma, under all names that it has had."""

    transforms: str
    functions: str
    weights: str
    methods: tuple[str, ...]
    sigma_of: Callable[[Any, Callable[..., Any]], float]  # Of a blur and its method.

    def is_imported(self) -> bool:
        wanted = ((self.transforms, "GaussianBlur"), (self.functions, "gaussian_blur"), (self.weights, "_get_gaussian_kernel2d"))
        if not all(hasattr(sys.modules.get(module), name) for module, name in wanted):
            return False
        return any(hasattr(sys.modules[self.transforms].GaussianBlur, name) for name in self.methods)

    def draw(self, blur: Any) -> float:
        return self.sigma_of(blur, next(getattr(blur, name) for name in self.methods if hasattr(blur, name)))


_V1, _V2 = "torchvision.transforms", "torchvision.transforms.v2"
_KERNELS = f"{_V2}.functional._utils"  # Version 2 looks functions up by the type of the image.
_GENERATIONS = (
    _Generation(f"{_V1}.transforms", f"{_V1}.functional", f"{_V1}._functional_tensor", ("get_params",), lambda blur, draw: draw(*blur.sigma)),
    _Generation(
        f"{_V2}._misc", f"{_V2}.functional", f"{_V2}.functional._misc", ("make_params", "_get_params"), lambda _, draw: draw([])["sigma"][0]
    ),
)


class ImageChanges:
    """Takes the place of torchvision's adjustments of PIL images, and of what calls a GaussianBlur, in this process. TorchScript
    compiles neither."""

    def __init__(self, library: ImageLibrary, image_classes: frozenset[type], make_image: MakeImage) -> None:
        """`image_classes`: those whose pixels are what tobytes() says."""
        self._library = library
        self._image_classes = image_classes
        self._make_image = make_image
        self._proofs: dict[tuple, bool] = {}
        self._undo: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def install(self) -> None:
        """Once torchvision is imported; before that, and afterwards, it does nothing."""
        if self._undo or not all(hasattr(sys.modules.get(_COLOURS), name) for name in (*_ADJUSTMENTS, _GREYSCALE)):
            return
        with self._lock:
            if self._undo:
                return
            for number in range(len(_ADJUSTMENTS)):
                self._replace_adjustment(sys.modules[_COLOURS], number)
            self._replace_greyscale(sys.modules[_COLOURS])
            for generation in filter(_Generation.is_imported, _GENERATIONS):
                blur_class = sys.modules[generation.transforms].GaussianBlur
                blur_class.__call__ = self._calling(blur_class, generation)
                self._undo.append(functools.partial(delattr, blur_class, "__call__"))

    def remove(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._proofs.clear()

    def _is_usual(self, image: Any) -> bool:
        return type(image) in self._image_classes and image.mode == "RGB" and "transparency" not in image.info and min(image.size) > 0

    def _replace_adjustment(self, functions: Any, number: int) -> None:
        name = _ADJUSTMENTS[number]
        before = getattr(functions, name)
        option = name.removeprefix("adjust_") + "_factor"

        @functools.wraps(before)
        def adjust(img: Any, *factors: Any, **options: Any) -> Any:
            if options.keys() <= {option} and len(given := (*factors, *options.values())) == 1:
                (factor,) = given
                exact = type(factor) is float and ctypes.c_float(factor).value == factor
                pixels = self._library.adjusted(number, factor, img.tobytes()) if exact and self._is_usual(img) else None
                if pixels is not None:
                    return self._make_image(pixels, img.size, img if name == _KEEPS_INFO else None)
            return before(img, *factors, **options)

        setattr(functions, name, adjust)
        self._undo.append(functools.partial(setattr, functions, name, before))
        for kernels in getattr(sys.modules.get(_KERNELS), "_KERNEL_REGISTRY", {}).values():
            if kernels.get(Image.Image) is before:
                kernels[Image.Image] = adjust
                self._undo.append(functools.partial(kernels.__setitem__, Image.Image, before))

    def _replace_greyscale(self, functions: Any) -> None:
        """Pixels without any saturation are grey."""
        before = getattr(functions, _GREYSCALE)

        @functools.wraps(before)
        def to_grayscale(img: Any, num_output_channels: Any) -> Any:
            if type(num_output_channels) is int and num_output_channels == 3 and self._is_usual(img):
                pixels = self._library.adjusted(_SATURATION, 0.0, img.tobytes())
                if pixels is not None:
                    return self._make_image(pixels, img.size, None)
            return before(img, num_output_channels)

        setattr(functions, _GREYSCALE, to_grayscale)
        self._undo.append(functools.partial(setattr, functions, _GREYSCALE, before))

    def _calling(self, blur_class: Any, generation: _Generation) -> Any:
        """What calls a GaussianBlur of the class."""
        forward = blur_class.forward

        def call(blur: Any, *arguments: Any, **options: Any) -> Any:
            usual = len(arguments) == 1 and not options and type(blur) is blur_class and blur_class.forward is forward
            if usual and self._is_usual(arguments[0]) and not is_hooked(blur):
                width, height = arguments[0].size
                columns, rows = blur.kernel_size
                if self._is_proven(height, width, rows, columns):
                    return self._blurred(arguments[0], (columns, rows), generation.draw(blur), generation)
            return torch.nn.Module.__call__(blur, *arguments, **options)

        return call

    def _blurred(self, image: Image.Image, kernel_size: tuple[int, int], sigma: float, generation: _Generation) -> Image.Image:
        weights_of = sys.modules[generation.weights]._get_gaussian_kernel2d
        window = weights_of(list(kernel_size), [sigma, sigma], torch.float32, torch.device("cpu")).contiguous()
        pixels = self._library.blurred(image.tobytes(), image.size, tuple(window.shape), window.data_ptr())
        if pixels is None:
            return sys.modules[generation.functions].gaussian_blur(image, list(kernel_size), [sigma, sigma])
        return self._make_image(pixels, image.size, None)

    def _is_proven(self, *shape: int) -> bool:
        """Whether torch adds up as the library does. torch chooses its code by the processor and these lengths."""
        key = (*shape, torch.backends.mkldnn.enabled)
        if key not in self._proofs:
            if len(self._proofs) >= _MOST_PROOFS:
                return False
            self._proofs[key] = _adds_up_as_torch(self._library, *shape)
        return self._proofs[key]


def _adds_up_as_torch(library: ImageLibrary, height: int, width: int, rows: int, columns: int) -> bool:
    """Every bit of every sum, on noise."""
    if not (rows // 2 < height and columns // 2 < width):
        return False
    noise = torch.Generator().manual_seed(0)
    window = torch.rand((rows, columns), generator=noise, device="cpu", dtype=torch.float32) / (rows * columns)
    pixels = torch.randint(0, 256, (height, width, 3), generator=noise, device="cpu", dtype=torch.uint8)
    sums = torch.empty((height, width, 3), device="cpu", dtype=torch.float32)
    if not library.blur_sums(pixels.numpy().tobytes(), (width, height), (rows, columns), window.data_ptr(), sums.data_ptr()):
        return False
    borders = [columns // 2, columns // 2, rows // 2, rows // 2]
    padded = functional.pad(pixels.permute(2, 0, 1).contiguous()[None].float(), borders, mode="reflect")
    expected = functional.conv2d(padded, window.expand(3, 1, rows, columns), groups=3)[0]
    return torch.equal(sums.permute(2, 0, 1), expected)
