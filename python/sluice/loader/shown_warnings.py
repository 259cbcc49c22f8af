"""torch's warnings about a loader, shown for Sluice's iterators as for torch's own. Programs filter them by the module that they come from."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import torch.utils.data.dataloader
from torch.utils.data.dataloader import _BaseDataLoaderIter


def _begin(iterator: Any, loader: Any) -> None:
    _BaseDataLoaderIter.__init__(iterator, loader)


def _check_num_workers(loader: Any) -> None:
    loader.check_worker_number_rationality()


# torch's functions warn in the name of the module whose function has called them.
_torchs = vars(torch.utils.data.dataloader)
begin = FunctionType(_begin.__code__, _torchs)
check_num_workers = FunctionType(_check_num_workers.__code__, _torchs)
