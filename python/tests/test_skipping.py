"""Samples that fail and are left out: the same batches wherever they are made, and what is told of it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Subset, TensorDataset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, RealWorker, eventually
from sample_datasets import Batched, Counting, Numbers, OwnError, SilentError
from sluice.base.settings import SettingError, Settings
from sluice.executor.skipping import MOST_LOST_IN_A_ROW, MOST_TOLD, leave_out_failures
from sluice.feeder import choice as feeder_module
from sluice.torch import DataLoader
from test_forks import Decided
from test_loader import equal
from test_sticky import descendants


class Damaged(Numbers):
    """Some samples raise, after they have drawn a number."""

    def __init__(self, bad, count: int = 37, error: BaseException | None = None) -> None:
        super().__init__(count)
        self.bad = bad
        self.error = error

    def __getitem__(self, index: int):
        sample = super().__getitem__(index)
        if index in self.bad:
            raise self.error or OwnError(f"sample {index} is damaged")
        return sample


def keys_of(batches) -> list:
    return [batch[0].tolist() for batch in batches]


def without(keys: list, bad, batch_size: int) -> list:
    """What is left of batches in the order of the data set."""
    batches = [keys[start : start + batch_size] for start in range(0, len(keys), batch_size)]
    return [left for batch in batches if (left := [key for key in batch if key not in bad])]


# What is wrong with a file: what is done to it, and a part of what is told.
DAMAGES = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "OSError: image file is truncated"),
    "without a byte": (lambda path: path.write_bytes(b""), "UnidentifiedImageError"),
    "no image": (lambda path: path.write_bytes(b"<html>404</html>" * 50), "UnidentifiedImageError"),
    "only a head": (lambda path: path.write_bytes(path.read_bytes()[:20]), "Error: "),
    "vanished": (lambda path: path.unlink(), "FileNotFoundError"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "IsADirectoryError"),
    "a link to itself": (lambda path: (path.unlink(), path.symlink_to(path.name)), "OSError: [Errno 40]"),
}
BAD_FILES = dict(zip((1, 6, 7, 8, 13, 20, 22), DAMAGES, strict=True))


def picture_loader(root, **arguments) -> DataLoader:
    steps = [transforms.RandomResizedCrop(20), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    torch.manual_seed(21)
    return DataLoader(ImageFolder(root, transforms.Compose(steps)), batch_size=4, **{"num_workers": 2, **arguments})


@pytest.fixture
def damaged_pictures(image_root, tmp_path):
    """A function that makes the loader of a folder whose files were damaged after it was listed; and how each file is called."""
    shutil.copytree(image_root, tmp_path / "images")
    folder = ImageFolder(tmp_path / "images")

    def make(**arguments):
        loader = picture_loader(tmp_path / "images", on_error="skip", **arguments)
        for index, damage in BAD_FILES.items():
            path = tmp_path / "images" / folder.samples[index][0]
            if path.is_file():
                DAMAGES[damage][0](path)
        return loader

    return make, [path for path, _ in folder.samples]


def in_the_feeders_threads(monkeypatch, request):
    request.getfixturevalue("real_feeder")
    return {}


def in_the_feeders_interpreters(monkeypatch, request):
    request.getfixturevalue("real_feeder")
    monkeypatch.setenv("SLUICE_LOWERING", "off")
    return {}


def in_this_process(monkeypatch, request):
    request.getfixturevalue("make_fake")(silent=True)
    monkeypatch.setenv("SLUICE_LOWERING", "off")
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    return {"pays": False}


def in_forks(monkeypatch, request):
    return {**in_this_process(monkeypatch, request), "forks_pay": True}


PLACES = [in_the_feeders_threads, in_the_feeders_interpreters, in_this_process, in_forks]


def decide(loader, pays=None, forks_pay=False) -> None:
    """Where the loader's batches are made."""
    if pays is not None:
        loader._sluice_payback = Decided()
        loader._sluice_payback.pays, loader._sluice_payback.forks_pay = pays, forks_pay


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_damaged_files_are_left_out_wherever_batches_are_made(place, damaged_pictures, image_root, monkeypatch, request, caplog):
    decision = place(monkeypatch, request)
    make, paths = damaged_pictures
    good = picture_loader(image_root)
    decide(good, **decision)
    expected = [[images.clone(), labels.clone()] for images, labels in good]
    loader = make()
    decide(loader, **decision)
    batches = list(loader)
    left = [[place for place in range(4) if start + place < 23 and start + place not in BAD_FILES] for start in range(0, 23, 4)]
    assert equal([[images[rows], labels[rows]] for (images, labels), rows in zip(expected, left, strict=True)], batches)
    assert [(sample.batch, sample.index, sample.path) for sample in loader.skipped] == [(index // 4, index, paths[index]) for index in BAD_FILES]
    for sample in loader.skipped:
        assert DAMAGES[BAD_FILES[sample.index]][1] in sample.error
    told = [record.message for record in caplog.records if record.message.startswith("left out of its batch: ")]
    assert told == [f"left out of its batch: sample {s.index} ({s.path}): {s.error}" for s in loader.skipped[:MOST_TOLD]]


def test_without_workers_they_are_left_out_as_well(damaged_pictures, image_root):
    expected = [len(labels) - sum(index // 4 == number for index in BAD_FILES) for number, (_, labels) in enumerate(picture_loader(image_root))]
    loader = damaged_pictures[0](num_workers=0)
    assert [len(labels) for _, labels in loader] == expected
    assert [sample.index for sample in loader.skipped] == list(BAD_FILES)


class Slow(Damaged):
    """Tells who makes it."""

    def __getitem__(self, index: int):
        time.sleep(0.02)
        return (*super().__getitem__(index), os.getpid())


def test_data_workers_leave_out_the_same(data_worker):
    loader, bad = DataLoader(Slow(range(0, 37, 3)), batch_size=2, num_workers=2, on_error="skip"), set(range(0, 37, 3))

    def made_by_both() -> bool:
        batches = list(loader)
        assert keys_of(batches) == without(list(range(37)), bad, 2)
        assert [sample.index for sample in loader.skipped] == sorted(bad)
        theirs = set(descendants(data_worker.pid))
        return {pid in theirs for batch in batches for pid in batch[2].tolist()} == {True, False}

    eventually(made_by_both, 300)


class NotOnWorkers(Slow):
    """Some files are not where data workers look for them."""

    def __getitem__(self, index: int):
        if index % 5 == 0 and os.environ.get("SLUICE_TEST_DATA_WORKER"):
            raise FileNotFoundError(index)
        return super().__getitem__(index)


def test_what_only_a_data_worker_lacks_is_not_left_out(tmp_path, monkeypatch):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    monkeypatch.setenv("SLUICE_TEST_DATA_WORKER", "1")
    worker = RealWorker()
    monkeypatch.delenv("SLUICE_TEST_DATA_WORKER")
    feeder = RealFeeder(tmp_path, threads=1, workers=worker.address)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    loader = DataLoader(NotOnWorkers({7}), batch_size=2, num_workers=2, on_error="skip")

    def some_were_made_here() -> bool:
        batches = list(loader)
        assert keys_of(batches) == without(list(range(37)), {7}, 2)
        assert [sample.index for sample in loader.skipped] == [7]
        return sum(batch[2].tolist().count(os.getpid()) for batch in batches) > 1  # The one that lacks sample 7 may be.

    try:
        eventually(some_were_made_here, 300)
    finally:
        feeder_module.disconnect_all()
        feeder.stop()
        worker.stop()


class NoneForBad(Damaged):
    def __getitem__(self, index: int):
        try:
            return super().__getitem__(index)
        except OwnError:
            return None


def collate_the_rest(samples):
    return torch.utils.data.default_collate([sample for sample in samples if sample is not None])


def test_virtual_workers_draw_what_torchs_workers_draw(make_fake, monkeypatch):
    make_fake()
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    torch.manual_seed(5)
    expected = list(TorchLoader(NoneForBad({2, 9, 30}), batch_size=5, num_workers=2, collate_fn=collate_the_rest))
    torch.manual_seed(5)
    loader = DataLoader(Damaged({2, 9, 30}), batch_size=5, num_workers=2, on_error="skip")
    assert equal(expected, list(loader))
    assert [(sample.batch, sample.index) for sample in loader.skipped] == [(0, 2), (1, 9), (6, 30)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_batch_of_which_nothing_is_left_is_passed_over_and_counts_in_a_state(any_feeder, num_workers):
    bad = {4, 5, 6, 7, 8, 9, 10, 11, 17}
    torch.manual_seed(3)
    loader = DataLoader(Damaged(bad), batch_size=4, num_workers=num_workers, on_error="skip")
    batches = iter(loader)
    assert keys_of([next(batches), next(batches)]) == [[0, 1, 2, 3], [12, 13, 14, 15]]
    assert [sample.batch for sample in loader.skipped] == [1] * 4 + [2] * 4
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["batches"] == 4
    rest = keys_of(batches)
    assert rest == without(list(range(16, 37)), bad, 4)
    other = DataLoader(Damaged(bad), batch_size=4, num_workers=num_workers, on_error="skip")
    other.load_state_dict(state)
    assert keys_of(other) == rest


def test_so_many_failures_in_a_row_are_raised(make_fake, caplog):
    make_fake()
    batch_size, limit = 20, MOST_LOST_IN_A_ROW
    almost = DataLoader(Damaged(range(limit - batch_size), limit + 20), batch_size=batch_size, num_workers=1, on_error="skip")
    assert keys_of(almost) == without(list(range(limit + 20)), range(limit - batch_size), batch_size)
    lost = DataLoader(Damaged(range(20, 20 + limit), limit + 60), batch_size=batch_size, num_workers=1, on_error="skip")
    batches = iter(lost)
    assert keys_of([next(batches)]) == [list(range(20))]
    with pytest.raises(OwnError, match=f"sample {19 + limit} is damaged"):
        next(batches)
    assert any("100 samples in a row have failed" in record.message for record in caplog.records)


class Chunked(Damaged):
    """Fetches whole batches."""

    def __getitems__(self, keys):
        return [self[key] for key in keys]


class Tensors(Damaged):
    """Fetches whole batches in a form of its own."""

    def __getitems__(self, keys):
        return torch.stack([self[key][0] for key in keys])


def test_a_data_set_that_fetches_batches_is_asked_for_the_samples_of_one_that_fails(make_fake):
    make_fake()
    loader = DataLoader(Chunked({5}), batch_size=4, num_workers=2, on_error="skip")
    assert keys_of(loader) == without(list(range(37)), {5}, 4)
    whole = [list(DataLoader(Batched(), batch_size=4, num_workers=2, on_error=on_error)) for on_error in ("raise", "skip") if torch.manual_seed(2)]
    assert equal(*whole)
    with pytest.raises(OwnError):
        list(DataLoader(Tensors({5}), batch_size=4, num_workers=2, collate_fn=list, on_error="skip"))


def test_a_loader_without_batches_passes_over_samples(make_fake):
    make_fake()
    loader = DataLoader(Damaged({0, 5}, 9), batch_size=None, num_workers=2, on_error="skip")
    assert [index.item() for index, _ in loader] == [1, 2, 3, 4, 6, 7, 8]


SAYS_NOTHING_OF_THE_SAMPLE = [MemoryError(), KeyboardInterrupt(), SystemExit(1), OSError(errno.EMFILE, "too many open files"),
                              OSError(errno.ENOSPC, "no space")]  # fmt: skip


@pytest.mark.parametrize("error", SAYS_NOTHING_OF_THE_SAMPLE, ids=repr)
@pytest.mark.parametrize("kind", [Damaged, Chunked])
def test_what_says_nothing_of_the_sample_is_raised(error, kind):
    at_once = kind is Chunked
    with pytest.raises(type(error)):
        leave_out_failures(kind({1}, error=error), 0, [0, 1, 2], True, at_once, lambda place: None, list)


def test_collating_is_not_skipped(make_fake):
    make_fake()

    def refuse(samples):
        raise OwnError("they do not fit together")

    with pytest.raises(OwnError, match="they do not fit"):
        list(DataLoader(Numbers(), batch_size=4, num_workers=1, collate_fn=refuse, on_error="skip"))


def test_the_default_is_torchs(make_fake):
    make_fake()
    for on_error in (None, "raise"):
        with pytest.raises(OwnError, match="sample 5 is damaged"):
            list(DataLoader(Damaged({5}), batch_size=4, num_workers=2, on_error=on_error))


def test_the_environment_decides_where_the_loader_does_not(make_fake, monkeypatch):
    make_fake()
    monkeypatch.setenv("SLUICE_ON_ERROR", "skip")
    loader = DataLoader(Damaged({5}), batch_size=4, num_workers=2)
    assert "samples that fail are left out of their batches\n" in loader.explain()
    assert keys_of(loader) == without(list(range(37)), {5}, 4)
    with pytest.raises(OwnError):
        list(DataLoader(Damaged({5}), batch_size=4, num_workers=2, on_error="raise"))
    with pytest.raises(SettingError, match="SLUICE_ON_ERROR='ignore': use raise or skip"):
        Settings.from_environment({"SLUICE_ON_ERROR": "ignore"})


def test_a_loader_of_torchs_class_follows_the_environment(make_fake, monkeypatch):
    from sluice.attach import attach

    make_fake()
    monkeypatch.setattr(TorchLoader, "_get_iterator", TorchLoader._get_iterator)
    attach()
    monkeypatch.setenv("SLUICE_ON_ERROR", "skip")
    assert keys_of(TorchLoader(Damaged({5}), batch_size=4, num_workers=2)) == without(list(range(37)), {5}, 4)


def test_what_cannot_be_skipped_is_said(make_fake, monkeypatch, caplog):
    make_fake()
    with pytest.raises(ValueError, match="on_error='ignore': use raise or skip"):
        DataLoader(Numbers(), on_error="ignore")
    with pytest.raises(ValueError, match="on_error='skip' needs a map-style data set"):
        DataLoader(Counting(), on_error="skip")
    monkeypatch.setenv("SLUICE_ON_ERROR", "skip")
    list(DataLoader(Counting(), num_workers=1))
    monkeypatch.setenv("SLUICE", "off")
    list(DataLoader(TensorDataset(torch.arange(3)), num_workers=1))
    said = [record.message for record in caplog.records if "not skipped" in record.message]
    assert said == ["samples of Counting that fail are raised and not skipped: the data set is iterable",
                    "samples that fail are raised and not skipped, as torch itself makes the batches: SLUICE is off"]  # fmt: skip


def test_the_first_few_are_told_once_and_all_are_counted(make_fake, caplog):
    fake = make_fake()
    bad = set(range(0, 37, 4))
    loader = DataLoader(Subset(Damaged(bad), range(37)), batch_size=4, num_workers=2, on_error="skip")
    for _ in range(2):
        list(loader)
        assert len(loader.skipped) == len(bad)
    told = [record.message for record in caplog.records if "left out" in record.message]
    assert told == [*(f"left out of its batch: sample {key}: OwnError: sample {key} is damaged" for key in range(0, 20, 4)),
                    "further samples are left out; the loader's `skipped` lists them"]  # fmt: skip
    eventually(lambda: len(fake.ask()["closed"]) >= 2)
    assert sum(report["skipped_samples"] for report in fake.ask()["progress"].values()) == 2 * len(bad)


def test_a_sample_may_fail_without_a_message(any_feeder):
    loader = DataLoader(Damaged({5}, 12, SilentError()), batch_size=4, num_workers=2, on_error="skip")
    assert keys_of(loader) == without(list(range(12)), {5}, 4)
    assert [skipped.error for skipped in loader.skipped] == ["SilentError: <exception str() failed>"]
