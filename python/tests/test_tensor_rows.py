"""Batches of a TensorDataset are those of torch's loader, whether its rows are taken at once or one by one."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch.utils.data import Subset, TensorDataset, default_collate, random_split

import sluice.executor.computation
from sluice.executor.tensor_rows import batch_of_rows
from sluice.torch import DataLoader
from test_loader import equal

X, Y = torch.randn(50, 3, 4), torch.arange(50)
ROWS = TensorDataset(X, Y)


class Doubled(TensorDataset):
    def __getitem__(self, index):
        return tuple(2 * tensor for tensor in super().__getitem__(index))


AT_ONCE = {
    # The data set and the keys of a batch.
    "two tensors": (ROWS, [3, 1, 49, 3]),
    "one tensor": (TensorDataset(Y), [0]),
    "numbers of numpy's": (ROWS, list(numpy.array([7, 0, 7]))),
    "every type of element": (TensorDataset(Y.bool(), Y.bfloat16(), Y.to(torch.complex64), Y.to(torch.uint8)), [5, 4]),
    "not contiguous": (TensorDataset(X.transpose(1, 2), X.permute(0, 2, 1)[:, ::2], torch.randn(50, 2, 4, 4).to(memory_format=torch.channels_last)), [9, 2]),
    "expanded": (TensorDataset(torch.ones(1, 3).expand(50, 3)), [9, 2]),
    "no elements": (TensorDataset(torch.empty(50, 0)), [9, 2]),
    "a Subset": (Subset(ROWS, [9, 8, 7]), [2, 0]),
    "a Subset of a split": (Subset(random_split(ROWS, [30, 20])[1], range(5, 10)), [4, 0, 1]),
    "a Subset by an array": (Subset(ROWS, numpy.array([9, 8, 7])), [2, -1]),
}
ONE_BY_ONE = {
    "negative keys": (ROWS, [-1, 3]),
    "truth values": (ROWS, [True, False]),
    "tensors as keys": (ROWS, [torch.tensor(3), torch.tensor(4)]),
    "a Subset by a tensor": (Subset(ROWS, torch.tensor([9, 8])), [1, 0]),
    "a class of the user's": (Doubled(X, Y), [1, 2]),
    "sparse": (TensorDataset(torch.eye(50).to_sparse()), [1, 2]),
    "with gradients": (TensorDataset(torch.randn(50, 2, requires_grad=True)), [1, 2]),
    "conjugates": (TensorDataset(torch.randn(50, dtype=torch.complex64).conj()), [1, 2]),
}


@pytest.mark.parametrize("case", AT_ONCE)
def test_rows_taken_at_once_are_what_torch_collates(case):
    dataset, keys = AT_ONCE[case]
    made = batch_of_rows(dataset, keys, None)
    assert equal(made, default_collate([dataset[key] for key in keys]))
    assert all(tensor.is_contiguous() for tensor in made)


@pytest.mark.parametrize("case", ONE_BY_ONE)
def test_other_rows_are_taken_one_by_one(case):
    dataset, keys = ONE_BY_ONE[case]
    assert batch_of_rows(dataset, keys, None) is None


@pytest.mark.parametrize("keys", [[], [50], [0, 1 << 70], ["a"]], ids=str)
@pytest.mark.parametrize("dataset", [ROWS, Subset(ROWS, range(50))], ids=["rows", "a Subset"])
def test_keys_that_are_none_of_its_own_are_left_to_torch(dataset, keys):
    assert batch_of_rows(dataset, keys, None) is None


def test_code_of_the_users_is_run(monkeypatch):
    assert batch_of_rows(ROWS, [1], list) is None
    monkeypatch.setattr(TensorDataset, "__getitem__", lambda self, index: index)
    assert batch_of_rows(ROWS, [1], None) is None


@pytest.mark.parametrize("aside", ["on", "off"])
@pytest.mark.parametrize("dataset", [ROWS, Doubled(X, Y), random_split(ROWS, [37, 13])[0]], ids=["rows", "a class of the user's", "a split"])
def test_epochs_are_torchs(any_feeder, monkeypatch, dataset, aside):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", aside)
    taken = []
    monkeypatch.setattr(sluice.executor.computation, "batch_of_rows", lambda *given: taken.append(batch_of_rows(*given)) or taken[-1])

    def epochs(kind) -> list:
        torch.manual_seed(3)
        loader = kind(dataset, batch_size=8, shuffle=True, num_workers=2)
        return [[tensor.clone() for tensor in batch] for _ in range(2) for batch in loader]

    assert equal(epochs(torch.utils.data.DataLoader), epochs(DataLoader))
    assert aside == "off" or bool(taken and taken[0]) == (type(dataset) is not Doubled)
