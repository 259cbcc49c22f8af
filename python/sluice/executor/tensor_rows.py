"""Batches of torch's TensorDataset, and of Subsets of one. Its rows are copied at once, where torch takes each by itself and stacks them.

The batch is the same: a data set of torch's own class runs no code of the user's, and draws no random number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Subset, TensorDataset

from sluice.executor.collation import makes_all_anew
from sluice.executor.subsets import are_numbers, innermost, innermost_keys

_OWN = (TensorDataset.__getitem__, Subset.__getitem__, Subset.__getitems__)


def batch_of_rows(dataset: Any, keys: Sequence[Any], collate_fn: Any) -> list[torch.Tensor] | None:
    """What torch's default collation makes of these samples; None where that is to be seen by taking each of them: other data sets and keys,
    tensors that are no plain ones of the CPU, a key that is none of the data set's. `collate_fn` None stands for torch's default."""
    rows_of = innermost(dataset)
    is_torchs = type(rows_of) is TensorDataset and (TensorDataset.__getitem__, Subset.__getitem__, Subset.__getitems__) == _OWN
    if not is_torchs or not makes_all_anew(collate_fn, True) or not all(map(_is_plain, rows_of.tensors)):
        return None
    numbers = innermost_keys(dataset, keys)
    if numbers is None or not are_numbers(numbers):
        return None
    try:
        rows = torch.tensor(list(map(int, numbers)))
        return [torch.index_select(tensor, 0, rows, out=tensor.new_empty((len(rows), *tensor.shape[1:]))) for tensor in rows_of.tensors]
    except (IndexError, RuntimeError, ValueError):  # A negative one, or one beyond the end or 64 bits.
        return None


def _is_plain(tensor: Any) -> bool:
    return (type(tensor) is torch.Tensor and tensor.dim() > 0 and tensor.layout is torch.strided and tensor.device.type == "cpu"
            and not (tensor.requires_grad or tensor.is_quantized or tensor.is_conj() or tensor.is_neg() or tensor.is_nested))  # fmt: skip
