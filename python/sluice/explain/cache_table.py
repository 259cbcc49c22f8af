"""What `explain` says to "should I cache?": the forms in which a feeder could keep the files of a native pipeline (docs/designs/cache.md), from what its
samples take without one.

Measured are the bytes of the files, the CPU of each operation and the wait for the files. What a form would weigh and save is estimated from these, as no file
is kept in it yet; a feeder with a cache tries the forms on some samples, and chooses by what it measures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from sluice.lowering.native_pipeline import NativePipeline, draws
from sluice.makers.measured import Work

MIN_SAMPLES = 100
_NO_GAIN = 0.05  # Of the seconds of an epoch: less is not worth a disk.
# A read that waits for less is as fast as one of a local disk, from which the cache would read. The feeder has the same limit.
_FAST_READ_SECONDS, _FAST_READ_SECONDS_PER_BYTE = 1e-3, 2e-9
# Figures of photographs (docs/designs/cache.md): coefficients have twice the bytes of their files, and spare half of the decoding.
_COEFFICIENT_BYTES, _COEFFICIENT_GAIN = 2.0, 0.5
_WIDTH_OVER_HEIGHT = 4 / 3
_SIZED_OPS = ("resize", "center_crop")


@dataclass(frozen=True)
class Form:
    """Of all samples in this form. `bytes`: on disk. Seconds that an epoch saves: CPU, and wait for the files."""

    name: str
    bytes: float
    cpu_seconds: float
    wait_seconds: float
    note: str = ""

    @property
    def seconds(self) -> float:
        return self.cpu_seconds + self.wait_seconds


def should_i_cache(work: Work, native: NativePipeline) -> list[str]:
    """Lines of text. `work`: measured without a cache."""
    if work.samples < MIN_SAMPLES or "read" not in work.ops:
        return [f"should I cache? not measured yet: {MIN_SAMPLES} samples are needed, and there are {work.samples}"]
    forms = _forms(work, native)
    epoch_seconds = (work.seconds + (work.blocked_seconds or 0.0)) * native.samples / work.samples
    best = max(forms, key=lambda form: form.seconds)
    if best.seconds < _NO_GAIN * epoch_seconds:
        return ["should I cache? no: the files are read as fast as a local disk reads, and another form would save little"]
    wait = "" if work.blocked_seconds is not None else "; how long reads wait is not known"
    lines = [f"should I cache? an epoch of {native.samples} samples takes {epoch_seconds:.3g} seconds of executors' threads{wait}; estimated for a cache:"]
    lines += [f"  {line}" for line in _table(forms)]
    gigabytes = math.ceil(1.3 * best.bytes / 1e9)
    return [*lines, f"  to have it: SLUICE_CACHE_DIR=FOLDER SLUICE_CACHE_BYTES={gigabytes}000000000; it tries the forms and keeps the one that pays most"]


def _forms(work: Work, native: NativePipeline) -> list[Form]:
    count = native.samples
    per_epoch = count / work.samples

    def cpu(*ops: str) -> float:
        return sum(work.ops[op].seconds for op in ops if op in work.ops) * per_epoch

    file_bytes = work.ops["read"].bytes / work.samples
    blocked_seconds = (work.blocked_seconds or 0.0) / work.samples
    wait_seconds = count * blocked_seconds if blocked_seconds > _FAST_READ_SECONDS + _FAST_READ_SECONDS_PER_BYTE * file_bytes else 0.0
    forms = [Form("source bytes", count * file_bytes, 0.0, wait_seconds, "measured")]
    formats = native.files.formats()
    jpegs = formats.get("JPEG", 0) / max(1, sum(formats.values()))
    if jpegs > 0:
        grown = 1 + jpegs * (_COEFFICIENT_BYTES - 1)
        forms.append(Form("transcoded JPEG", grown * count * file_bytes, jpegs * _COEFFICIENT_GAIN * cpu("decode"), wait_seconds))
    ops = native.shared_operations()
    prefix = _prefix(ops)
    if len(prefix) > 1:
        spared = cpu("decode", "resample", *{op["op"] for op in prefix})
        forms.append(Form("prefix", 3 * count * _pixels(prefix, native), spared, wait_seconds, f"output of {prefix[-1]['op']}"))
    return forms


def _prefix(ops: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first operations on images that draw nothing."""
    prefix = []
    for op in ops:
        if draws(op) or op["op"] in ("to_tensor", "to_float", "normalize"):
            break
        prefix.append(op)
    return prefix


def _pixels(prefix: list[dict[str, Any]], native: NativePipeline) -> float:
    """Of what the prefix makes of a photograph."""
    last = next((op for op in reversed(prefix) if op["op"] in _SIZED_OPS), None)
    if last is None or not native.draws:
        return native.images[0].height * native.images[0].width
    height, width = last["size"] if len(last["size"]) > 1 else (last["size"][0], _WIDTH_OVER_HEIGHT * last["size"][0])
    return height * width


_TITLES = ("form", "disk", "CPU saved", "wait saved", "")


def _table(forms: list[Form]) -> list[str]:
    rows = [_TITLES, *((form.name, f"{form.bytes / 1e9:.3g} GB", f"{form.cpu_seconds:.3g} s", f"{form.wait_seconds:.3g} s", form.note or "estimated") for form in forms)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
    return ["  ".join(cell.rjust(width) if 0 < column < 4 else cell.ljust(width) for column, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in rows]
