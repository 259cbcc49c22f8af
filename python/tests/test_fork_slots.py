"""Batches of forks lie in slots that are used again. What arrives is the batch, whatever it holds, and it stays what it was."""

from __future__ import annotations

import collections
import multiprocessing
import os
import threading

import pytest
import torch

from sluice.makers import fork_slots
from sluice.makers.fork_slots import ForkSlots, Packed
from sluice.makers.payback import Payback
from sluice.torch import DataLoader
from test_loader import equal

Point = collections.namedtuple("Point", "x y")


class OwnTensor(torch.Tensor):
    pass


BATCHES = {
    "a matrix": lambda: torch.rand(3, 4),
    "a number": lambda: torch.tensor(5),
    "a tensor and labels": lambda: [torch.rand(2), torch.arange(2)],
    "a dict of tuples": lambda: {"x": (torch.rand(2), "name"), "y": {"deep": torch.tensor([True, False])}},
    "half precision": lambda: torch.rand(3).to(torch.bfloat16),
    "an unsigned type": lambda: torch.tensor([1, 2, 65535], dtype=getattr(torch, "uint16", torch.int32)),
    "no tensor": lambda: ["text", 5, None],
    "nothing": lambda: None,
    "an empty tensor": lambda: torch.zeros(0, 3),
    "a row of a matrix": lambda: torch.rand(4, 4)[1],
    "a transposed one": lambda: torch.rand(2, 3).t(),
    "one with a gradient": lambda: torch.rand(3, requires_grad=True),
    "an own class": lambda: torch.rand(3).as_subclass(OwnTensor),
    "a sparse one": lambda: torch.eye(3).to_sparse(),
    "in a named tuple": lambda: Point(torch.rand(2), 1),
    "a long list": lambda: [torch.rand(1) for _ in range(65)],
    "deep inside": lambda: [[[[[torch.rand(1)]]]]],
}


class Made(torch.utils.data.Dataset):
    """Each sample is a batch."""

    def __init__(self, *makers) -> None:
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    def __getitem__(self, index: int):
        torch.manual_seed(index)
        return self._makers[index]()


class Numbered(torch.utils.data.Dataset):
    """Samples of 4 KiB, full of their index."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1024,), float(index))


class Sparse(torch.utils.data.Dataset):
    """What torch does not take out of a worker before it is read."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((1, 1), index).to_sparse()


class Undecided(Payback):
    """Forks at first, and later as the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.forks_pay = True

    def note(self, *_) -> None:
        pass


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, monkeypatch, make_fake):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()


def as_it_is(batch):
    return batch


def by_forks(dataset, **options) -> DataLoader:
    """With a timeout, forks make all batches."""
    if options.get("batch_size", 1) is None:
        options["collate_fn"] = as_it_is
    return DataLoader(dataset, num_workers=2, timeout=120, **options)


def memory_of_slots() -> int:
    """Bytes of the pages that the slots of this process's forks have."""
    files = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    shared = [os.stat(file) for file in files if os.path.lexists(file) and "memfd:sluice-forks" in os.readlink(file)]
    return sum({status.st_ino: status.st_blocks * 512 for status in shared}.values())


@pytest.mark.parametrize("slot_bytes", [1 << 20, 1], ids=["in slots", "larger than a slot"])
@pytest.mark.filterwarnings("ignore:.*Sparse:UserWarning")
def test_what_arrives_is_the_batch(monkeypatch, slot_bytes):
    monkeypatch.setattr(fork_slots, "_SLOT_BYTES", slot_bytes)
    dataset = Made(*BATCHES.values())
    for name, received, expected in zip(BATCHES, by_forks(dataset, batch_size=None), map(dataset.__getitem__, range(len(dataset))), strict=True):
        assert type(received) is type(expected), name
        if name == "a sparse one":
            received, expected = received.to_dense(), expected.to_dense()
        assert equal(received, expected), name


def test_samples_are_stacked_straight_into_a_slot(monkeypatch):
    def refuse(tensors, descriptors, memory, start):
        raise RuntimeError(f"a {type(tensors[0]).__name__} is written")

    monkeypatch.setattr(fork_slots, "write", refuse)
    with pytest.raises(RuntimeError, match="a Stack is written"):
        next(iter(by_forks(Numbered(8), batch_size=4)))


@pytest.mark.filterwarnings("ignore:.*Sparse:UserWarning")
def test_the_last_batch_of_forks_that_are_given_up_is_whole():
    loader = DataLoader(Sparse(), batch_size=None, num_workers=2)
    loader._sluice_payback = payback = Undecided()
    made, others = [], multiprocessing.active_children()
    for number, batch in enumerate(loader):
        payback.forks_pay = number < 3
        made.append(batch.to_dense()[0, 0].item())
        if number == 11:
            assert multiprocessing.active_children() == others
    assert made == list(range(12))


def test_one_tensor_stays_one_and_shared_memory_shared():
    def batch():
        tensor, names = torch.zeros(2, 2), ["a"]
        return [tensor, tensor, tensor.view(-1), names, names]

    first, again, flat, mine, same = next(iter(by_forks(Made(batch), batch_size=None)))
    flat[3] = 7
    assert first is again and first[1, 1] == 7 and mine is same


def test_a_batch_that_holds_itself_is_sent():
    def batch():
        made = [torch.ones(2)]
        made.append(made)
        return made

    received = next(iter(by_forks(Made(batch), batch_size=None)))
    assert received[1] is received and torch.equal(received[0], torch.ones(2))


@pytest.mark.parametrize("kept", [0, 1, 2, 8, 64], ids="the loop keeps {}".format)
def test_batches_stay_what_they_were_however_many_the_loop_keeps(kept):
    held = collections.deque(maxlen=kept)
    for number, batch in enumerate(by_forks(Numbered(64), batch_size=1)):
        held.append((number, batch))
        assert all(torch.equal(seen, torch.full((1, 1024), float(index))) for index, seen in held)
        del batch
    assert all(torch.equal(seen, torch.full((1, 1024), float(index))) for index, seen in held)  # Their forks are gone.


def test_a_part_of_a_batch_keeps_its_slot():
    rows = []
    for batch in by_forks(Numbered(64), batch_size=2):
        rows.append(batch[1].numpy()[1000:])
        del batch
    assert [row[0] for row in rows] == list(range(1, 64, 2))


def test_tensors_that_die_in_other_threads_give_their_slots_back():
    for number, batch in enumerate(by_forks(Numbered(200), batch_size=1)):
        assert batch[0, 0] == number
        ending = threading.Thread(target=lambda last: None, args=(batch,))
        del batch
        ending.start()
        ending.join()


def test_slots_are_used_again_and_waiting_forks_keep_no_memory():
    loader = by_forks(Numbered(1024), batch_size=64, persistent_workers=True)
    most_bytes = 0
    for _ in range(3):
        for batch in loader:
            most_bytes = max(most_bytes, memory_of_slots())
            del batch
        assert memory_of_slots() == 0
    # Two workers with two batches each of 256 KiB, and four in the loop's hands.
    assert 256 << 10 <= most_bytes <= 8 * (256 << 10)


def test_without_such_memory_batches_come_in_torchs_way(monkeypatch):
    def refuse(*arguments):
        raise OSError("no more files")

    monkeypatch.setattr(os, "memfd_create", refuse)
    assert [batch[0, 0].item() for batch in by_forks(Numbered(8), batch_size=2)] == [0, 2, 4, 6]


def test_an_object_that_cannot_be_pickled_is_the_loops_error():
    with pytest.raises(Exception, match="(?i)pickle"):
        next(iter(by_forks(Made(lambda: [torch.ones(1), lambda: 0]), batch_size=None)))


def test_of_a_table_of_slots_each_request_has_its_own():
    slots = ForkSlots(2)
    first, second = slots.lend(), slots.lend()
    packed = [slots.pack([torch.full((4,), float(slot))], slot) for slot in (first, second)]
    assert first != second and all(isinstance(one, Packed) for one in packed)
    answers = [slots.take_back(slot, one) for slot, one in zip((first, second), packed, strict=True)]
    assert [answer.open()[0][0].item() for answer in answers] == [first, second]
