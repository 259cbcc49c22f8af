"""Notes what each batch of a loop has cost, as its maker says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.feeder.answer import Answer
from sluice.makers.forks import Forked
from sluice.makers.measured import FORKS, HERE, LOCAL, Measured

if TYPE_CHECKING:
    from sluice.executor.computation import BatchRequest
    from sluice.loader.pipeline import Pipeline
    from sluice.loader.stream import Stream


def note(measured: Measured, stream: Stream, pipeline: Pipeline, request: BatchRequest, made: Answer | Forked | None) -> None:
    """`made`: None if this process has made the batch, as it has where the answer is a failure. REQUIRES: the batch is made."""
    samples = len(request.indices)
    if isinstance(made, Forked):
        measured.add(FORKS, "python", samples, made.ops, stream.account)
    elif made is None or made.failed:
        measured.add(HERE, "python", samples, pipeline.costs_here(), stream.account)
    else:
        told = made.message
        measured.add(told.get("placement", LOCAL), stream.pipeline.executor, samples, told.get("ops", []), stream.account, told.get("seconds"),
                     told.get("blocked_seconds"), told.get("kept", ()))
