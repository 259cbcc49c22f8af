"""What `loader.explain()` returns: text, which a notebook shows as a table."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sluice.executor.laps import COLLATE, DATASET
from sluice.explain.advice import Site, advice
from sluice.explain.cache_table import should_i_cache
from sluice.explain.cut import cut_in_words
from sluice.explain.ordering import order_in_words
from sluice.lowering.native_pipeline import NativePipeline, draws
from sluice.makers.measured import MAKERS, REMOTE, Measured, Work

_TENSOR_OPS = ("to_tensor", "to_float", "normalize", "random_erasing")
_FUSED_OPS = ("random_resized_crop", "resize", "center_crop", "random_crop", "random_horizontal_flip", "random_vertical_flip")
_REST = "everything else"


@dataclass(frozen=True)
class Row:
    """One operation, over all batches. `seconds` and `micros` (of a sample): CPU. `kilobytes`: that it has made of a sample, in KiB. `inflation`: what
    it has made over what it got. `random`: whether it draws random numbers. None: not known."""

    name: str
    executor: str
    share: float
    micros: float
    kilobytes: float | None = None
    inflation: float | None = None
    random: bool | None = None


class Report(str):
    """A text that notebooks show as a table. It is equal to, and contains, whatever its text does."""

    _html: str

    def __new__(cls, text: str, html_text: str = "") -> Report:
        report = super().__new__(cls, text)
        report._html = html_text
        return report

    def _repr_html_(self) -> str:
        return self._html or f"<pre>{html.escape(self)}</pre>"


@dataclass(frozen=True)
class Explanation:
    """Of one loader. `head`: lines on who makes its batches and why; `tail`: the last line. `measured`: None where torch's own workers make
    them, or none were made. `python_parts`: what the two parts of a Python batch are here. `is_cached`: whether files are read through a cache."""

    head: list[str]
    tail: str = ""
    measured: Measured | None = None
    site: Site = Site(0, False, None)
    native: NativePipeline | None = None
    python_parts: tuple[str, str] = ("data set", "collate")
    may_become_native: bool = False
    is_cached: bool = False

    def report(self) -> Report:
        made, work, pace = self.measured.so_far() if self.measured is not None else ({}, {}, None)
        if not made or pace is None:
            not_measured = "not measured yet; " if self.measured is not None and self.tail else ""
            return Report("\n".join([*self.head, not_measured + self.tail] if self.tail else self.head))
        rows = self.rows(work)
        counts = ", ".join(f"{count} by {MAKERS.get(maker, maker)}" for maker, count in made.items())
        batches, samples = sum(made.values()), sum(one.samples for one in work.values())
        summary = f"measured: {batches} batches of {samples} samples, {counts}"
        what_to_do = [*_kept(work), *self._order(work), *self._cut(made, work), *self._gain(work), *advice(pace, self.site), *self._cache(work)]
        lines = [*self.head, f"  {summary}", *(f"    {line}" for line in _table(rows)), *(f"  {line}" for line in what_to_do), self.tail]
        return Report("\n".join(lines), _html(self.head, summary, rows, [*what_to_do, self.tail]))

    def rows(self, work: dict[str, Work]) -> list[Row]:
        """Of the table, in the order of the pipeline. The shares add up to 1."""
        total_seconds = sum(one.seconds for one in work.values()) or 1.0
        rows = []
        for executor, one in work.items():
            samples = max(1, one.samples)
            steps = self._native_steps(one) if executor == "native" else self._python_steps()
            known_seconds = 0.0
            for op, (name, of, random) in steps.items():
                if op not in one.ops:
                    continue
                cost = one.ops[op]
                known_seconds += cost.seconds
                rows.append(Row(name, executor, cost.seconds / total_seconds, 1e6 * cost.seconds / samples, cost.bytes / samples / 1024 or None,
                                cost.bytes / of if of and cost.bytes else None, random))  # fmt: skip
            rest_seconds = max(0.0, one.seconds - known_seconds)
            rows.append(Row(_REST, executor, rest_seconds / total_seconds, 1e6 * rest_seconds / samples))
        return rows

    def _native_steps(self, work: Work) -> dict[str, tuple[str, float | None, bool | None]]:
        """By the label of its cost: in words, the bytes that it got, and whether it is random. Crops, a resize and flips are one operation, and
        so is what makes the tensor. Where other operations stand between, it is run more than once, and what it got is not known."""
        ops = self.native.operations() if self.native is not None else []
        own = [op for op in ops if op["op"] in work.ops]
        fused = [op for op in ops if op["op"] in _FUSED_OPS and op not in own]
        tensor = [op for op in ops if op["op"] in _TENSOR_OPS]

        def step(name: str, parts: list[dict[str, Any]], of: float | None = None) -> tuple[str, float | None, bool]:
            return f"{name} ({', '.join(dict.fromkeys(op['op'] for op in parts))})" if parts else name, of, any(map(draws, parts))

        def made(op: str) -> float | None:
            return work.ops[op].bytes if op in work.ops else None

        pixels = work.samples * self.native.values if self.native is not None else None
        return {
            "read": ("read the file" if self.native is None or self.native.reads_files else "copy the pixels", None, False),
            "decode": step("decode", [op for op in ops if op["op"] == "decode_rgb"], made("read")),
            "resample": step("resample", fused, None if own else made("decode")),
            **{op["op"]: (op["op"], None, draws(op)) for op in own},
            "finish": step("make the tensor", tensor, pixels),
        }

    def _python_steps(self) -> dict[str, tuple[str, float | None, bool | None]]:
        return {DATASET: (self.python_parts[0], None, None), COLLATE: (self.python_parts[1], None, None)}

    def _order(self, work: dict[str, Work]) -> list[str]:
        return order_in_words(self.native.order, work.get("native")) if self.native is not None else []

    def _cut(self, made: dict[str, int], work: dict[str, Work]) -> list[str]:
        native = self._native_of_files()
        return cut_in_words(work["native"], native) if native is not None and REMOTE in made and "native" in work else []

    def _cache(self, work: dict[str, Work]) -> list[str]:
        """What was measured through a cache does not say what there would be without."""
        native = self._native_of_files()
        return should_i_cache(work["native"], native) if native is not None and "native" in work and not self.is_cached else []

    def _native_of_files(self) -> NativePipeline | None:
        """Images in memory are read from nowhere, and were sent at the beginning: there is nothing to cut or to cache."""
        return self.native if self.native is not None and self.native.reads_files else None

    def _gain(self, work: dict[str, Work]) -> list[str]:
        """What lowering would bring at most: its own cost cannot be measured before."""
        python = work.get("python")
        if not self.may_become_native or python is None or python.samples == 0:
            return []
        return [f"native operations would save at most these {1e6 * python.seconds / python.samples:.0f} CPU-microseconds a sample, less what they cost themselves"]


def _kept(work: dict[str, Work]) -> list[str]:
    """A line for each function whose results a cache may keep."""
    return [f"kept results of {function}: {kept.hits} of {kept.calls} calls found, {kept.saved_seconds:.3g} s of them saved, {kept.bytes / 1e6:.3g} MB read"
            for one in work.values() for function, kept in one.kept.items()]  # fmt: skip


_TITLES = ("operation", "by", "CPU", "us/sample", "KiB/sample", "out/in", "random")


def _cells(row: Row) -> tuple[str, ...]:
    random = "-" if row.random is None else "yes" if row.random else "no"
    return (row.name, row.executor, f"{100 * row.share:.1f} %", f"{row.micros:.1f}", "-" if row.kilobytes is None else f"{row.kilobytes:.1f}",
            "-" if row.inflation is None else f"{row.inflation:.2f}", random)  # fmt: skip


def _table(rows: Iterable[Row]) -> list[str]:
    cells = [_TITLES, *map(_cells, rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_TITLES))]
    return ["  ".join(cell.ljust(width) if column < 2 else cell.rjust(width) for column, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip()
            for line in cells]  # fmt: skip


def _html(head: list[str], summary: str, rows: list[Row], tail: list[str]) -> str:
    def paragraph(lines: list[str]) -> str:
        return f"<pre>{html.escape(chr(10).join(lines))}</pre>"

    titles = "".join(f"<th>{html.escape(title)}</th>" for title in (*_TITLES, ""))
    body = ""
    for row in rows:
        bar = f'<div style="width:{120 * row.share:.0f}px;height:0.8em;background:#4878a8"></div>'
        body += f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}<td>{bar}</td></tr>"
    return f"{paragraph(head)}<p>{html.escape(summary)}</p><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{paragraph(tail)}"
