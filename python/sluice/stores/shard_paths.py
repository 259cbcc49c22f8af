"""Which shards a data set is made of: a folder, a pattern with braces, URLs of objects, or a list of these."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from sluice.stores.object_urls import is_url, shown, target_of

MOST_SHARDS = 1_000_000
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\\)")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


def shard_paths(shards: Any) -> list[str]:
    """Absolute paths and URLs, in order. Raises ValueError for what names neither files nor objects."""
    if isinstance(shards, (str, os.PathLike)):
        shards = [shards]
    elif not isinstance(shards, Iterable):
        raise ValueError(f"shards are a folder, a pattern such as 'train-{{000..099}}.tar', or a list of paths, not {shards!r}")
    paths: list[str] = []
    for entry in shards:
        paths.extend(_paths_of(os.fspath(entry)))
        _require_few(len(paths))
    if not paths:
        raise ValueError("the list of shards is empty")
    return paths


def _paths_of(entry: Any) -> list[str]:
    if not isinstance(entry, str):
        raise ValueError(f"the path of a shard is a str, not {entry!r}")
    if is_url(entry):
        urls = list(expand_braces(entry))
        for url in urls:
            target_of(url)
        return urls
    if _URL.match(entry):
        raise ValueError(f"{shown(entry)} is neither a file nor s3://BUCKET/KEY or https://HOST/PATH: mount the bucket or copy its shards")
    if os.path.isdir(entry):
        names = sorted(name for name in os.listdir(entry) if name.endswith(".tar"))
        if not names:
            raise ValueError(f"the folder {entry} has no files *.tar")
        return [os.path.join(os.path.abspath(entry), name) for name in names]
    if os.path.exists(entry):  # A name may have braces of its own.
        return [os.path.abspath(entry)]
    return [os.path.abspath(path) for path in expand_braces(entry)]


def expand_braces(pattern: str) -> Iterator[str]:
    """As shells do: {a,b}, {0..9}, {000..099}, one within another. Braces with neither are braces."""
    for opening in (place for place, character in enumerate(pattern) if character == "{"):
        closing, commas = _group(pattern, opening)
        if closing is None:
            continue
        inner = pattern[opening + 1 : closing]
        between = _RANGE.fullmatch(inner)
        if between is None and not commas:
            continue
        choices = _numbers(*between.groups()) if between else _choices(pattern, opening, closing, commas)
        tails = list(expand_braces(pattern[closing + 1 :]))
        for choice in choices:
            for tail in tails:
                yield pattern[:opening] + choice + tail
        return
    yield pattern


def _group(pattern: str, opening: int) -> tuple[int | None, list[int]]:
    """Where the brace is closed, and its own commas."""
    depth, commas = 0, []
    for place in range(opening, len(pattern)):
        character = pattern[place]
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 1:
            commas.append(place)
        if depth == 0:
            return place, commas
    return None, []


def _choices(pattern: str, opening: int, closing: int, commas: list[int]) -> Iterator[str]:
    borders = [opening, *commas, closing]
    for begin, end in zip(borders, borders[1:], strict=False):
        yield from expand_braces(pattern[begin + 1 : end])


def _numbers(first: str, last: str) -> Iterator[str]:
    """Of equal width if one of the two begins with a zero."""
    padded = any(len(text) > 1 and text.startswith("0") for text in (first, last))
    width = max(len(first), len(last)) if padded else 0
    low, high = int(first), int(last)
    _require_few(abs(high - low) + 1)
    return (str(number).zfill(width) for number in (range(low, high + 1) if low <= high else range(low, high - 1, -1)))


def _require_few(count: int) -> None:
    if count > MOST_SHARDS:
        raise ValueError(f"there are {count} shards, more than {MOST_SHARDS}")
