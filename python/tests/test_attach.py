"""Programs that run unedited: loaders of torch's class give what torch gives, in whatever process their batches are made."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.data
from torch.utils.data import DataLoader, Dataset, TensorDataset

from sample_datasets import Failing, Numbers, OwnError
from sluice import attached
from sluice.attach import attach
from sluice.explain import report
from sluice.loader.iterator import FeederIterator
from sluice.torch import DataLoader as OurLoader


@pytest.fixture
def attach_here(monkeypatch):
    """attach_here(): attaches this process until the test ends."""
    monkeypatch.setattr(DataLoader, "_get_iterator", DataLoader._get_iterator)
    report.forget()
    yield attach
    report.forget()


class Forwarding(DataLoader):
    """As Accelerate's: an `__iter__` of its own, one batch behind."""

    def __iter__(self):
        held = None
        for batch in super().__iter__():
            if held is not None:
                yield held
            held = batch
        if held is not None:
            yield held


class Halved(DataLoader):
    """Says another length, and takes its order from elsewhere."""

    @property
    def _index_sampler(self):
        return [[2, 3], [0, 1]]

    def __len__(self):
        return 2


class Stream(torch.utils.data.IterableDataset):
    def __iter__(self):
        return iter(range(torch.utils.data.get_worker_info().id, 12, 2))


class Nested(Dataset):
    """Reads through a loader of its own, in the worker."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return sum(batch.sum() for batch in DataLoader(range(index + 1), batch_size=2))


class UnlikeAnother(DataLoader):
    """Cannot be a key."""

    __hash__ = None


def seed_everything(worker_id: int) -> None:
    """As Lightning's worker function."""
    random.seed(torch.initial_seed() % 2**32 + worker_id)


def prepares(worker_id: int) -> None:
    torch.utils.data.get_worker_info().dataset.count += 1000 * worker_id


def numbers(loader_class: type = DataLoader, **settings: Any) -> DataLoader:
    """Over data without draws."""
    return loader_class(TensorDataset(torch.arange(23), torch.arange(23).float() / 7), **{"batch_size": 4, "num_workers": 2, **settings})


def epochs(*loaders: DataLoader, passes: int = 2) -> list:
    """What a loop gets that trains on the first loader and evaluates on the others after every second batch."""
    got: list = []
    for _ in range(passes):
        for number, batch in enumerate(loaders[0]):
            got.append(batch)
            if number % 2:
                got += [list(loader) for loader in loaders[1:]]
    return [got, torch.rand(2), random.random()]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


PROGRAMS: dict[str, tuple[Callable[[], list], str]] = {  # And what the report says of its first loader.
    "plain": (lambda: epochs(numbers(shuffle=True)), "DataLoader of TensorDataset, batch_size 4, num_workers 2: served in Python"),
    "a subclass with its own __iter__": (lambda: epochs(numbers(Forwarding, shuffle=True)), "Forwarding of TensorDataset"),
    "a subclass with its own order": (lambda: epochs(numbers(Halved)), "Halved of TensorDataset"),
    "persistent workers": (lambda: epochs(numbers(shuffle=True, persistent_workers=True), passes=3), "served in Python"),
    "persistent workers without a batch": (lambda: epochs(numbers(persistent_workers=True, batch_size=50, drop_last=True)), "served in Python"),
    "two loaders at a time": (lambda: [list(zip(numbers(shuffle=True), numbers(Forwarding)))], "served in Python"),
    "evaluation within training": (lambda: epochs(numbers(shuffle=True), numbers()), "served in Python"),
    "a batch sampler": (lambda: epochs(DataLoader(range(9), batch_sampler=[[1, 2], [8], [0, 3, 4]], num_workers=2)), "batch_size None"),
    "a generator of its own": (lambda: epochs(numbers(shuffle=True, generator=torch.Generator().manual_seed(5))), "served in Python"),
    "a worker function that seeds": (lambda: epochs(numbers(shuffle=True, worker_init_fn=seed_everything)), "served in Python"),
    "a worker function that prepares": (lambda: epochs(DataLoader(Numbers(9), num_workers=2, worker_init_fn=prepares)), "served in Python"),
    "no workers": (lambda: epochs(numbers(num_workers=0, shuffle=True)), "left to torch: num_workers is 0"),
    "an iterable data set": (lambda: epochs(DataLoader(Stream(), batch_size=2, num_workers=2)), "served in Python: the data set is iterable"),
    "a loader within the data set": (lambda: epochs(DataLoader(Nested(), batch_size=2, num_workers=2)), "served in Python"),
    "a loader that cannot be a key": (lambda: epochs(numbers(UnlikeAnother, shuffle=True)), "left to torch: TypeError"),
    "torch's own way to start workers": (lambda: epochs(numbers(multiprocessing_context="fork")), "served in Python"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_get_what_torch_gives(name, any_feeder, attach_here):
    program, told = PROGRAMS[name]
    torch.manual_seed(11), random.seed(11)
    expected = program()
    attach_here()
    torch.manual_seed(11), random.seed(11)
    assert same(program(), expected)
    assert told in report.lines()[0]


def test_workers_that_are_started_in_another_way_are_left_to_torch(make_fake, attach_here):
    """They import torch, so what they give is compared with what this process gives."""
    make_fake()
    torch.manual_seed(11), random.seed(11)
    expected = epochs(numbers(num_workers=0), passes=1)
    attach_here()
    torch.manual_seed(11), random.seed(11)
    assert same(epochs(numbers(num_workers=1, multiprocessing_context="spawn"), passes=1), expected)
    assert "left to torch: multiprocessing_context" in report.lines()[0]


def test_draws_are_torchs_where_that_is_asked_for(any_feeder, attach_here, monkeypatch):
    torch.manual_seed(1)
    expected = list(DataLoader(Numbers(9), batch_size=2, num_workers=2))
    attach_here()
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    torch.manual_seed(1)
    loader = DataLoader(Numbers(9), batch_size=2, num_workers=2)
    assert same(list(loader), expected) and isinstance(iter(loader), FeederIterator)


def test_images_are_made_natively(any_feeder, attach_here, image_root):
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    attach_here()
    pipeline = transforms.Compose([transforms.RandomResizedCrop(16), transforms.ToTensor()])
    assert sum(len(labels) for _, labels in DataLoader(ImageFolder(image_root, pipeline), batch_size=8, num_workers=2)) == 23
    assert report.lines() == ["DataLoader of ImageFolder, batch_size 8, num_workers 2: served natively (1 iterator)"]


def test_the_loader_stays_what_it_is(make_fake, attach_here):
    make_fake()
    plain, before = numbers(persistent_workers=True), set(vars(numbers()))
    attach_here()
    attach_here()
    loader = numbers()
    copied = pickle.loads(pickle.dumps(loader))
    for each in (loader, copied, copy.copy(loader), plain):
        assert type(each) is DataLoader and len(each) == 6
        assert isinstance(iter(each), FeederIterator)
    assert set(vars(loader)) == before and loader._iterator is None
    assert isinstance(plain._iterator, FeederIterator) and iter(plain) is plain._iterator
    assert b"sluice" not in pickle.dumps(loader)


def test_a_loader_is_not_kept_alive(make_fake, attach_here):
    make_fake()
    attach_here()
    loader = numbers(shuffle=True)
    batches, gone = iter(loader), weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None and not attached._attached
    assert len(list(batches)) == 6


def test_our_own_loader_is_served_once(make_fake, attach_here):
    make_fake()
    attach_here()
    loader = OurLoader(range(6), num_workers=2)
    assert len(list(loader)) == 6 and isinstance(iter(loader), FeederIterator) and not attached._attached
    assert len(list(OurLoader(range(6), num_workers=0))) == 6
    served, left = report.lines()
    assert "served in Python" in served and "left to torch" in left and left.endswith("(1 iterator)")


def test_forked_workers_of_ours_are_torchs(make_fake, attach_here):
    from sluice.makers.forks import TorchLoader

    make_fake()
    attach_here()
    forked = TorchLoader(attached.Batches(None, None), batch_size=None, sampler=[], num_workers=1, multiprocessing_context="fork")
    assert list(forked) == [] and report.lines() == []


def test_the_program_sees_its_own_exception(any_feeder, attach_here):
    attach_here()
    with pytest.raises(OwnError, match="sample 5"):
        list(DataLoader(Failing(OwnError("sample 5")), batch_size=2, num_workers=2))


def test_sluices_own_failures_leave_the_loader_to_torch(make_fake, attach_here, monkeypatch, caplog):
    """Also one that comes after torch's numbers were drawn."""
    make_fake()
    own = torch.Generator().manual_seed(3)
    torch.manual_seed(2)
    expected = [list(numbers(shuffle=True)), list(numbers(shuffle=True, generator=own)), torch.rand(2)]
    attach_here()

    def breaks(*_):
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(FeederIterator, "_begin_stream", breaks)
    own.manual_seed(3)
    torch.manual_seed(2)
    assert same([list(numbers(shuffle=True)), list(numbers(shuffle=True, generator=own)), torch.rand(2)], expected)
    assert [record.getMessage() for record in caplog.records] == ["using torch's own workers: ZeroDivisionError: of ours"]
    assert "left to torch: ZeroDivisionError: of ours (2 iterators)" in report.lines()[0]


@pytest.mark.parametrize("variable, value", [("SLUICE", "off"), ("SLUICE_RANDOMNESS", "of a kind"), ("SLUICE_FEEDER_SOCKET", "")])
def test_nothing_is_refused(make_fake, attach_here, monkeypatch, variable, value):
    make_fake()
    attach_here()
    monkeypatch.setenv(variable, value)
    assert len(list(numbers())) == 6
    assert "left to torch: " in report.lines()[0]
