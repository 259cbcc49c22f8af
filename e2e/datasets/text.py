#!/usr/bin/env python3
"""A data set of English prose: paragraphs of Debian's manuals, one a line.

    text.py [--count 5000]               prints the folder, which holds paragraphs.txt

From the HTML of the packages debian-handbook (GPL-2+ or CC-BY-SA-3.0), debian-reference-en (GPL-2+) and debian-policy
(GPL-2+, FHS). In the order of the manuals, without repetitions; deterministic.
"""

import html.parser
import pathlib
import sys
from collections.abc import Iterator

import cache

VERSION = 1
WORDS_MINIMUM = 8  # shorter ones are captions and list entries
MANUALS = {
    "debian-handbook": "usr/share/doc/debian-handbook/html/en-US",
    "debian-reference-en": "usr/share",
    "debian-policy": "usr/share/doc/debian-policy",
}


class _Paragraphs(html.parser.HTMLParser):
    """Collects the text of <p>, and of list entries and table cells that hold no paragraph of their own."""

    BLOCKS = frozenset(("p", "li", "dd", "td", "blockquote"))
    SILENT = frozenset(("script", "style", "pre", "nav"))

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._text: list[str] = []
        self._silent = 0

    def _end_block(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text = []
        if len(text.split()) >= WORDS_MINIMUM:
            self.found.append(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        self._silent += tag in self.SILENT
        if tag in self.BLOCKS:
            self._end_block()

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT
        if tag in self.BLOCKS:
            self._end_block()
        elif tag in ("div", "ul", "table", "h1", "h2", "h3", "h4"):
            self._text = []  # headings and navigation, which belong to no paragraph

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._text.append(data)


def paragraphs(document: str) -> list[str]:
    parser = _Paragraphs()
    parser.feed(document)
    parser.close()
    return parser.found


def all_paragraphs(packages: pathlib.Path) -> Iterator[str]:
    seen = set()
    for package, folder in MANUALS.items():
        for path in sorted((packages / package / folder).rglob("*.html")):
            if not path.is_file():  # a folder's name may end in .html as well
                continue
            for text in paragraphs(path.read_text(encoding="utf-8", errors="ignore")):
                if text not in seen:
                    seen.add(text)
                    yield text


def fill(out: pathlib.Path, count: int) -> None:
    cache.say(f"collecting {count} paragraphs from {', '.join(MANUALS)}")
    chosen = []
    for text in all_paragraphs(cache.packages(list(MANUALS))):
        chosen.append(text)
        if len(chosen) == count:
            break
    if len(chosen) < count:
        sys.exit(f"text.py: the manuals have only {len(chosen)} paragraphs\n  way out: a smaller --count")
    (out / "paragraphs.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")


if __name__ == "__main__":
    cache.command(__doc__, "text", 5000, VERSION, fill)
