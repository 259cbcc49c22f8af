"""torch's own iterators, with an account of what the loop has had. So the loaders that torch serves have a state, too.

A map-style data set resumes by its sampler: no batch is made again. An iterable data set makes its first batches again, in the processes that
made them before, and drops them. So does a map-style one of which each worker keeps a state of its own. With num_workers=0 an iterable one is spared
that if it has `state_dict` and `load_state_dict`, or if its iterator has them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import torch
from torch.utils.data import IterableDataset
from torch.utils.data._utils.pin_memory import pin_memory
from torch.utils.data.dataloader import _BaseDataLoaderIter, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

from sluice.executor.generators import StateError, capture_generators, restore_generators
from sluice.executor.skipping import NOTHING_LEFT, leave_out_failures
from sluice.loader.checkpoint import Progress, drawing, has_state
from sluice.loader.offered import state_kept
from sluice.loader.shown_warnings import check_num_workers


def obstacle(loader: Any) -> str:
    """Why this loader cannot be resumed where torch serves it; "" if it can."""
    if loader.num_workers == 0 or getattr(loader, "in_order", True):
        return ""
    return "with in_order=False its batches come in another order each time"


def iterator(loader: Any, leaves_out_failures: bool = False) -> Any:
    """`leaves_out_failures`: of samples, where this process makes the batches of a map-style data set. Raises StateError for a state that
    does not fit. REQUIRES: there is no obstacle."""
    resume = loader._take_resume()
    if resume is not None and resume.begun:
        _check(loader, resume)
    puts_back = resume is not None and resume.data is not None and _load_data(loader, resume)
    if loader.num_workers > 0:
        check_num_workers(loader)
        return _IterableInWorkers(loader, resume) if isinstance(loader.dataset, IterableDataset) else _MapStyleInWorkers(loader, resume)
    if isinstance(loader.dataset, IterableDataset):
        return _IterableHere(loader, resume)
    return _MapStyleHere(loader, resume, puts_back, leaves_out_failures)


def _load_data(loader: Any, resume: Progress) -> bool:
    """Whether the data set has put torch's default generator back. All that had not been drawn comes from that then."""
    before = torch.get_rng_state()
    loader.dataset.load_state_dict(resume.data)
    return not torch.equal(before, torch.get_rng_state())


def _check(loader: Any, resume: Progress) -> None:
    if not isinstance(loader.dataset, IterableDataset):
        if resume.virtual_workers is not None:
            resume.require_virtual_workers(loader.num_workers)
        return
    workers = loader.num_workers
    if resume.virtual_workers != workers:
        raise StateError(f"the state is of a data set divided by num_workers={resume.virtual_workers}, this one by num_workers={workers}")
    if workers and resume.pass_number > 0:
        raise StateError("persistent workers had gone on from earlier epochs; an iterable data set resumes in the first, or at an epoch's start")


def _dividing_workers(loader: Any) -> int | None:
    """The number by which an iterable data set may divide itself; None if it is map-style."""
    return loader.num_workers if isinstance(loader.dataset, IterableDataset) else None


class Accounted(_BaseDataLoaderIter):
    """Draws from the generators what torch's class draws. A resumed pass leaves the process's own as they are."""

    _base_seed: int

    def __init__(self, loader: Any, resume: Progress | None) -> None:
        with drawing(loader, resume) as resumed:
            self._before = generators = capture_generators(loader)
            super().__init__(loader)
            epoch = loader._next_epoch if resume is None else resume.epoch
            self._progress = Progress(self._base_seed, True, 0, epoch, generators=generators, virtual_workers=self._virtual_workers(loader))
            self._skipped = loader._follow(self._progress)
            if resumed is not None:
                self._skip(resumed)

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        """torch calls this at the start, and with persistent_workers for every further epoch. `load_state_dict` ends such workers, so
        that no state is resumed here."""
        if first_iter:
            super()._reset(loader, first_iter)
            return
        before, generators = self._progress, capture_generators(loader)
        super()._reset(loader, first_iter)
        self._progress = Progress(self._base_seed, True, before.pass_number + 1, loader._next_epoch, generators=generators,
                                  virtual_workers=before.virtual_workers)
        self._skipped = loader._follow(self._progress)

    def _virtual_workers(self, loader: Any) -> int | None:
        return _dividing_workers(loader)

    def _skip(self, resume: Progress) -> None:
        """Passes over what the loop has had of the resumed epoch. Raises StateError if the epoch is too short for that."""
        raise NotImplementedError


class _MapStyleHere(Accounted, _SingleProcessDataLoaderIter):
    """A batch counts as soon as its indices are drawn, as torch does not make it again after an exception."""

    def __init__(self, loader: Any, resume: Progress | None, puts_back: bool, leaves_out_failures: bool) -> None:
        """`puts_back`: the data set has put torch's default generator back. `leaves_out_failures`: of samples."""
        self._next_seq = 0
        self._puts_back = puts_back
        self._leaves_out_failures = leaves_out_failures
        self._drawn: deque[tuple[int, Any]] = deque()  # What a resumed pass has drawn, and the loop has not had.
        super().__init__(loader, resume)
        self._profile_name = f"enumerate(DataLoader)#{_SingleProcessDataLoaderIter.__name__}.__next__"

    def _next_index(self) -> Any:
        try:
            seq, index = self._drawn.popleft() if self._drawn else self._draw()
        except StopIteration:
            self._progress.finished = True
            raise
        self._progress.hand_over(seq)
        return index

    def _next_data(self) -> Any:
        if not self._leaves_out_failures:
            return super()._next_data()
        while (batch := self._skipped.open(self._without_failures(self._next_index()), 0, lambda samples: None)) is NOTHING_LEFT:
            pass
        return pin_memory(batch, self._pin_memory_device) if self._pin_memory else batch

    def _without_failures(self, index: Any) -> Any:
        batched = self._auto_collation
        at_once = batched and bool(getattr(self._dataset, "__getitems__", None))
        number = self._progress.consumed - 1
        return leave_out_failures(self._dataset, number, index if batched else [index], batched, at_once, lambda place: None, self._collate_fn)

    def _draw(self) -> tuple[int, Any]:
        index = super()._next_index()
        self._next_seq += 1
        return self._next_seq - 1, index

    def _skip(self, resume: Progress) -> None:
        """One batch further than consumed: many samplers draw only when first asked."""
        end = resume.consumed_end
        if end == 0 and self._puts_back:
            return
        with contextlib.suppress(StopIteration):
            while self._next_seq <= end:
                self._drawn.append(self._draw())
        if self._next_seq < end:
            raise StateError(f"the sampler ends before batch {end}, where the state was made")
        self._drawn = deque((seq, index) for seq, index in self._drawn if seq >= resume.consumed and seq not in resume.beyond)
        self._progress.consumed, self._progress.beyond = resume.consumed, set(resume.beyond)
        self._num_yielded = resume.handed_over


class _MapStyleInWorkers(Accounted, _MultiProcessingDataLoaderIter):
    """A batch counts when the loop gets it, or the exception that stands for it."""

    def __init__(self, loader: Any, resume: Progress | None) -> None:
        self._resumed = resume if resume is not None and resume.begun else None
        self._next_seq = 0
        self._asked: deque[int] = deque()  # What the workers make now, in the order in which the loop gets it.
        self._arrived: int | None = None
        # A further epoch of persistent workers draws no seed for them. These workers are new and need one, which the sampler must not notice.
        self._goes_on = resume is not None and resume.pass_number > 0
        super().__init__(loader, resume)
        if resume is not None and self._goes_on:
            self._progress.pass_number = resume.pass_number
        self._profile_name = f"enumerate(DataLoader)#{_MultiProcessingDataLoaderIter.__name__}.__next__"

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter:
            self._resumed, self._next_seq = None, 0
            self._asked.clear()
        elif self._goes_on:
            restore_generators(loader, self._before)
        super()._reset(loader, first_iter)

    def _virtual_workers(self, loader: Any) -> int | None:
        if self._resumed is not None:
            return self._resumed.virtual_workers
        return loader.num_workers if state_kept(loader) else None

    def _next_index(self) -> Any:
        while True:
            try:
                index = super()._next_index()
            except StopIteration:
                if self._resumed is not None and self._next_seq < self._resumed.consumed_end:
                    raise StateError(f"the sampler ends before batch {self._resumed.consumed_end}, where the state was made") from None
                raise
            seq, self._next_seq = self._next_seq, self._next_seq + 1
            if self._makes_again() or not self._was_had(seq):
                self._asked.append(seq)
                return index

    def _process_data(self, *arrived: Any) -> Any:
        self._arrived = self._asked.popleft()
        if not self._was_had(self._arrived):
            self._progress.hand_over(self._arrived)
        return super()._process_data(*arrived)

    def _next_data(self) -> Any:
        while True:
            self._arrived = None
            try:
                batch: Any = super()._next_data()
            except StopIteration:
                self._progress.finished = True
                raise
            except Exception:
                if self._arrived is not None and self._was_had(self._arrived):
                    continue
                raise
            if self._arrived is None or not self._was_had(self._arrived):
                return batch

    def _skip(self, resume: Progress) -> None:
        """Workers that keep a state make again what the loop has had, and `_next_data` drops it."""
        self._progress.consumed, self._progress.beyond = resume.consumed, set(resume.beyond)
        self._num_yielded = resume.handed_over

    def _makes_again(self) -> bool:
        return self._resumed is not None and self._resumed.virtual_workers is not None

    def _was_had(self, seq: int) -> bool:
        return self._resumed is not None and (seq < self._resumed.consumed or seq in self._resumed.beyond)


class _Iterable(Accounted):
    """A batch counts when the loop gets it."""

    def _next_data(self) -> Any:
        try:
            batch: Any = super()._next_data()
        except StopIteration:
            self._progress.finished = True
            raise
        self._progress.hand_over(self._progress.consumed)
        return batch

    def _skip(self, resume: Progress) -> None:
        if resume.data is not None or resume.iterator is not None:
            self._progress.consumed = resume.consumed
        while self._progress.consumed < resume.consumed:
            try:
                self._next_data()
            except StopIteration:
                raise StateError(f"the data set ends before batch {resume.consumed}, where the state was made") from None
        self._num_yielded = resume.consumed


class _IterableHere(_Iterable, _SingleProcessDataLoaderIter):
    def __init__(self, loader: Any, resume: Progress | None) -> None:
        super().__init__(loader, resume)
        reading = self._dataset_fetcher.dataset_iter
        if resume is not None and resume.iterator is not None:
            if not has_state(reading):
                raise StateError("the state holds that of the data set's iterator, but this iterator has no load_state_dict")
            reading.load_state_dict(resume.iterator)
        self._progress.reading = reading if has_state(reading) else None
        self._profile_name = f"enumerate(DataLoader)#{_SingleProcessDataLoaderIter.__name__}.__next__"


class _IterableInWorkers(_Iterable, _MultiProcessingDataLoaderIter):
    def __init__(self, loader: Any, resume: Progress | None) -> None:
        super().__init__(loader, resume)
        self._profile_name = f"enumerate(DataLoader)#{_MultiProcessingDataLoaderIter.__name__}.__next__"
