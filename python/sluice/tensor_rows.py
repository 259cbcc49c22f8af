"""Batches of torch's TensorDataset, and of Subsets of one. Its rows are copied at once, where torch takes each by itself and stacks them.

The batch is the same: a data set of torch's own class runs no code of the user's, and draws no random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch.utils.data import Subset, TensorDataset

from sluice.collation import makes_all_anew

_OWN = (TensorDataset.__getitem__, Subset.__getitem__, Subset.__getitems__)


def batch_of_rows(dataset: Any, keys: Sequence[Any], collate_fn: Any) -> list[torch.Tensor] | None:
    """What torch's default collation makes of these samples; None where that is to be seen by taking each of them: other data sets and keys,
    tensors that are no plain ones of the CPU, a key that is none of the data set's. `collate_fn` None stands for torch's default."""
    while type(dataset) is Subset:
        if not _are_numbers(keys):
            return None
        try:
            keys = [dataset.indices[key] for key in keys]
        except (IndexError, KeyError, TypeError):
            return None
        dataset = dataset.dataset
    is_torchs = type(dataset) is TensorDataset and (TensorDataset.__getitem__, Subset.__getitem__, Subset.__getitems__) == _OWN
    if not is_torchs or not makes_all_anew(collate_fn, True) or not _are_numbers(keys) or not all(map(_is_plain, dataset.tensors)):
        return None
    try:
        rows = torch.tensor(list(map(int, keys)))
        return [torch.index_select(tensor, 0, rows, out=tensor.new_empty((len(keys), *tensor.shape[1:]))) for tensor in dataset.tensors]
    except (IndexError, RuntimeError, ValueError):  # A negative one, or one beyond the end or 64 bits.
        return None


def _are_numbers(keys: Sequence[Any]) -> bool:
    """Not tensors: one of bytes is a mask. Not truth values, which are masks as well."""
    return len(keys) > 0 and all(issubclass(kind, Integral) and kind is not bool for kind in set(map(type, keys)))


def _is_plain(tensor: Any) -> bool:
    return (type(tensor) is torch.Tensor and tensor.dim() > 0 and tensor.layout is torch.strided and tensor.device.type == "cpu"
            and not (tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or tensor.is_nested))  # fmt: skip
