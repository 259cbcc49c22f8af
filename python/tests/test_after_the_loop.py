"""When a loop ends, what its batches were made from is gone, as torch's workers are: files that samples have opened are closed."""

from __future__ import annotations

import fcntl
import gc

import pytest

from sample_datasets import Numbers
from sluice.loader import stream
from sluice.torch import DataLoader


class Locked(Numbers):
    """Opens its file when it is first read, and keeps it from being written to as long as it is open: so does HDF5."""

    def __init__(self, path) -> None:
        super().__init__(16)
        self.path = path
        self.file = None

    def __getitem__(self, index: int):
        if self.file is None:
            self.file = open(self.path, "rb")
            fcntl.flock(self.file, fcntl.LOCK_SH)
        return index


def can_be_written(path) -> bool:
    with open(path, "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def path(tmp_path):
    (tmp_path / "numbers").write_bytes(b"1")
    return tmp_path / "numbers"


@pytest.fixture
def in_process(clean_slate, make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    make_fake()


@pytest.fixture
def executors(real_feeder, monkeypatch):
    monkeypatch.setattr(stream, "_LONGEST_END_SECONDS", 60.0)  # Processes end slowly where many others run.


@pytest.fixture(params=["in_process", "executors", "executors of torch's randomness"])
def place(request, monkeypatch):
    """Where the batches are made."""
    fixture, _, sticky = request.param.partition(" ")
    request.getfixturevalue(fixture)
    if sticky:
        monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")


def test_a_file_is_closed_at_the_end_of_a_loop(place, path):
    loader = DataLoader(Locked(path), batch_size=4, num_workers=2)
    for _ in range(3):
        batches = iter(loader)
        next(batches)
        assert not can_be_written(path)
        assert sum(1 for _ in batches) == 3 and can_be_written(path)


def test_a_file_is_closed_at_a_break(place, path):
    for _ in DataLoader(Locked(path), batch_size=4, num_workers=2):
        assert not can_be_written(path)
        break
    assert can_be_written(path)


def test_a_file_of_the_process_stays_open_with_workers_that_persist(in_process, path):
    loader = DataLoader(Locked(path), batch_size=4, num_workers=2, persistent_workers=True)
    assert [len(list(loader)) for _ in range(2)] == [4, 4] and not can_be_written(path)
    loader._iterator = None
    assert can_be_written(path)


def test_the_copy_of_an_epoch_is_gone_with_it(in_process):
    """Also where its class is the script's, which travels by value."""
    kind = type("OfTheScript", (Numbers,), {"__module__": "__main__"})
    loader = DataLoader(kind(16), batch_size=4, num_workers=2)
    counts = []
    for _ in range(3):
        assert len(list(loader)) == 4
        gc.collect()
        counts.append(sum(type(found) is kind for found in gc.get_objects()))
    assert counts == [1, 1, 1]


@pytest.mark.parametrize("randomness", ["sample", "torch"])
def test_files_of_executors_are_closed_with_the_iterator_of_workers_that_persist(executors, path, monkeypatch, randomness):
    monkeypatch.setenv("SLUICE_RANDOMNESS", randomness)
    loader = DataLoader(Locked(path), batch_size=4, num_workers=2, persistent_workers=True)
    assert [len(list(loader)) for _ in range(2)] == [4, 4]
    assert can_be_written(path) is (randomness == "sample")  # Otherwise the same workers go on in the next epoch.
    loader._iterator = None
    assert can_be_written(path)
