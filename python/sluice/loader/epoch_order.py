"""The order of an epoch, told to a feeder that shares its cache with other jobs (docs/designs/cache.md). A wrong one costs hits of that cache, and
changes no batch."""

from __future__ import annotations

from typing import Any

from sluice.feeder.session import Session
from sluice.loader.pipeline import Pipeline
from sluice.loader.prediction import Moment, order_from


def order_to_tell(session: Session | None, pipeline: Pipeline, loader: Any, before: Moment | None, draws_base_seed: bool) -> dict | None:
    """Of the epoch that begins; `before`: the moment before it drew anything, None if it goes on. None where it is of no use, or not known. A feeder
    that has only just come is told of the next epoch."""
    if session is None or not session.takes_orders or pipeline.native is None or before is None:
        return None
    return order_from(loader, before, draws_base_seed)
