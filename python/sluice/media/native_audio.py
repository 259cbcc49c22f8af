"""torchaudio's usual work, natively, where the user has asked for it (SLUICE_NATIVE_AUDIO; docs/designs/audio.md).

install() takes the place of a few functions of torchaudio, and of what calls a MelSpectrogram, in this process. Classes, their pickles and
what TorchScript compiles stay torchaudio's. Spectrograms, decibels and sample rates differ from torchaudio's in rounding; masks do not.
What is not the usual case (another dtype, gradients, complex results, other borders, a subclass, a hook) is torchaudio's own business.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import math
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import torch

from sluice.base.inherited import autocast_on_cpu
from sluice.media import flac_files
from sluice.media.audio_library import AudioLibrary, ResamplePlan, SpectrogramPlan, find_audio_library
from sluice.media.image_tensors import is_hooked

_BORDERS = {"reflect": 1, "constant": 2}
# A count of columns up to here is exact as float32, in which torchaudio compares them.
_MOST_COLUMNS = 1 << 24
_RESAMPLE = "_apply_sinc_resample_kernel"
# The functions whose place is taken, with the parameters that are known to mean what this module makes of them.
_PARAMETERS = {
    "spectrogram": "waveform pad window n_fft hop_length win_length power normalized center pad_mode onesided return_complex",
    "amplitude_to_DB": "x multiplier amin db_multiplier top_db",
    "mask_along_axis": "specgram mask_param mask_value axis p",
    _RESAMPLE: "waveform orig_freq new_freq gcd kernel width",
}

# Of these, what users call is replaced.
MODULES = frozenset(("torchaudio", "soundfile"))

_lock = threading.Lock()
_taken: set[str] = set()
_undo: list[Callable[[], None]] = []


def install() -> bool:
    """Concerns those of MODULES that are imported. False where it cannot be: there are none, or no native library."""
    with _lock:
        present = MODULES & sys.modules.keys()
        if present - _taken and (library := find_audio_library()) is not None:
            for name in present - _taken:
                _taken.add(name)
                _PLACES[name](library)
        return bool(_undo)


def is_installed() -> bool:
    """Whether any function's place is taken."""
    with _lock:
        return bool(_undo)


def remove() -> None:
    """torchaudio is as it was."""
    with _lock:
        while _undo:
            _undo.pop()()
        _taken.clear()


def _take_soundfile(library: AudioLibrary) -> None:
    soundfile = sys.modules["soundfile"]
    if flac_files.is_known(before := getattr(soundfile, "read", None)):
        setattr(soundfile, "read", flac_files.reading(library, before))
        _undo.append(functools.partial(setattr, soundfile, "read", before))


def _take_torchaudio(library: AudioLibrary) -> None:
    functions, transforms = (sys.modules.get(f"torchaudio.{name}") for name in ("functional.functional", "transforms._transforms"))
    if functions is None or transforms is None:
        return  # Of another age.
    audio = _Audio(library, functions, transforms)
    for name, parameters in _PARAMETERS.items():
        before = getattr(audio.functions, name, None)
        if before is None or list(inspect.signature(before).parameters)[: len(parameters.split())] != parameters.split():
            continue
        native = _standing_for(before, getattr(audio, name.lower().lstrip("_"))(before))
        for module in (audio.functions, audio.functional, audio.transforms):
            if getattr(module, name, None) is before:
                setattr(module, name, native)
                _undo.append(functools.partial(setattr, module, name, before))
    audio.mel_class.__call__ = audio.mel_call()
    _undo.append(functools.partial(delattr, audio.mel_class, "__call__"))


def _standing_for(before: Any, native: Any) -> Any:
    """Calls `native`. TorchScript, which compiles a function's source with the names around it, finds those of `before`."""

    def function(*arguments: Any, **options: Any) -> Any:
        return native(*arguments, **options)

    return functools.wraps(before)(types.FunctionType(function.__code__, before.__globals__, before.__name__, None, function.__closure__))


_PLACES: dict[str, Callable[[AudioLibrary], None]] = {"torchaudio": _take_torchaudio, "soundfile": _take_soundfile}


class _Audio:
    """What takes the place of torchaudio's functions: each method makes one, of the function before."""

    def __init__(self, library: AudioLibrary, functions: Any, transforms: Any) -> None:
        self._library = library
        self.functions, self.functional, self.transforms = functions, transforms.F, transforms
        self.mel_class = transforms.MelSpectrogram
        self._parts = [(of, of.forward) for of in (transforms.MelSpectrogram, transforms.Spectrogram, transforms.MelScale)]

    def spectrogram(self, before: Any) -> Any:
        def spectrogram(waveform: Any, pad: Any, window: Any, n_fft: Any, hop_length: Any, win_length: Any, power: Any, normalized: Any,
                        center: Any = True, pad_mode: Any = "reflect", onesided: Any = True, return_complex: Any = None) -> Any:  # fmt: skip
            if pad == 0 and onesided and return_complex is None:
                shown = self._shown(waveform, window, n_fft, hop_length, win_length, power, normalized, center, pad_mode, None)
                if shown is not None:
                    return shown
            return before(waveform, pad, window, n_fft, hop_length, win_length, power, normalized, center, pad_mode, onesided, return_complex)

        return spectrogram

    def mel_call(self) -> Any:
        """What calls a MelSpectrogram."""

        def call(transform: Any, *arguments: Any, **options: Any) -> Any:
            if len(arguments) == 1 and not options and not torch.compiler.is_compiling() and (shown := self._mel_shown(transform, arguments[0])) is not None:
                return shown
            return torch.nn.Module.__call__(transform, *arguments, **options)

        return call

    def amplitude_to_db(self, before: Any) -> Any:
        def amplitude_to_DB(x: Any, multiplier: Any, amin: Any, db_multiplier: Any, top_db: Any = None) -> Any:
            usual = _is_usual(x) and all(type(number) in (float, int) for number in (multiplier, amin, db_multiplier))
            in_one = top_db is None or (type(top_db) in (float, int) and top_db >= 0 and x.ndim <= 3)  # More dimensions have limits of their own.
            if usual and in_one and _is_dense(x):
                decibels = torch.empty_like(x)
                limits = multiplier, amin, multiplier * db_multiplier, top_db
                if self._library.decibels(x.data_ptr(), x.numel(), *limits, decibels.data_ptr()):
                    return decibels
            return before(x, multiplier, amin, db_multiplier, top_db)

        return amplitude_to_DB

    def mask_along_axis(self, before: Any) -> Any:
        """Draws torchaudio's numbers and rounds what it makes of them as it does: to float32. It copies once, and writes no mask."""

        def mask_along_axis(specgram: Any, mask_param: Any, mask_value: Any, axis: Any, p: Any = 1.0) -> Any:
            usual = _is_usual(specgram) and specgram.ndim in (2, 3) and _is_dense(specgram) and specgram.numel() > 0 and type(mask_value) in (float, int)
            in_range = usual and type(mask_param) is int and mask_param >= 1 and p == 1.0 and axis in (specgram.ndim - 2, specgram.ndim - 1)
            if not in_range or max(specgram.shape[axis], mask_param) > _MOST_COLUMNS or torch.get_default_dtype() is not torch.float32:
                return before(specgram, mask_param, mask_value, axis, p)
            drawn = torch.rand(2).tolist()  # The same as one after the other.
            width = _float32(drawn[0] * mask_param)
            first, columns = int(_float32(drawn[1] * _float32(specgram.shape[axis] - width))), int(width)
            if columns >= mask_param:
                raise ValueError(f"a mask is {columns} columns wide, and has to be narrower than {mask_param}")
            begin, end = max(first, 0), max(0, min(first + columns, specgram.shape[axis]))  # A mask may be wider than what it masks.
            masked = torch.empty(specgram.shape, dtype=torch.float32, device="cpu")
            planes, masks_rows = (specgram.shape[0] if specgram.ndim == 3 else 1), axis == specgram.ndim - 2
            place = (planes, *specgram.shape[-2:]), not specgram.is_contiguous(), masks_rows, begin, max(0, end - begin)
            if not self._library.mask(*place, mask_value, specgram.data_ptr(), masked.data_ptr()):
                masked.copy_(specgram).narrow(axis, begin, max(0, end - begin)).fill_(mask_value)
            return masked

        return mask_along_axis

    def apply_sinc_resample_kernel(self, before: Any) -> Any:
        def _apply_sinc_resample_kernel(waveform: Any, orig_freq: Any, new_freq: Any, gcd: Any, kernel: Any, width: Any) -> Any:
            resampled = None
            if _is_usual(waveform) and waveform.ndim >= 1 and waveform.is_contiguous() and _is_usual(kernel) and kernel.is_contiguous():
                resampled = self._resampled(waveform, int(orig_freq) // gcd, int(new_freq) // gcd, kernel, width)
            return before(waveform, orig_freq, new_freq, gcd, kernel, width) if resampled is None else resampled

        return _apply_sinc_resample_kernel

    def _resampled(self, waveform: torch.Tensor, stride: int, phases: int, kernel: torch.Tensor, width: int) -> torch.Tensor | None:
        samples = waveform.shape[-1]
        if kernel.shape != (phases, 1, 2 * width + stride) or samples == 0:
            return None
        outputs = (samples // stride + 1) * phases
        resampled = torch.empty((*waveform.shape[:-1], outputs), dtype=torch.float32, device="cpu")
        plan = ResamplePlan(phases, kernel.shape[-1], stride, width, kernel.data_ptr())
        done = self._library.resample(plan, waveform.data_ptr(), waveform.numel() // samples, samples, outputs, resampled.data_ptr())
        # Rounded to float32, as torchaudio has it, whose result is such a part, too.
        return resampled[..., : int(torch.ceil(torch.as_tensor(phases * samples / stride)))] if done else None

    def _mel_shown(self, transform: Any, waveform: Any) -> torch.Tensor | None:
        own = vars(transform).get("_modules", {})
        parts = (transform, own.get("spectrogram"), own.get("mel_scale"))
        for part, (kind, forward) in zip(parts, self._parts, strict=True):
            if type(part) is not kind or kind.forward is not forward or is_hooked(part):
                return None
        of, bands = parts[1], parts[2].fb
        usual = _is_usual(bands) and bands.is_contiguous() and bands.ndim == 2 and not autocast_on_cpu()[0]
        if not usual or of.pad != 0 or not of.onesided or type(of.n_fft) is not int or bands.shape[0] != of.n_fft // 2 + 1:
            return None
        return self._shown(waveform, of.window, of.n_fft, of.hop_length, of.win_length, of.power, of.normalized, of.center, of.pad_mode, bands)

    def _shown(self, waveform: Any, window: Any, n_fft: Any, hop: Any, win_length: Any, power: Any, normalized: Any, center: Any, pad_mode: Any,
               bands: torch.Tensor | None) -> torch.Tensor | None:  # fmt: skip
        """The spectrogram, in bins or bands; None where only torchaudio makes it."""
        whole = all(type(length) is int for length in (n_fft, hop, win_length))
        if not (whole and _is_usual(waveform) and waveform.ndim >= 1 and _is_usual(window) and window.shape == (win_length,) and window.is_contiguous()):
            return None
        scale, border = _scale(normalized, window, n_fft), _BORDERS.get(pad_mode) if center else 0
        if scale is None or border is None or power not in (1.0, 2.0) or waveform.numel() == 0:
            return None
        waveform, samples = waveform.contiguous(), waveform.shape[-1]
        count, matrix = (0, 0) if bands is None else (bands.shape[1], bands.data_ptr())
        plan = SpectrogramPlan(n_fft, hop, win_length, window.data_ptr(), count, matrix, border, power == 1.0, scale)
        frames = self._library.frames(plan, samples)
        if frames == 0 or (bands is not None and count == 0):
            return None
        shown = torch.empty((*waveform.shape[:-1], frames, count or n_fft // 2 + 1), dtype=torch.float32, device="cpu")
        if not self._library.spectrogram(plan, waveform.data_ptr(), waveform.numel() // samples, samples, shown.data_ptr()):
            return None
        return shown.transpose(-1, -2)


def _is_usual(tensor: Any) -> bool:
    """Plain float32 numbers in memory, without gradients."""
    return (
        not torch.compiler.is_compiling()  # First: the compiler then sees nothing of what follows.
        and type(tensor) is torch.Tensor
        and tensor.dtype is torch.float32
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not (tensor.requires_grad and torch.is_grad_enabled())
        and not tensor.is_neg()
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch.jit.is_tracing()
    )


def _float32(number: float) -> float:
    return ctypes.c_float(number).value


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements lie side by side, the columns of its last two dimensions maybe before the rows."""
    return tensor.is_contiguous() or (tensor.ndim >= 2 and tensor.transpose(-1, -2).is_contiguous())


def _scale(normalized: Any, window: torch.Tensor, n_fft: int) -> float | None:
    """Of magnitudes; None for what torchaudio refuses."""
    if normalized is False:
        return 1.0
    if normalized is True or normalized == "window":
        energy = float(window.pow(2.0).sum().sqrt())
        return 1 / energy if energy > 0 else None
    return 1 / math.sqrt(n_fft) if normalized == "frame_length" else None
