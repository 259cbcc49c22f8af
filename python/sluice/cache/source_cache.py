"""What `explain` and `sluice doctor` say of the feeder's cache of source files (docs/designs/cache.md). The feeder reads the same variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sluice.base.settings import Settings

# SLUICE_CACHE_FORM, and how `explain` puts it.
FORMS = {"auto": ", in the form that is measured to pay,", "source": "", "transcoded": ", JPEG transcoded,", "prefix": ", as what the transforms before the first random one make of them,"}


def asks_for_cache(environment: Mapping[str, str]) -> bool:
    return any(environment.get(f"SLUICE_CACHE_{name}") for name in ("DIR", "BYTES", "SOCKET"))


def cache_in_words(settings: Settings, environment: Mapping[str, str] | None = None) -> str:
    """A line for `explain`; "" where no cache is asked for. A feeder of another container has a disk of its own, which is not looked at."""
    env = os.environ if environment is None else environment
    if not asks_for_cache(env):
        return ""
    if mistake := mistake_in(env):
        return f"source files: not cached ({mistake.what}: {mistake.way_out})\n"
    cached = f"source files: cached{FORMS[env.get('SLUICE_CACHE_FORM') or 'auto']}"
    if socket := env.get("SLUICE_CACHE_SOCKET"):
        return f"{cached} by the node's cache at {socket}\n"
    directory, most = env["SLUICE_CACHE_DIR"], _gigabytes(int(env["SLUICE_CACHE_BYTES"]))
    if settings.feeder_socket is not None:
        return f"{cached} by the feeder in {directory}, at most {most}\n"
    return f"{cached} in {directory}, {_gigabytes(_bytes_on_disk(Path(directory)))} of at most {most}\n"


class Mistake(NamedTuple):
    what: str
    way_out: str


def mistake_in(env: Mapping[str, str]) -> Mistake | None:
    """Why the feeder runs without the cache that the variables ask for; None if they can be read."""
    directory, most, socket, form = (env.get(f"SLUICE_CACHE_{name}", "") for name in ("DIR", "BYTES", "SOCKET", "FORM"))
    if form and form not in FORMS:
        return Mistake(f"SLUICE_CACHE_FORM={form}", f"use {' or '.join(FORMS)}")
    if socket and (directory or most):
        return Mistake("SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR or SLUICE_CACHE_BYTES", "use one cache, and unset the other's variables")
    if socket and not socket.startswith("/"):
        return Mistake(f"SLUICE_CACHE_SOCKET={socket}", "use the path of sluice-cache's socket")
    if not socket and not (directory and most):
        return Mistake("one of SLUICE_CACHE_DIR and SLUICE_CACHE_BYTES is missing", "set both")
    if not socket and not (most.isascii() and most.isdigit() and 0 < int(most) < 1 << 63):
        return Mistake(f"SLUICE_CACHE_BYTES={most}", "use a number of bytes")
    return None


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
