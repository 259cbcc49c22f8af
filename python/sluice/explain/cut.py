"""What `explain` says of the cut between data workers and this host: native samples travel as the pixels that their operations on images have made, and
their tensors are made here (docs/designs/protocols.md, section 5).

A cut costs the link the bytes that are there at that place, and this host the CPU of what is behind it. Measured are both for every place. Operations on images that keep
the size may stand on either side for the same bytes, so that three places are worth a word: before everything, as a sample that is made here; behind the operations
on images; behind everything.
"""

from __future__ import annotations

from dataclasses import dataclass

from sluice.lowering.native_pipeline import NativePipeline
from sluice.makers.measured import Work

_DRAWN_BYTES = {"random_erasing": 8}  # Of a sample's operations on tensors, as they travel behind its pixels.


@dataclass(frozen=True)
class Cut:
    """Of a sample. `link_bytes`: that come to this host; `local_seconds`: CPU of this host."""

    name: str
    link_bytes: float
    local_seconds: float


def cuts(work: Work, native: NativePipeline) -> list[Cut]:
    """In the order of the pipeline. REQUIRES: `work` has samples"""
    drawn = sum(_DRAWN_BYTES.get(op["op"], 0) for op in native.operations())
    finish_seconds = work.ops["finish"].seconds if "finish" in work.ops else 0.0
    return [Cut("its file", work.ops["read"].bytes / work.samples if "read" in work.ops else 0.0, work.seconds / work.samples),
            Cut("its pixels", native.values + drawn, finish_seconds / work.samples),
            Cut("its tensor", native.tensor_bytes(), 0.0)]  # fmt: skip


def cut_in_words(work: Work, native: NativePipeline) -> list[str]:
    """Where data workers make batches: what the cut that is carried out costs, beside the others, and when another one would be cheaper."""
    file, carried_out, tensor = cuts(work, native)
    if not file.link_bytes or not file.local_seconds:
        return []
    told = ", ".join(f"{cut.name} {cut.link_bytes / 1024:.1f}" for cut in (file, tensor))
    spared = 1 - carried_out.local_seconds / file.local_seconds
    lines = [f"cut: data workers send {carried_out.link_bytes / 1024:.1f} KiB for a sample, {carried_out.name} ({told}), and spare this host {100 * spared:.0f} % of its CPU"]
    if file.link_bytes < carried_out.link_bytes:
        lines.append(f"  where the link is what is scarce, `placement: Local` takes {100 * file.link_bytes / carried_out.link_bytes:.0f} % of those bytes")
    return lines
