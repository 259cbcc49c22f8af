"""What a data set sees of the keys that a sampler yields: what torch would give it, wherever the sample is made."""

from __future__ import annotations

from collections.abc import Iterable

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, Dataset, SubsetRandomSampler

from sluice.executor.keys import key_type, plain, restored
from sluice.torch import DataLoader


class Keys(Dataset):
    """Sample i says of which type its key is, and how it is written."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, key):
        return type(key).__name__, repr(key)


class WholeBatches(Keys):
    def __getitems__(self, keys):
        return [self[key] for key in keys]


class Yields:
    """A sampler of which nothing is known but what it yields."""

    def __init__(self, keys: Iterable) -> None:
        self._keys = keys

    def __iter__(self):
        return iter(self._keys)


SAMPLERS = {
    "plain integers": range(6),
    "int64": numpy.arange(6),
    "int32": numpy.arange(6, dtype=numpy.int32),
    "uint8": numpy.arange(6, dtype=numpy.uint8),
    "tensors": torch.arange(6),
    "a list of int64": list(numpy.arange(6)),
    "int64, unknown sampler": Yields(numpy.arange(6)),
    "a permutation of tensors": SubsetRandomSampler(torch.arange(6)),
    "int64 and then plain ones": [*numpy.arange(4), 4, 5],
    "plain ones and then int64": [0, 1, *numpy.arange(2, 6)],
    "of two types in each batch": [0, numpy.int64(1), 2, numpy.int64(3)],
    "truth values": [True, False],
}


@pytest.mark.parametrize("dataset", [Keys(), WholeBatches()], ids=["samples", "whole batches"])
@pytest.mark.parametrize("case", SAMPLERS)
def test_a_data_set_sees_the_keys_that_torch_gives_it(any_feeder, case, dataset):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(3)
        loader = loader_class(dataset, batch_size=2, num_workers=2, sampler=SAMPLERS[case], collate_fn=list)
        seen.append([list(loader), list(loader)])
    assert seen[0] == seen[1]


def test_numpys_integers_are_looked_up_by_executors(make_fake, caplog):
    fake = make_fake()
    list(DataLoader(Keys(), batch_size=2, num_workers=1, sampler=numpy.arange(6)))
    assert [request[2] for request in fake.ask()["requests"]][:3] == [[0, 1], [2, 3], [4, 5]]
    assert "only this process" not in caplog.text


def give_each_worker_a_name(worker_id: int) -> None:
    torch.utils.data.get_worker_info().dataset.name = f"worker {worker_id}"


@pytest.mark.parametrize("keys", [numpy.arange(6), torch.arange(6)], ids=["int64", "tensors"])
def test_virtual_workers_see_them_too(any_feeder, keys):
    loader = DataLoader(Keys(), batch_size=2, num_workers=2, sampler=keys, collate_fn=list, worker_init_fn=give_each_worker_a_name)
    assert [name for batch in loader for name, _ in batch] == [type(keys[0]).__name__] * 6


@pytest.mark.parametrize(
    "keys, kind",
    [
        ([1, 2], int),
        ([numpy.int64(1)], numpy.int64),
        ([torch.tensor(1)], torch.Tensor),
        ([torch.tensor([1])], None),
        ([torch.tensor(1.0)], None),
        ([numpy.float64(1)], None),
        ([1, numpy.int64(1)], None),
        (["a"], None),
        ([True], None),
        ([], None),
    ],
)
def test_which_keys_travel(keys, kind):
    assert key_type(keys) is kind
    if kind is not None:
        travelled = plain(keys)
        assert all(type(key) is int for key in travelled)
        again = restored(travelled, kind)
        assert again == keys and key_type(again) is kind
