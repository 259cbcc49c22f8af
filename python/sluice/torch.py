"""`from sluice.torch import DataLoader`: PyTorch's DataLoader, with the work done by Sluice's feeder and data workers.

    loader = DataLoader(ImageFolder(root, transform), batch_size=256, shuffle=True, num_workers=8)
    print(loader.explain())
    for images, labels in loader: ...
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import IterableDataset, MapDataPipe

from sluice.base.cpu_quota import usable_cores
from sluice.base.notices import say_once
from sluice.base.settings import EXACT, POLICIES, SKIP, Settings
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.cache.kept import wants_executors
from sluice.cache.source_cache import asks_for_cache, cache_in_words
from sluice.executor.skipping import Skipped, SkippedSamples
from sluice.explain import report
from sluice.explain.advice import Site
from sluice.explain.explanation import Explanation, Report
from sluice.feeder.choice import NoFeeder, adds_no_cpu, feeder_in_words, shared_connection
from sluice.loader import checkpoint, frameworks, replay
from sluice.loader.ahead import Foresight
from sluice.loader.checkpoint import Progress
from sluice.loader.iterable_iterator import IterableIterator
from sluice.loader.iterator import FeederIterator
from sluice.loader.offered import TorchInstead, check_offered, reasons_for_torch, state_kept
from sluice.loader.persistent_iterator import PersistentIterator
from sluice.loader.pipeline import Pipeline, Sent, describe_loader, native_obstacles
from sluice.loader.remaining import Announcement
from sluice.loader.shown_warnings import check_num_workers
from sluice.lowering.native_pipeline import NativePipeline
from sluice.makers.forks import can_fork, is_main_thread, must_fork_first
from sluice.makers.measured import Measured
from sluice.makers.payback import Payback
from sluice.media.audio_library import audio_library_paths
from sluice.media.image_library import image_library_paths
from sluice.shipping.failures import KeepsState, NotSendable, TooLarge
from sluice.shipping.shipment import LIGHT_BYTES, Description
from sluice.shipping.surroundings import make_audio_native, wants_lazy_images, wants_native_audio

_T_co = TypeVar("_T_co", covariant=True)

__all__ = ["DataLoader", "explain"]


class DataLoader(torch.utils.data.DataLoader[_T_co]):
    """torch.utils.data.DataLoader with the same constructor, arguments and results.

    With num_workers > 0 the batches come from a feeder, in torch's order, each exactly once. Otherwise, and where there is no feeder, torch's own
    iterators make them. num_workers has torch's documented meaning for get_worker_info(), worker_init_fn and prefetching. The feeder decides how
    many threads or machines really work, and no batch depends on it.
    """

    # Class-level defaults: frameworks build loaders from the constructor's signature, and some pass by the constructor.
    _next_epoch = 0
    _sluice_kept: Description | Sent | None = None
    _sluice_too_large: TooLarge | None = None
    _sluice_state_found = ""  # What changes while the data set is read.
    _sluice_progress: Progress | None = None
    _sluice_resume: Progress | None = None
    _sluice_announcement: Announcement | None = None
    _sluice_foresight: Foresight | None = None
    _sluice_payback: Payback | None = None
    _sluice_shares: bool | None = None  # Of a data set that stays: whether a copy in this process costs little after all. None: it is not known.
    _sluice_stays = False  # The data set: forks of this process inherit it, and a copy would cost more than they do.
    _sluice_skipped: SkippedSamples | None = None
    _sluice_key_type: type = int  # Of the keys that the sampler has yielded last.
    _sluice_left = ""  # Why torch makes the batches of the last iterator, which has no account of them.
    _sluice_measured: Measured | None = None
    on_error: str | None = None

    def __init__(self, *args: Any, snapshot_every_n_steps: int = 1, on_error: str | None = None, **kwargs: Any) -> None:
        """torch's arguments. `snapshot_every_n_steps` is accepted for programs written for torchdata's StatefulDataLoader: a state
        is made when it is asked for, and always of the present batch.

        `on_error`: what becomes of a sample whose reading or transforming raises. `raise`: the loop gets the exception, as with torch.
        `skip`: the batch is smaller by it, and `skipped` lists it. None: as SLUICE_ON_ERROR says, or `raise`. Raises ValueError for any
        other value, and for `skip` with an iterable data set."""
        super().__init__(*args, **kwargs)
        if on_error not in (None, *POLICIES):
            raise ValueError(f"on_error={on_error!r}: use {' or '.join(POLICIES)}")
        if on_error == SKIP and isinstance(self.dataset, IterableDataset):
            raise ValueError("on_error='skip' needs a map-style data set: what an iterable one raises ends its stream")
        self.on_error = on_error

    @property
    def skipped(self) -> list[Skipped]:
        """The samples that are missing in the batches which the loop has had of this epoch, or of the last one: in their order, and at most
        the latest 10,000."""
        return list(self._sluice_skipped.latest) if self._sluice_skipped is not None else []

    def explain(self) -> Report:
        """Which executor makes this loader's batches and why, what they have cost so far, and what to do about the time that the loop
        waits for them. A str, which notebooks show as a table."""
        return explain(self)

    def announce(self, *, epochs: int | None = None, batches: int | None = None) -> None:
        """How long the loop will go on: so many epochs of this loader from now on, or so many batches. Call it before the loop,
        on the loader that trains. Scarce CPU then goes to jobs that end soon; no batch depends on it.

        Lightning's and Hugging Face's trainers say it by themselves. Raises ValueError unless exactly one number is given, at
        least 1, and TypeError for epochs of a loader without a length."""
        if epochs is not None:
            len(self)
        self._sluice_announcement = Announcement(self.batch_size or 1, epochs, batches)

    def state_dict(self) -> dict[str, Any]:
        """How far the loop has come, counting the batches it has *received*: JSON-serialisable. With num_workers=0 it includes what
        the data set's own `state_dict` returns, if there is one.

        Raises RuntimeError for in_order=False where torch's own workers make the batches (see `explain`)."""
        self._require_resumable("state_dict")
        if self._sluice_resume is not None:
            return checkpoint.save(self, self._sluice_resume)
        if self._sluice_left:
            raise _not_resumable("state_dict", self._sluice_left, replay.obstacle(self))
        return checkpoint.save(self, self._sluice_progress)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iterator goes on where `state` was made: the same batches in the same order, with any number of workers if the data
        set is map-style, by executors or by torch's workers. An iterable one needs the same number, and makes the batches before again unless it keeps
        its own state.
        The dataset, the kind of sampler, batch_size and drop_last must be the same. Raises StateError (a
        ValueError) for a state that does not fit."""
        self._require_resumable("load_state_dict")
        self._sluice_resume = checkpoint.restore(self, state)
        resume = self._sluice_resume
        goes_on = not isinstance(self.dataset, IterableDataset) and not isinstance(self._iterator, (PersistentIterator, replay.Accounted))
        if not goes_on or (resume.base_seed is None and not resume.begun):
            self._iterator = None  # Persistent workers have gone on from where the state was made, or had not begun there.

    def _get_iterator(self) -> Any:
        try:
            settings = Settings.from_environment()
            check_offered(self, settings)
            make_audio_native(wants_native_audio())  # Here, too: no batch depends on who makes it.
            if self._sluice_too_large is not None:
                raise self._sluice_too_large
            frameworks.follow_transformers()
            connection = shared_connection(settings)
            pipeline = self._describe(settings)
            self._sluice_measured = Measured.of(self._sluice_measured, pipeline.in_words())
            self._sluice_foresight = (self._sluice_foresight or Foresight()) if settings.ahead and not pipeline.is_sticky else None
            payback = self._payback(settings, pipeline)
            if payback is not None and not (payback.pays or payback.forks_at_once or payback.executors_at_once):
                _load(pipeline)
            batches = self._iterator_class(pipeline)(self, connection, pipeline, payback)
            check_num_workers(self)
            self._sluice_kept = pipeline.kept
            self._sluice_left = ""
            explanation = _explanation(self, settings, pipeline, self._sluice_measured) if settings.explain else None
            self._note("served natively" if pipeline.native is not None else f"served in Python: {pipeline.reason}", explanation)
            return batches
        except (TorchInstead, NoFeeder, NotSendable) as reason:
            if self._sluice_resume is not None and not self._resumes_in_torch():
                raise RuntimeError(f"the loaded state cannot be resumed by torch's own workers: {reason}") from None
            if isinstance(reason, TooLarge):
                self._sluice_too_large = reason.with_traceback(None)
            if _on_error(self, settings) == SKIP and not self._skips_here():
                say_once(logging.WARNING, f"samples that fail are raised and not skipped, as torch itself makes the batches: {reason}")
            elif getattr(reason, "worth_saying", True):
                say_once(logging.WARNING, f"using torch's own workers: {reason}")
            self._sluice_left = "" if self._resumes_in_torch() else str(reason)
            self._note(f"left to torch: {reason}", _left_to_torch(str(reason)) if settings.explain else None)
            return self._leave_to_torch(_on_error(self, settings) == SKIP and self._skips_here())

    def _iterator_class(self, pipeline: Pipeline) -> type[FeederIterator]:
        if pipeline.is_iterable:
            return IterableIterator
        return PersistentIterator if pipeline.is_sticky and self.persistent_workers else FeederIterator

    def _leave_to_torch(self, leaves_out_failures: bool) -> Any:
        """torch's own iterator, with an account of what the loop has had where it can be resumed."""
        return replay.iterator(self, leaves_out_failures) if self._resumes_in_torch() else super()._get_iterator()

    def _resumes_in_torch(self) -> bool:
        return not replay.obstacle(self)

    def _note(self, outcome: str, explanation: Explanation | None) -> None:
        report.note(self, outcome, explanation)

    def _describe(self, settings: Settings) -> Pipeline:
        """The present pipeline. Raises NotSendable, and TorchInstead if only torch's workers can keep its state."""
        pipeline = _describe(self, settings)
        if pipeline.is_iterable:
            self._weigh(settings, pipeline)
            if _on_error(self, settings) == SKIP:
                say_once(logging.WARNING, f"samples of {type(self.dataset).__name__} that fail are raised and not skipped: the data set is iterable")
            if self._sluice_resume is not None and self._sluice_resume.begun and self._sluice_resume.streams is None:
                raise TorchInstead("the loaded state was made with torch's own workers, which count no streams")
            return pipeline
        try:
            self._weigh(settings, pipeline)
            if not pipeline.is_sticky and not pipeline.stays:
                pipeline.registration(1, 1)
        except KeepsState as found:
            self._sluice_state_found = f"the data set changes while it is read: {found}"
            pipeline = _describe(self, settings)
            self._weigh(settings, pipeline)
        if pipeline.is_sticky:
            say_once(logging.WARNING, f"{pipeline.reason}; virtual workers beside this process make the batches, no data worker does")
        return pipeline

    def _weigh(self, settings: Settings, pipeline: Pipeline) -> None:
        """Finds out whether the pipeline stays in this process and its forks: once, as that takes time. Raises NotSendable."""
        shown_before = pipeline.is_sticky and pipeline.description is not None
        if pipeline.native is None and not shown_before and _forks_suffice(self, settings):
            pipeline.stays = self._sluice_stays = self._sluice_stays or not pipeline.is_light()
            if pipeline.stays and not pipeline.is_sticky and self._sluice_shares is not False:
                self._sluice_shares = pipeline.shares_its_parts()

    def _payback(self, settings: Settings, pipeline: Pipeline) -> Payback | None:
        """What decides when this loader's executors are started; None if they are started at once. Forks make the first batch where
        this process must not: for a loop outside of the main thread, batches that have to end within a time, that may overtake one another,
        that keep state, of much data, of which this process would hold a further copy, or of libraries that no fork can use after that. Raises
        NotSendable."""
        if not settings.step_aside or wants_executors():
            return None
        if pipeline.native is not None:
            return self._native_payback(settings, pipeline.native)
        any_order = not getattr(self, "in_order", True)  # torch has it since 2.6.
        of_its_own = not is_main_thread() or pipeline.is_sticky or self.timeout > 0 or any_order or must_fork_first()
        forks_at_once = of_its_own or (not pipeline.is_described if pipeline.stays else pipeline.copy_bytes() > LIGHT_BYTES)
        if forks_at_once and not can_fork():
            return None
        forks_suffice = _forks_suffice(self, settings)
        known = self._sluice_payback
        if known is None or (known.forks_at_once, known.forks_suffice, known.executors_at_once) != (forks_at_once, forks_suffice, False):
            self._sluice_payback = Payback(forks_at_once, forks_suffice)
        return self._sluice_payback

    def _native_payback(self, settings: Settings, native: NativePipeline) -> Payback | None:
        """None where executors make all batches: forks would add no CPU, or make other pixels."""
        if native.order != EXACT or not can_fork() or adds_no_cpu(settings, self.num_workers):
            return None
        if self._sluice_payback is None or not self._sluice_payback.executors_at_once:
            self._sluice_payback = Payback(executors_at_once=True)
        return self._sluice_payback

    def _take_resume(self) -> Progress | None:
        """For the iterator that begins an epoch: what to resume, once."""
        resume, self._sluice_resume = self._sluice_resume, None
        return resume

    def _skips_here(self) -> bool:
        """Whether this loader skips samples where torch's own iterator makes its batches."""
        return self.num_workers == 0 and Settings.from_environment().enabled and not isinstance(self.dataset, (IterableDataset, MapDataPipe))

    def _follow(self, progress: Progress) -> SkippedSamples:
        """The iterator's account of the epoch it begins. Returns where it notes what is missing in its batches."""
        self._sluice_progress = progress
        self._next_epoch = progress.epoch + 1
        self._sluice_skipped = SkippedSamples(self._sluice_skipped)
        return self._sluice_skipped

    def _require_resumable(self, method: str) -> None:
        if self._resumes_in_torch():
            return
        try:
            check_offered(self, Settings.from_environment())
        except TorchInstead as reason:
            raise _not_resumable(method, str(reason), replay.obstacle(self)) from None


def _not_resumable(method: str, *reasons: str) -> RuntimeError:
    return RuntimeError(f"{method} needs a loader that Sluice serves, and this one is torch's own: {'; '.join(filter(None, reasons))}")


def explain(loader: torch.utils.data.DataLoader[Any]) -> Report:
    """Which executor makes, or would make, the batches of `loader` and why: every obstacle to native execution, what the operations
    have cost so far, and what would make the loop wait less (sluice.explain.advice). A text, which notebooks show as a table. Starts nothing."""
    settings = Settings.from_environment()
    reasons = reasons_for_torch(loader, settings)
    if reasons:
        return _left_to_torch("; ".join(reasons)).report()
    if feeder_in_words(settings) is None:
        return _left_to_torch("there is no feeder: no SLUICE_FEEDER_SOCKET, no SLUICE_FEEDER_BINARY, no bundle").report()
    return _explanation(loader, settings, _describe(loader, settings), _measured_of(loader)).report()


def _left_to_torch(reason: str) -> Explanation:
    return Explanation([f"executor: torch's own ({reason})"])


def _measured_of(loader: Any) -> Measured:
    """Also of a loader of torch's class that is served all the same."""
    if not isinstance(loader, DataLoader) and (attached := sys.modules.get("sluice.attached")):
        loader = attached.known(loader)
    return getattr(loader, "_sluice_measured", None) or Measured()


def _explanation(loader: Any, settings: Settings, pipeline: Pipeline, measured: Measured) -> Explanation:
    served = feeder_in_words(settings)
    dataset, collate_fn = type(loader.dataset).__name__, getattr(loader.collate_fn, "__name__", type(loader.collate_fn).__name__)
    return Explanation(
        [line.rstrip() for line in _head(loader, settings, pipeline).splitlines()],
        f"feeder: {served}",
        measured,
        Site(loader.num_workers, not pipeline.is_sticky, usable_cores() if settings.feeder_socket is None else None),
        pipeline.native,
        (f"{dataset}, its samples", f"{collate_fn}, their batch"),
        pipeline.native is None and not pipeline.is_iterable,
        asks_for_cache(os.environ),
    )


def _forks_suffice(loader: Any, settings: Settings) -> bool:
    """Whether executors would add nothing to forks of this process, which are there in milliseconds."""
    return settings.step_aside and can_fork() and not wants_executors() and adds_no_cpu(settings, loader.num_workers)


def _head(loader: Any, settings: Settings, pipeline: Pipeline) -> str:
    head = _executor_in_words(loader, settings, pipeline)
    payback = getattr(loader, "_sluice_payback", None)
    if payback is not None and payback.way_back.rests:
        head += "  made by forks of this process for now: executors were slower, or did not answer\n"
    elif pipeline.native is None and _forks_suffice(loader, settings):
        head += "  made by this process and forks of it, as by torch's own workers: executors of its own feeder would add no CPU\n"
    return head


def _executor_in_words(loader: Any, settings: Settings, pipeline: Pipeline) -> str:
    if pipeline.is_iterable:
        return f"executor: python, by {loader.num_workers} streams, one for each worker\n  because {pipeline.reason}\n{_media_in_words()}"
    skips = "  samples that fail are left out of their batches\n" if pipeline.leaves_out_failures else ""
    if pipeline.native is not None:
        n = pipeline.native
        others = "labels [n] int64" if n.arrangement is None else "with all else that its samples have"
        batch = f"{' and '.join(image.in_words() for image in n.images)}, {others}"
        cached = cache_in_words(settings) if n.reads_files else ""
        operations = "".join(f"    {line}\n" for line in n.operations_in_words())
        return f"executor: native\n  {n.files.in_words()} -> images {batch}\n  by the native operations\n{operations}{skips}{cached}"
    obstacles = native_obstacles(loader)
    if pipeline.is_sticky:
        either = _because("not native either because", obstacles) if obstacles else ""
        return f"executor: python, by virtual workers beside this process\n  because {pipeline.reason}\n{either}{skips}{_media_in_words()}"
    obstacles = obstacles if settings.lowering else [pipeline.reason, *obstacles]
    return f"executor: python\n{_because('not native because', obstacles)}{skips}{_media_in_words()}"


def _because(words: str, reasons: list[str]) -> str:
    return f"  {words} {reasons[0]}\n" if len(reasons) == 1 else f"  {words}\n" + "".join(f"    {reason}\n" for reason in reasons)


def _media_in_words() -> str:
    images = "  JPEGs, PNGs and WebPs that PIL opens are decoded late and natively\n" if wants_lazy_images() and image_library_paths() else ""
    audio = "  torchaudio's spectrograms, decibels, masks and sample rates, and soundfile's FLAC, are computed natively\n" if wants_native_audio() and audio_library_paths() else ""
    return images + audio


def _load(pipeline: Pipeline) -> None:
    """Loads the copy that this process makes its first batches from. Raises NotSendable, and TorchInstead for user objects
    that can be pickled but not unpickled: torch's workers are forked and need neither."""
    try:
        pipeline.computation()
    except NotSendable:
        raise
    except (Exception, SystemExit) as error:
        pass_on_of_a_handler(error)
        raise TorchInstead(f"the dataset, its transforms or collate_fn cannot be unpickled ({type(error).__name__}: {error})") from None


def _describe(loader: Any, settings: Settings) -> Pipeline:
    """How executors would make the loader's batches. Pickles nothing."""
    kept = getattr(loader, "_sluice_kept", None)
    on_error = _on_error(loader, settings)
    pipeline = describe_loader(loader, settings.lowering, kept, state_kept(loader), on_error, settings.order)
    if settings.torch_randomness and not pipeline.is_sticky and (pipeline.native is None or pipeline.native.draws):
        return describe_loader(loader, False, kept, "SLUICE_RANDOMNESS is torch", on_error)
    return pipeline


def _on_error(loader: Any, settings: Settings) -> str:
    """What becomes of a sample that fails. A loader of torch's class has no word in this."""
    own = loader.on_error if isinstance(loader, DataLoader) else None
    return own or settings.on_error
