"""What a training loop sees: PyTorch's semantics, whichever feeder makes the batches."""

from __future__ import annotations

import contextlib
import threading

import numpy
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader as TorchLoader, Dataset, RandomSampler, Subset, SubsetRandomSampler, WeightedRandomSampler

from sample_datasets import (TORCH_HAS_IN_ORDER, Batched, Failing, Homebound, Keyed, Mixed, Numbers, OddError, OwnError, Point, SilentError, WorkerFacts,
                             as_points, fail_at_start, first_only)
from sluice.loader.iterator import FeederIterator
from sluice.shipping.structure import DTYPES
from sluice.torch import DataLoader


def indices_of(batches) -> list[list[int]]:
    return [batch[0].reshape(-1).tolist() for batch in batches]


def equal(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict):
        return type(a) is type(b) and a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


LOADER_CASES = {
    "in the order of the dataset": dict(batch_size=4),
    "one worker": dict(batch_size=4, num_workers=1),
    "more workers than batches": dict(batch_size=16, num_workers=7),
    "dropping the last": dict(batch_size=5, drop_last=True),
    "last batch smaller": dict(batch_size=5),
    "batch of one": dict(batch_size=1),
    "batch larger than the dataset": dict(batch_size=100),
    "shuffled": dict(batch_size=4, shuffle=True),
    "deep prefetching": dict(batch_size=4, prefetch_factor=9),
    "own sampler": dict(batch_size=4, sampler=SubsetRandomSampler(range(3, 20))),
    "with replacement": dict(batch_size=4, sampler=RandomSampler(range(37), replacement=True, num_samples=21)),
    "weighted": dict(batch_size=4, sampler=WeightedRandomSampler([1.0] * 30, 17)),
    "own batch sampler": dict(batch_sampler=BatchSampler(range(9), 2, False)),
    "batches of no fixed size": dict(batch_sampler=[[3], [1, 2], [], [5, 4, 0]]),
    "no batching": dict(batch_size=None),
    "numpy keys": dict(batch_size=4, sampler=list(numpy.arange(10))),
    "negative keys": dict(batch_size=4, sampler=[-1, -2]),
}


@pytest.mark.parametrize("case", LOADER_CASES)
def test_gives_the_samples_that_torch_gives_in_the_same_order(any_feeder, case):
    arguments = {"num_workers": 2, **LOADER_CASES[case]}
    if case == "batches of no fixed size":
        arguments["collate_fn"] = list
    batches = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(3)
        loader = loader_class(Numbers(), **arguments)
        batches.append([list(loader), list(loader)])
        assert len(loader) == len(batches[-1][0])
    if case == "batches of no fixed size":
        keys = [[[[int(sample[0]) for sample in batch] for batch in epoch] for epoch in which] for which in batches]
    else:
        keys = [[indices_of(epoch) for epoch in which] for which in batches]
    assert keys[0] == keys[1]


class OfEveryType(Dataset):
    """Tensors of every type of torch's: those that the data set holds, small and large, and those that it makes."""

    def __init__(self):
        self.held = {name: torch.arange(4).to(torch.float32).to(dtype) for name, dtype in DTYPES.items()}
        self.large = torch.arange(1 << 17, dtype=torch.int32).view(torch.uint32) if hasattr(torch, "uint32") else None

    def __len__(self):
        return 6

    def __getitem__(self, index):
        made = {name: torch.tensor(float(index)).to(dtype) for name, dtype in DTYPES.items()}
        return {"held": self.held, "made": made, "large": None if self.large is None else self.large[index]}


def test_tensors_of_every_type_arrive(any_feeder):
    batches = [list(loader_class(OfEveryType(), batch_size=None, num_workers=1)) for loader_class in (TorchLoader, DataLoader)]
    assert len(batches[0]) == len(batches[1]) == 6
    for wanted, given in zip(*batches, strict=True):
        for part in ("held", "made"):
            for name in DTYPES:
                assert given[part][name].dtype is DTYPES[name]
                assert bits(given[part][name]) == bits(wanted[part][name]), name
        assert wanted["large"] is None or int(given["large"]) == int(wanted["large"])


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes()


def test_leaves_the_main_generator_as_torch_does(any_feeder):
    after = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(3)
        for _ in loader_class(Numbers(), batch_size=4, shuffle=True, num_workers=2):
            pass
        after.append(torch.rand(3))
    assert torch.equal(*after)


def test_draws_the_base_seed_from_the_loaders_own_generator(any_feeder):
    state, batches = torch.get_rng_state(), []
    for _ in range(2):
        generator = torch.Generator().manual_seed(5)
        batches.append(list(DataLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2, generator=generator)))
    assert torch.equal(state, torch.get_rng_state())
    assert equal(*batches)


def test_is_served_by_the_feeder(any_feeder):
    assert isinstance(iter(DataLoader(Numbers(), num_workers=1)), FeederIterator)


def test_random_draws_do_not_depend_on_the_number_of_workers(any_feeder):
    runs = []
    for workers, batch_size in ((1, 4), (2, 4), (5, 4)):
        torch.manual_seed(11)
        runs.append(list(DataLoader(Numbers(), batch_size=batch_size, num_workers=workers)))
    assert equal(runs[0], runs[1]) and equal(runs[0], runs[2])


def test_every_sample_and_every_epoch_draws_anew(any_feeder):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    draws = torch.cat([batch[1] for _ in range(2) for batch in loader])
    assert draws.unique().numel() == 2 * 37 * 3


def test_persistent_workers_keep_the_base_seed_and_draw_anew_each_epoch(any_feeder):
    torch.manual_seed(1)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True)
    first = iter(loader)
    epochs = [list(first), list(loader)]
    assert iter(loader) is first
    assert indices_of(epochs[0]) == indices_of(epochs[1])
    assert not torch.equal(epochs[0][0][1], epochs[1][0][1])


def test_structure_and_types_of_batches_are_torchs(any_feeder):
    expected = list(TorchLoader(Mixed(), batch_size=5, num_workers=0))
    assert equal(expected, list(DataLoader(Mixed(), batch_size=5, num_workers=2)))


@pytest.mark.parametrize("collate, kind", [(first_only, tuple), (as_points, Point), (lambda samples: {"n": len(samples)}, dict)])
def test_collate_functions_run_where_the_samples_are_made(any_feeder, collate, kind):
    batches = list(DataLoader(Numbers(), batch_size=4, num_workers=2, collate_fn=collate))
    assert all(type(batch) is kind for batch in batches)


def test_datasets_that_fetch_whole_batches_do(any_feeder):
    batches = list(DataLoader(Batched(), batch_size=4, num_workers=2))
    assert batches[0][1].shape == (4, 2)


def test_subset_draws_as_its_dataset_would(any_feeder):
    torch.manual_seed(2)
    whole = list(DataLoader(Numbers(12), batch_size=4, num_workers=2))
    torch.manual_seed(2)
    subset = list(DataLoader(Subset(Numbers(37), range(12)), batch_size=4, num_workers=2))
    assert equal(whole, subset)


def test_string_keys_are_looked_up_here_with_the_same_seeds(any_feeder, caplog):
    loader = DataLoader(Keyed(), batch_size=2, num_workers=2, sampler=["a", "b", "c"])
    assert [batch[0] for batch in loader] == [("a", "b"), ("c",)] or [list(batch[0]) for batch in loader] == [["a", "b"], ["c"]]
    assert "only this process can look up" in caplog.text


def test_worker_info_is_that_of_the_virtual_worker(any_feeder):
    torch.manual_seed(4)
    base_seed = torch.empty((), dtype=torch.int64).random_().item()
    torch.manual_seed(4)
    batches = list(DataLoader(WorkerFacts(12), batch_size=2, num_workers=3))
    for number, batch in enumerate(batches):
        worker = number % 3
        assert batch[0].tolist() == [worker, 3, (base_seed + worker) % 2**31, -1]


ERRORS = {
    "builtin": (ValueError("bad sample"), ValueError),
    "of the user": (OwnError("bad sample"), OwnError),
    "key error": (KeyError("bad sample"), KeyError),
    "not constructible from a message": (OddError("bad", "sample"), RuntimeError),
    "without a message": (SilentError(), SilentError),
}


@pytest.mark.parametrize("case", ERRORS)
def test_exceptions_keep_their_type_and_bring_the_remote_traceback(any_feeder, case):
    error, expected = ERRORS[case]
    batches = iter(DataLoader(Failing(error, 12), batch_size=2, num_workers=2))
    assert indices_of([next(batches), next(batches)]) == [[0, 1], [2, 3]]
    with pytest.raises(expected) as caught:
        next(batches)
    assert type(caught.value) is expected
    told = str(caught.value.args[0])
    assert "in DataLoader worker process 0" in told
    assert "sample_datasets.py" in told and "raise self.error" in told
    assert indices_of(batches) == [[6, 7], [8, 9], [10, 11]]


def test_a_failing_worker_init_fn_fails_the_loop(any_feeder):
    with pytest.raises(OwnError, match="no start today"):
        list(DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=fail_at_start))


def test_an_early_break_leaves_the_next_epoch_untouched(any_feeder):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    for _ in range(20):
        for batch in loader:
            break
    assert indices_of(loader)[-1] == [36]


def test_several_iterators_and_loaders_run_side_by_side(any_feeder):
    loaders = [DataLoader(Numbers(20 + n), batch_size=3, num_workers=2) for n in range(3)]
    iterators = [iter(loader) for loader in loaders for _ in range(2)]
    seen = [[] for _ in iterators]
    live = list(range(len(iterators)))
    while live:
        for number in list(live):
            try:
                seen[number] += next(iterators[number])[0].tolist()
            except StopIteration:
                live.remove(number)
    assert seen == [list(range(20 + n // 2)) for n in range(6)]


def test_loaders_in_several_threads(any_feeder):
    results: dict[int, list] = {}

    def work(number: int) -> None:
        results[number] = [index for batch in DataLoader(Numbers(30 + number), batch_size=4, num_workers=2) for index in batch[0].tolist()]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: list(range(30 + number)) for number in range(4)}


def test_stop_iteration_is_final(any_feeder):
    batches = iter(DataLoader(Numbers(3), num_workers=1))
    assert len(list(batches)) == 3
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)


def test_dataset_changes_between_epochs_are_seen(any_feeder):
    dataset = Numbers(4)
    loader = DataLoader(dataset, num_workers=1, sampler=range(8), batch_size=4)
    with pytest.raises(IndexError):
        list(loader)
    dataset.count = 8
    assert indices_of(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.skipif(not TORCH_HAS_IN_ORDER, reason="this torch has no in_order")
def test_out_of_order_hands_over_each_batch_once(any_feeder):
    batches = indices_of(DataLoader(Numbers(), batch_size=4, num_workers=4, in_order=False))
    assert sorted(index for batch in batches for index in batch) == list(range(37))


def test_a_pipeline_that_no_executor_can_load_is_computed_here(any_feeder, caplog):
    assert indices_of(DataLoader(Homebound(), batch_size=4, num_workers=2))[-1] == [36]
    assert "not in this process" in caplog.text


@pytest.mark.parametrize("profiled", [True, False])
def test_profilers_see_the_calls_of_the_iterator(make_fake, profiled):
    make_fake()
    observed = contextlib.nullcontext() if not profiled else torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    with observed:
        batches = iter(DataLoader(Numbers(8), batch_size=4, num_workers=1))
        assert [len(indices) for indices in indices_of(batches)] == [4, 4]
    assert batches._num_yielded == 2
    if profiled:
        assert [event.count for event in observed.key_averages() if event.key == "enumerate(DataLoader)#FeederIterator.__next__"] == [3]
