"""soundfile.read of whole FLAC files, natively: the same numbers.

Parts of files, files that are not named *.flac and options of other formats are soundfile's own business; so is every file that is not flawless.
"""

from __future__ import annotations

import functools
import inspect
import os
import stat
from typing import Any

import numpy

from sluice.media.audio_library import AudioLibrary

PARAMETERS = "file frames start stop dtype always_2d fill_value out samplerate channels format subtype endian closefd"
_SUFFIX = ".flac"
_MOST_BYTES = 1 << 30


def is_known(read: Any) -> bool:
    """Whether it is the function that `reading` knows."""
    return inspect.isfunction(read) and list(inspect.signature(read).parameters) == PARAMETERS.split()


def reading(library: AudioLibrary, before: Any) -> Any:
    """What takes the place of soundfile.read."""

    @functools.wraps(before)
    def read(file: Any, *arguments: Any, dtype: Any = "float64", always_2d: Any = False, **options: Any) -> Any:
        if not arguments and not options and (path := _flac_path(file)) is not None:
            found = _samples(library, path, dtype, always_2d)
            if found is not None:
                return found
        return before(file, *arguments, dtype=dtype, always_2d=always_2d, **options)

    return read


def _flac_path(file: Any) -> str | None:
    path = os.fspath(file) if isinstance(file, os.PathLike) else file
    return path if type(path) is str and path[-len(_SUFFIX) :].lower() == _SUFFIX else None


def _content(path: str) -> bytes | None:
    """Of a regular file. One that grows or shrinks meanwhile is cut off, which the decoder notices."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # A pipe must not keep us.
    try:
        status = os.fstat(descriptor)
        return os.read(descriptor, status.st_size) if stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES else None
    finally:
        os.close(descriptor)


def _samples(library: AudioLibrary, path: str, dtype: Any, always_2d: Any) -> tuple[numpy.ndarray, int] | None:
    if type(dtype) is not str or dtype not in library.SAMPLE_KINDS:
        return None
    try:
        data = _content(path)
    except OSError:
        return None  # soundfile has words of its own for it.
    if data is None or (stream := library.flac_stream(data)) is None:
        return None
    shape = (stream.frames,) if stream.channels == 1 and not always_2d else (stream.frames, stream.channels)
    samples = numpy.empty(shape, dtype)
    done = library.flac_samples(data, dtype, samples.__array_interface__["data"][0], samples.nbytes)
    return (samples, stream.rate_hertz) if done else None
