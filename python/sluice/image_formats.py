"""The formats of image files that native executors decode. What a file holds is told by its first bytes; its name only says what to expect."""

from __future__ import annotations

FORMATS = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG"}  # By extension.
NAMES = tuple(f".{extension}" for extension in FORMATS)
KNOWN = " or ".join(sorted(set(FORMATS.values())))


def in_words(samples: int, pngs: int) -> str:
    """So many files, of which `pngs` are PNGs by their names."""
    if pngs == 0 or pngs == samples:
        return f"{samples} {'PNG' if pngs else 'JPEG'} files"
    return f"{samples - pngs} JPEG and {pngs} PNG files"
