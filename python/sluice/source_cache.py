"""What `explain` says of the feeder's cache of source files (docs/designs/cache.md). The feeder reads the same variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from sluice.settings import Settings

# SLUICE_CACHE_FORM, and how `explain` puts it.
FORMS = {"auto": ", in the form that is measured to pay,", "source": "", "transcoded": ", JPEG transcoded,", "prefix": ", as what the transforms before the first random one make of them,"}


def asks_for_cache(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("SLUICE_CACHE_DIR") or environment.get("SLUICE_CACHE_BYTES"))


def cache_in_words(settings: Settings, environment: Mapping[str, str] | None = None) -> str:
    """A line for `explain`; "" where no cache is asked for. A feeder of another container has a disk of its own, which is not looked at."""
    env = os.environ if environment is None else environment
    if not asks_for_cache(env):
        return ""
    directory, most = env.get("SLUICE_CACHE_DIR", ""), env.get("SLUICE_CACHE_BYTES", "")
    if not directory or not (most.isascii() and most.isdigit()) or int(most) == 0:
        return "source files: not cached (set both SLUICE_CACHE_DIR and SLUICE_CACHE_BYTES, a number of bytes)\n"
    form = env.get("SLUICE_CACHE_FORM", "") or "auto"
    if form not in FORMS:
        return f"source files: not cached (SLUICE_CACHE_FORM={form}: use {' or '.join(FORMS)})\n"
    cached = f"cached{FORMS[form]}"
    if settings.feeder_socket is not None:
        return f"source files: {cached} by the feeder in {directory}, at most {_gigabytes(int(most))}\n"
    return f"source files: {cached} in {directory}, {_gigabytes(_bytes_on_disk(Path(directory)))} of at most {_gigabytes(int(most))}\n"


def _bytes_on_disk(directory: Path) -> int:
    total = 0
    for segment in directory.glob("sluice-*.segment"):
        try:
            total += segment.stat().st_size
        except OSError:  # Removed meanwhile, or not ours to look at.
            continue
    return total


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
