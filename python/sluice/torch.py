"""`from sluice.torch import DataLoader`: PyTorch's DataLoader, with the work done by Sluice's feeder and data workers.

    loader = DataLoader(ImageFolder(root, transform), batch_size=256, shuffle=True, num_workers=8)
    print(loader.explain())
    for images, labels in loader: ...
"""

from __future__ import annotations

import logging
from typing import Any, TypeVar

import torch.utils.data
from torch.utils.data import IterableDataset, MapDataPipe

from sluice import checkpoint
from sluice.checkpoint import Progress
from sluice.feeder import NoFeeder, feeder_in_words, shared_connection
from sluice.iterator import FeederIterator
from sluice.notices import say_once
from sluice.pipeline import NotSendable, describe_loader
from sluice.settings import Settings

_T_co = TypeVar("_T_co", covariant=True)

__all__ = ["DataLoader", "explain"]


class _TorchInstead(Exception):
    """torch's own implementation has to do it; `worth_saying` if the user may have expected otherwise."""

    def __init__(self, reason: str, worth_saying: bool = True) -> None:
        super().__init__(reason)
        self.worth_saying = worth_saying


class DataLoader(torch.utils.data.DataLoader[_T_co]):
    """torch.utils.data.DataLoader with the same constructor, arguments and results.

    With num_workers > 0 and a map-style dataset the batches come from a feeder, in the sampler's order, each exactly once;
    otherwise, and where there is no feeder, everything is torch's own. num_workers is what torch's documentation says it is for
    get_worker_info(), worker_init_fn and prefetching; how many threads or machines really work is the feeder's affair, and no
    batch depends on it.
    """

    # Class-level defaults: the constructor is torch's, untouched, for the frameworks that build loaders from its signature.
    _next_epoch = 0
    _sluice_progress: Progress | None = None
    _sluice_resume: Progress | None = None

    def explain(self) -> str:
        """Which executor makes this loader's batches and why, in words."""
        return explain(self)

    def state_dict(self) -> dict[str, Any]:
        """How far the loop has come, counting the batches it has *received*: JSON-serialisable.

        Raises RuntimeError for a loader whose batches torch's own implementation makes (see `explain`)."""
        self._require_resumable("state_dict")
        if self._sluice_resume is not None:
            return checkpoint.save(self, self._sluice_resume)
        return checkpoint.save(self, self._sluice_progress)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next iterator goes on where `state` was made: the same batches in the same order, with any number of workers.
        The dataset, the kind of sampler, batch_size and drop_last must be the same. Raises checkpoint.StateError (a
        ValueError) for a state that does not fit."""
        self._require_resumable("load_state_dict")
        self._sluice_resume = checkpoint.restore(self, state)

    def _get_iterator(self) -> Any:
        try:
            settings = Settings.from_environment()
            _check_offered(self, settings)
            connection = shared_connection(settings)
            return FeederIterator(self, connection, describe_loader(self, settings.lowering))
        except (_TorchInstead, NoFeeder, NotSendable) as reason:
            if self._sluice_resume is not None:
                raise RuntimeError(f"the loaded state cannot be resumed by torch's own workers: {reason}") from None
            if getattr(reason, "worth_saying", True):
                say_once(logging.WARNING, f"using torch's own workers: {reason}")
            return super()._get_iterator()

    def _take_resume(self) -> Progress | None:
        """For the iterator that begins an epoch: what to resume, once."""
        resume, self._sluice_resume = self._sluice_resume, None
        return resume

    def _follow(self, progress: Progress) -> None:
        """The iterator's account of the epoch it begins."""
        self._sluice_progress = progress
        self._next_epoch = progress.epoch + 1

    def _require_resumable(self, method: str) -> None:
        try:
            _check_offered(self, Settings.from_environment())
        except _TorchInstead as reason:
            raise RuntimeError(f"{method} needs a loader that Sluice serves, and this one is torch's own: {reason}") from None


def explain(loader: torch.utils.data.DataLoader) -> str:
    """Which executor would make the batches of `loader` and why, in words. Starts nothing."""
    settings = Settings.from_environment()
    try:
        _check_offered(loader, settings)
    except _TorchInstead as reason:
        return f"executor: torch's own ({reason})"
    served = feeder_in_words(settings)
    if served is None:
        return "executor: torch's own (there is no feeder: no SLUICE_FEEDER_SOCKET, no SLUICE_FEEDER_BINARY, no bundle)"
    pipeline = describe_loader(loader, settings.lowering)
    if pipeline.native is None:
        return f"executor: python\n  not native because {pipeline.reason}\nfeeder: {served}"
    n = pipeline.native
    dtype = str(n.image_dtype).removeprefix("torch.")
    batch = f"[n, 3, {n.height}, {n.width}] {dtype}, labels [n] int64"
    return f"executor: native\n  {n.samples} JPEG files -> images {batch}\nfeeder: {served}"


def _check_offered(loader: Any, settings: Settings) -> None:
    """Raises _TorchInstead for what Sluice does not serve."""
    if loader.num_workers == 0:
        raise _TorchInstead("num_workers is 0: batches are made in this process, as asked", worth_saying=False)
    if not settings.enabled:
        raise _TorchInstead("SLUICE is off", worth_saying=False)
    if isinstance(loader.dataset, IterableDataset):
        raise _TorchInstead("iterable datasets are not offered yet")
    if isinstance(loader.dataset, MapDataPipe):
        raise _TorchInstead("datapipes are not offered")
    if loader.multiprocessing_context is not None:
        raise _TorchInstead("multiprocessing_context asks for processes of a particular kind")
    if loader.prefetch_factor == 0:
        raise _TorchInstead("prefetch_factor is 0")
