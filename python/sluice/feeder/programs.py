"""How the programs of this installation are started: from the package's bundle, through the bundle's own loader, so that nothing of the host's C++
libraries matters. It imports no torch: a command that only starts a program should not wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sluice.base.settings import Settings

_BUNDLE = Path(__file__).resolve().parents[1] / "bundle"  # Of an installation.


def feeder_command(settings: Settings, bundle: Path | None = None) -> list[str] | None:
    """How to start a feeder: the binary that the settings name, else the bundle; None if there is neither."""
    if settings.feeder_binary is not None:
        return [settings.feeder_binary]
    return _bundled("sluice-feeder", bundle or _BUNDLE)


def node_cache_command(settings: Settings, bundle: Path | None = None) -> list[str] | None:
    """How to start the cache of a node: the program beside the feeder's; None if there is none."""
    if settings.feeder_binary is not None:
        program = Path(settings.feeder_binary).with_name("sluice-cache")
        return [str(program)] if program.exists() else None
    return _bundled("sluice-cache", bundle or _BUNDLE)


def _bundled(program: str, bundle: Path) -> list[str] | None:
    loader, binary = bundle / "lib" / "loader", bundle / "bin" / program
    if not (loader.exists() and binary.exists()):
        return None
    return [str(loader), "--library-path", str(bundle / "lib"), str(binary)]


def program_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Of a program that a process with this environment starts. The bundle's loader would load what LD_PRELOAD names into it, and end it where
    that needs a newer C library than the bundle's."""
    return {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
