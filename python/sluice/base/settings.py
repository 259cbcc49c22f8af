"""What the environment says: read anew for every iterator, so that a notebook can change it between two cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

_Number = TypeVar("_Number", int, float)
_Default = TypeVar("_Default")

# What becomes of a sample whose reading or transforming fails (sluice.executor.skipping).
RAISE, SKIP = POLICIES = ("raise", "skip")

# When native operations may change pixels later than in the program (docs/designs/ordering.md).
EXACT, PROGRAM, RELAXED = ORDERS = ("exact", "program", "relaxed")

# Every variable that means something to the client, the feeder or a data worker. A name that is not here is misspelt: `sluice doctor` says so.
VARIABLES = frozenset({
    "SLUICE", "SLUICE_AHEAD", "SLUICE_ARENA_BYTES", "SLUICE_ATTACH", "SLUICE_EXPLAIN", "SLUICE_FEEDER_BINARY", "SLUICE_FEEDER_SOCKET", "SLUICE_LAZY_IMAGES",
    "SLUICE_LOSS_PATIENCE_SECONDS", "SLUICE_LOWERING", "SLUICE_NATIVE_AUDIO", "SLUICE_ON_ERROR", "SLUICE_ORDER", "SLUICE_RANDOMNESS", "SLUICE_REPORT", "SLUICE_SHARE_FEEDER",
    "SLUICE_START_PATIENCE_SECONDS", "SLUICE_STEP_ASIDE", "SLUICE_THREADS",
    "SLUICE_CACHE_BYTES", "SLUICE_CACHE_DIR", "SLUICE_CACHE_FORM", "SLUICE_CACHE_SOCKET", "SLUICE_LOG", "SLUICE_LOG_FORMAT",  # The feeder's and the workers'.
    "SLUICE_JOB", "SLUICE_NAMESPACE", "SLUICE_USER_PYTHONPATH", "SLUICE_CACHE_SERVICE", "SLUICE_CACHE_SERVICE_FILES", "SLUICE_CACHE_VOLUMES",  # Set by the operator.
    "SLUICE_BUILD", "SLUICE_CACHE",  # Of a checkout: where it was built, and its Makefile's folder.
})  # fmt: skip


class SettingError(ValueError):
    """A variable holds something that cannot be meant; the message names it and what it may be."""


@dataclass(frozen=True)
class Settings:
    """`enabled`: Sluice may be used at all. `ahead`: batches are made before their epoch begins. `step_aside`: this process makes
    a Python pipeline's batches until an executor pays. `lazy_images`: executors decode the JPEGs, PNGs and WebPs that PIL opens natively, and late.
    `native_audio`: torchaudio's spectrograms are computed natively, and may differ in rounding.
    `torch_randomness`: each virtual worker draws the numbers that torch's worker draws; otherwise every sample has a seed of its own.
    `order`: one of ORDERS. `on_error`: what becomes of samples that fail, where the loader does not say it: `raise` or `skip`. `report`: the loaders are
    told at the end; `explain`: with what was measured of them. `share_feeder`: the ranks of a host may have one feeder. Seconds
    and bytes as the names say; `threads` 0 means the cgroup's quota."""

    enabled: bool = True
    lowering: bool = True
    ahead: bool = True
    step_aside: bool = True
    lazy_images: bool = True
    native_audio: bool = False
    torch_randomness: bool = False
    on_error: str = RAISE
    order: str = EXACT
    report: bool = False
    share_feeder: bool = True
    explain: bool = False
    feeder_socket: str | None = None
    feeder_binary: str | None = None
    threads: int = 0
    arena_bytes: int | None = None
    start_patience_seconds: float = 10.0
    loss_patience_seconds: float = 10.0

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Settings:
        """Raises SettingError for a value that cannot be read."""
        env = os.environ if environment is None else environment
        arena = _number(env, "SLUICE_ARENA_BYTES", None, int)
        return Settings(
            enabled=is_on(env, "SLUICE"),
            lowering=is_on(env, "SLUICE_LOWERING"),
            ahead=is_on(env, "SLUICE_AHEAD"),
            step_aside=is_on(env, "SLUICE_STEP_ASIDE"),
            lazy_images=is_on(env, "SLUICE_LAZY_IMAGES"),
            native_audio=is_on(env, "SLUICE_NATIVE_AUDIO", "off"),
            torch_randomness=_choice(env, "SLUICE_RANDOMNESS", ("sample", "torch")) == "torch",
            on_error=_choice(env, "SLUICE_ON_ERROR", POLICIES),
            order=_choice(env, "SLUICE_ORDER", ORDERS),
            report=is_on(env, "SLUICE_REPORT", "off"),
            share_feeder=is_on(env, "SLUICE_SHARE_FEEDER"),
            explain=is_on(env, "SLUICE_EXPLAIN", "off"),
            feeder_socket=env.get("SLUICE_FEEDER_SOCKET") or None,
            feeder_binary=env.get("SLUICE_FEEDER_BINARY") or None,
            threads=_number(env, "SLUICE_THREADS", 0, int),
            arena_bytes=arena,
            start_patience_seconds=_number(env, "SLUICE_START_PATIENCE_SECONDS", 10.0, float),
            loss_patience_seconds=_number(env, "SLUICE_LOSS_PATIENCE_SECONDS", 10.0, float),
        )


def is_on(env: Mapping[str, str], name: str, default: str = "on") -> bool:
    """The value of a switch. Raises SettingError for one that is neither on nor off."""
    value = env.get(name, "").strip().lower() or default
    if value in ("on", "1", "true", "yes"):
        return True
    if value in ("off", "0", "false", "no"):
        return False
    raise SettingError(f"{name}={value!r}: use on or off")


def _choice(env: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """The first one is the default."""
    value = env.get(name, "").strip().lower() or values[0]
    if value not in values:
        raise SettingError(f"{name}={value!r}: use {' or '.join(values)}")
    return value


def _number(env: Mapping[str, str], name: str, default: _Default, kind: Callable[[str], _Number]) -> _Number | _Default:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = kind(text)
    except ValueError:
        raise SettingError(f"{name}={text!r}: use a number") from None
    if not 0 <= value < 2**62:
        raise SettingError(f"{name}={text!r}: use a number that is not negative")
    return value
