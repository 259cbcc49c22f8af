"""The formats of image files that native executors decode. What a file holds is told by its first bytes; its name only says what to expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping

FORMATS = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "webp": "WebP"}  # By extension.
NAMES = tuple(f".{extension}" for extension in FORMATS)
KNOWN = "JPEG, PNG or WebP"


def by_format(files_with: Callable[[str], int]) -> dict[str, int]:
    """How many files there are of each format, of how many have an extension."""
    files = dict.fromkeys(FORMATS.values(), 0)
    for extension, form in FORMATS.items():
        files[form] += files_with(extension)
    return files


def in_words(files: Mapping[str, int]) -> str:
    """So many files of each format."""
    *others, last = [f"{number} {form}" for form, number in files.items() if number] or ["0 JPEG"]
    return f"{', '.join(others)} and {last} files" if others else f"{last} files"
