"""Samples that fail, left out of their batches (docs/designs/bad-samples.md).

The maker of a batch leaves them out: an executor's child, a data worker, a fork, or this process. What is left out depends on the request and on the
data, as the batch does. So it travels in the place of the batch, and the loop's iterator opens it.
"""

from __future__ import annotations

import errno
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Subset

from sluice.base.notices import log
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.shipping.failures import describe, lacks_the_script, message_of, reraise

MOST_KEPT = 10_000
MOST_TOLD = 5  # Of each loader.
MOST_LOST_IN_A_ROW = 100  # Samples. So many are no bad data, but a bug of the transform or a disk that is gone.
_MOST_CHARACTERS = 500

_NO_MEMORY = (MemoryError, getattr(torch, "OutOfMemoryError", MemoryError))
# What the machine lacks: the same sample is good elsewhere, or a moment later.
_LACKS = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.ENOBUFS}


@dataclass(frozen=True)
class Skipped:
    """A sample that was left out. `batch`: the number of its batch in the epoch, from 0, as the sampler yields them. `index`: its key
    in the data set. `error`: the type and the message of what was raised. `path`: of its file, "" if the data set does not list files."""

    batch: int
    index: Any
    error: str
    path: str = ""

    def __str__(self) -> str:
        return f"sample {self.index}{f' ({self.path})' if self.path else ''}: {self.error}"


@dataclass(frozen=True)
class Reduced:
    """What is left of a batch. `failure`: of the last sample, as `describe` has it, where nothing is left."""

    batch: Any
    skipped: list[Skipped]
    failure: tuple[dict[str, Any], bytes] | None = None

    def require_something(self) -> None:
        """Raises NothingLeft. An executor so tells it as a failure: a feeder does not believe a data worker that fails whole batches,
        and the training process makes such a batch itself."""
        if self.failure is not None:
            raise NothingLeft(f"all {len(self.skipped)} samples of the batch fail, the last one is {self.skipped[-1]}")


class NothingLeft(Exception):
    """Every sample of a batch has failed."""


class _NothingLeft:
    """In the place of a batch of which every sample was left out."""


NOTHING_LEFT = _NothingLeft()


def leave_out_failures(dataset: Any, batch: int, keys: list[Any], auto_collation: bool, at_once: bool, seed: Callable[[int], None],
                       finish: Callable[[Any], Any]) -> Any:
    """The batch, or a Reduced. `at_once`: the data set is asked for whole batches. One that fails is asked for its samples one by one. `seed`
    is called before each sample with its place in the batch. `finish` collates; what that raises is not left out."""
    failure_at_once: Exception | None = None
    if at_once:
        seed(0)
        try:
            fetched = dataset.__getitems__(keys)
        except Exception as error:
            _require_of_sample(error)
            failure_at_once = error
        else:
            return finish(fetched)
    samples: list[Any] = []
    skipped: list[Skipped] = []
    last_error: Exception | None = None
    for place, key in enumerate(keys):
        seed(place)
        try:
            sample = dataset.__getitems__([key]) if at_once else dataset[key]
        except Exception as error:
            _require_of_sample(error)
            last_error = error
            skipped.append(Skipped(batch, key, _in_words(error), path_of(dataset, key)))
            continue
        if at_once:
            if failure_at_once is not None and (type(sample) is not list or len(sample) != 1):
                raise failure_at_once  # It makes batches of a form of its own, of which nothing can be left out.
            sample = sample[0]
        samples.append(sample)
    if last_error is not None and not samples:
        return Reduced(None, skipped, describe(last_error))
    last_error = failure_at_once = None  # Their tracebacks lead here, and so would keep the samples alive.
    made = finish(samples if auto_collation else samples[0])
    return Reduced(made, skipped) if skipped else made


def _require_of_sample(error: Exception) -> None:
    """Raises `error` if it says nothing about the sample."""
    pass_on_of_a_handler(error)
    if isinstance(error, _NO_MEMORY) or (isinstance(error, OSError) and error.errno in _LACKS) or lacks_the_script(error):
        raise error


def _in_words(error: Exception) -> str:
    text = f"{type(error).__name__}: {message_of(error)}"
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + " ..."


def path_of(dataset: Any, key: Any) -> str:
    """Of the file of a sample, where the data set lists its files as torchvision's folders do; otherwise ""."""
    try:
        while type(dataset) is Subset:
            dataset, key = dataset.dataset, dataset.indices[key]
        entry = dataset.samples[key]
        path = entry[0] if isinstance(entry, (tuple, list)) else entry
        return path if isinstance(path, str) else ""
    except Exception:  # Any data set may have an attribute of that name.
        return ""


class SkippedSamples:
    """What was left out of the batches that the loop has had in one epoch. Not thread-safe: it belongs to the loop."""

    def __init__(self, before: SkippedSamples | None = None) -> None:
        """`before`: of the loader's last epoch. What was told then is not told again."""
        self.latest: deque[Skipped] = deque(maxlen=MOST_KEPT)
        self._told: set[tuple[Any, str]] = before._told if before is not None else set()
        self._lost_in_a_row = 0

    def open(self, made: Any, worker_id: int, count: Callable[[int], None]) -> Any:
        """The batch that was made, or NOTHING_LEFT. `count` is told how many samples it lacks. Raises what the last sample has raised, if
        too many were lost with the batches in a row."""
        if not isinstance(made, Reduced):
            self._lost_in_a_row = 0
            return made
        self.latest.extend(made.skipped)
        count(len(made.skipped))
        for sample in made.skipped:
            self._tell(sample)
        if made.failure is None:
            self._lost_in_a_row = 0
            return made.batch
        self._lost_in_a_row += len(made.skipped)
        if self._lost_in_a_row >= MOST_LOST_IN_A_ROW:
            log.error("%d samples in a row have failed: that is more than bad data, and the last one's error is raised", self._lost_in_a_row)
            reraise(*made.failure, worker_id)
        return NOTHING_LEFT

    def _tell(self, sample: Skipped) -> None:
        about = (str(sample.index), sample.error)
        if about in self._told or len(self._told) > MOST_TOLD:
            return
        self._told.add(about)
        if len(self._told) <= MOST_TOLD:
            log.log(logging.WARNING, "left out of its batch: %s", sample)
        else:
            log.log(logging.WARNING, "further samples are left out; the loader's `skipped` lists them")
