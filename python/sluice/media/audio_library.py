"""The native library that computes on waveforms and spectrograms (src/pipeline/audio/audio_library.h). Calls release the interpreter's lock."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import NamedTuple

from sluice.media.native_library import first_usable, library_paths, open_library

_NAME = "libsluice_audio.so"
_VERSION = 1


class _Spectrogram(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_int64) for name in ("transform_length", "hop_length", "window_length")],
        ("window", ctypes.c_void_p),
        ("bands", ctypes.c_int64),
        ("matrix", ctypes.c_void_p),
        *[(name, ctypes.c_int32) for name in ("border", "magnitudes")],
        ("scale", ctypes.c_float),
    ]


class _Resampling(ctypes.Structure):
    _fields_ = [*[(name, ctypes.c_int64) for name in ("phases", "taps", "stride", "border")], ("kernel", ctypes.c_void_p)]


class _Mask(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_int64) for name in ("planes", "rows", "columns", "first", "count")],
        *[(name, ctypes.c_int32) for name in ("columns_first", "masks_rows")],
        ("value", ctypes.c_float),
    ]


class FlacStream(ctypes.Structure):
    """What a FLAC file says of itself; `frames` are samples of a channel."""

    frames: int
    channels: int
    bits: int
    rate_hertz: int
    _fields_ = [("frames", ctypes.c_int64), *[(name, ctypes.c_int32) for name in ("channels", "bits", "rate_hertz")]]


class SpectrogramPlan(NamedTuple):
    """`border`: half a transform on both sides: 0 none, 1 reflected, 2 zeros. `magnitudes`: else their squares. `scale`: of
    the magnitudes. `bands` 0: bins are shown. Addresses of float32."""

    transform_length: int
    hop_length: int
    window_length: int
    window: int
    bands: int
    matrix: int
    border: int
    magnitudes: bool
    scale: float


class ResamplePlan(NamedTuple):
    """torchaudio's kernel [phases][taps] at an address: so many outputs for `stride` inputs; the first tap is `border` before the first of those."""

    phases: int
    taps: int
    stride: int
    border: int
    kernel: int


class AudioLibrary:
    """Thread-safe. Methods return False for what only torchaudio answers for; what they have written is then unspecified."""

    SAMPLE_KINDS = {"float32": 0, "float64": 1, "int16": 2}

    def __init__(self, path: Path) -> None:
        """Raises OSError if this process cannot use the library at `path`."""
        library = open_library(path, "sluice_audio_library_version", _VERSION)
        address, whole, single = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
        self._frames = library.sluice_audio_frames
        self._frames.argtypes, self._frames.restype = [ctypes.POINTER(_Spectrogram), whole], whole
        self._show = library.sluice_audio_spectrogram
        self._show.argtypes = [ctypes.POINTER(_Spectrogram), address, whole, whole, address]
        self._make_decibels = library.sluice_audio_decibels
        self._make_decibels.argtypes = [address, whole, *[single] * 4, address]
        self._mask = library.sluice_audio_mask
        self._mask.argtypes = [ctypes.POINTER(_Mask), address, address]
        self._resample = library.sluice_audio_resample
        self._resample.argtypes = [ctypes.POINTER(_Resampling), address, whole, whole, whole, address]
        self._flac_info = library.sluice_audio_flac_info
        self._flac_info.argtypes = [ctypes.c_char_p, whole, ctypes.POINTER(FlacStream)]
        self._flac_samples = library.sluice_audio_flac_samples
        self._flac_samples.argtypes = [ctypes.c_char_p, whole, ctypes.c_int32, address, whole]

    def frames(self, plan: SpectrogramPlan, samples: int) -> int:
        """Of a spectrogram; 0 for a plan that only torchaudio answers for."""
        return self._frames(_Spectrogram(*plan), samples)

    def spectrogram(self, plan: SpectrogramPlan, waveform: int, channels: int, samples: int, shown: int) -> bool:
        """Writes [channels][frames][bins or bands] floats of [channels][samples]."""
        return self._show(_Spectrogram(*plan), waveform, channels, samples, shown) == 0

    def decibels(self, values: int, count: int, multiplier: float, least: float, reference: float, span: float | None, decibels: int) -> bool:
        """Writes `count` floats: multiplier * log10(max(value, least)) - reference, none of them more than `span` below the largest."""
        return self._make_decibels(values, count, multiplier, least, reference, -1.0 if span is None else span, decibels) == 0

    def mask(self, shape: tuple[int, int, int], columns_first: bool, masks_rows: bool, first: int, count: int, value: float, of: int, masked: int) -> bool:
        """Writes a copy of [planes][rows][columns] floats, whose `count` rows, or columns, from the `first` on have one value."""
        return self._mask(_Mask(*shape, first, count, columns_first, masks_rows, value), of, masked) == 0

    def resample(self, plan: ResamplePlan, waveform: int, channels: int, samples: int, outputs: int, resampled: int) -> bool:
        """Writes [channels][outputs] floats of [channels][samples]."""
        return self._resample(_Resampling(*plan), waveform, channels, samples, outputs, resampled) == 0

    def flac_stream(self, file: bytes) -> FlacStream | None:
        """None of what only libsndfile reads."""
        stream = FlacStream()
        return stream if self._flac_info(file, len(file), stream) == 0 else None

    def flac_samples(self, file: bytes, kind: str, samples: int, nbytes: int) -> bool:
        """Writes [frames][channels] samples of a kind of SAMPLE_KINDS to so many bytes."""
        return self._flac_samples(file, len(file), self.SAMPLE_KINDS[kind], samples, nbytes) == 0


def audio_library_paths() -> list[Path]:
    """Those that there are beside the feeder."""
    return library_paths(_NAME)


def find_audio_library() -> AudioLibrary | None:
    """None where there is none, or none for this machine's C library: torchaudio and soundfile then do their own work."""
    return first_usable(AudioLibrary, audio_library_paths())
