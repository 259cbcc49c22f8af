"""Which loaders Sluice serves, and which ones torch's own implementation has to serve."""

from __future__ import annotations

import functools
from typing import Any

from torch.utils.data import IterableDataset, IterDataPipe, MapDataPipe

from sluice.base.settings import Settings
from sluice.loader.worker_setup import only_seeds
from sluice.makers.forks import can_fork


class TorchInstead(Exception):
    """torch's own implementation has to do it; `worth_saying` if the user may have expected otherwise."""

    def __init__(self, reason: str, worth_saying: bool = True) -> None:
        super().__init__(reason)
        self.worth_saying = worth_saying


def check_offered(loader: Any, settings: Settings) -> None:
    """Raises TorchInstead for what Sluice does not serve, with every reason."""
    asked = _asked_for(loader, settings)
    if asked:
        raise TorchInstead("; ".join(asked), worth_saying=False)
    obstacles = _obstacles(loader)
    if obstacles:
        raise TorchInstead("; ".join(obstacles))


def reasons_for_torch(loader: Any, settings: Settings) -> list[str]:
    """Why torch's own implementation serves this loader; none if Sluice does."""
    return _asked_for(loader, settings) + _obstacles(loader)


def _asked_for(loader: Any, settings: Settings) -> list[str]:
    asked = []
    if loader.num_workers == 0:
        asked.append("num_workers is 0: batches are made in this process, as asked")
    if not settings.enabled:
        asked.append("SLUICE is off")
    return asked


def _obstacles(loader: Any) -> list[str]:
    found = []
    iterable = isinstance(loader.dataset, IterableDataset)
    if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
        found.append("datapipes are not offered")
    elif iterable and loader.persistent_workers:
        found.append("persistent workers keep their copies of an iterable data set over all epochs")
    if iterable and not getattr(loader, "in_order", True):
        found.append("with in_order=False the streams of an iterable data set have no order")
    if loader.multiprocessing_context is not None and not _is_torchs_own_way(loader.multiprocessing_context):
        found.append("multiprocessing_context asks for processes of a particular kind")
    if loader.prefetch_factor == 0:
        found.append("prefetch_factor is 0")
    return found


def _is_torchs_own_way(context: Any) -> bool:
    """Whether torch would start its workers so without being asked: by forks."""
    return context.get_start_method() == "fork" and can_fork()


def state_kept(loader: Any) -> str:
    """The state that each worker must keep for itself, as far as it is known before the data set is pickled; "" if none."""
    if isinstance(loader.dataset, IterableDataset):
        return "the data set is iterable: each worker reads its own copy, from the first batch to the last"
    function = loader.worker_init_fn
    if function is None or only_seeds(function):
        return getattr(loader, "_sluice_state_found", "")
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"worker_init_fn {name} may do more than give each worker a seed of its own"
