"""A loader of torch's class, or of a subclass, served by Sluice without a change to the object itself."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any

from torch.utils.data import get_worker_info

from sluice.base.notices import say_once
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.executor.generators import ProcessGenerators, named_generators
from sluice.explain import report
from sluice.explain.explanation import Explanation
from sluice.makers.forks import Batches
from sluice.shipping.failures import is_of_the_sampler
from sluice.torch import DataLoader


class _LeftToTorch(Exception):
    """torch makes the batches of this loader."""


class _Attached(DataLoader):
    """What Sluice has to remember of another loader, which it asks for everything else. Kept beside that loader and not in it, so that the loader is
    pickled and copied as ever."""

    def __init__(self, loader: Any) -> None:
        """Not torch's: nothing is built anew. `loader` is not kept alive."""
        self._sluice_loader: Callable[[], Any] = weakref.ref(loader)

    def __getattr__(self, name: str) -> Any:
        """REQUIRES: the loader lives, as it does while an iterator is made and while its epoch's end looks ahead."""
        if name == "_sluice_loader":
            raise AttributeError(name)
        return getattr(self._sluice_loader(), name)

    # What torch's class has, and a subclass may have otherwise.
    @property
    def _auto_collation(self) -> bool:
        return self._sluice_loader()._auto_collation

    @property
    def _index_sampler(self) -> Any:
        return self._sluice_loader()._index_sampler

    def __len__(self) -> int:
        return len(self._sluice_loader())

    def _skips_here(self) -> bool:
        return False

    def _note(self, outcome: str, explanation: Explanation | None) -> None:
        report.note(self._sluice_loader(), outcome, explanation)

    def _leave_to_torch(self, leaves_out_failures: bool) -> Any:
        raise _LeftToTorch


_attached: weakref.WeakKeyDictionary[Any, _Attached] = weakref.WeakKeyDictionary()


def known(loader: Any) -> Any:
    """What is remembered of `loader`; None if nothing is."""
    return _attached.get(loader)


def iterator(loader: Any, made_by_torch: Callable[[Any], Any]) -> Any:
    """The iterator of `loader`: Sluice's, or `made_by_torch(loader)`. Whatever goes wrong on Sluice's side before it exists leaves the loader to torch,
    with all generators as they were."""
    if isinstance(loader, DataLoader) or isinstance(loader.dataset, Batches) or get_worker_info() is not None:
        return made_by_torch(loader)
    process = ProcessGenerators.capture()
    own = [(generator, generator.get_state()) for generator in named_generators(loader).values()]
    try:
        if loader not in _attached:
            _attached[loader] = _Attached(loader)
        return _attached[loader]._get_iterator()
    except _LeftToTorch:
        pass
    except Exception as error:
        if is_of_the_sampler(error):
            raise
        process.enter()
        for generator, state in own:
            generator.set_state(state)
        pass_on_of_a_handler(error)
        reason = f"{type(error).__name__}: {error}"
        report.note(loader, f"left to torch: {reason}")
        say_once(logging.WARNING, f"using torch's own workers: {reason}")
    return made_by_torch(loader)
