"""Scripts that change the files of their data set between two epochs: executors read what torch's workers would read."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader as TorchLoader, Dataset

from sluice.torch import DataLoader

SAMPLES, EPOCHS = 24, 4


class Changing(Dataset):
    """`change(epoch)` is what the script does before each epoch."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "data"

    def __len__(self) -> int:
        return SAMPLES

    def change(self, epoch: int) -> None:
        raise NotImplementedError


class RewrittenFiles(Changing):
    def change(self, epoch: int) -> None:
        self.path.mkdir(exist_ok=True)
        for index in range(SAMPLES):
            (self.path / str(index)).write_text(str(100 * epoch + index))

    def __getitem__(self, index: int) -> int:
        return int((self.path / str(index)).read_text())


class GrowingTable(Changing):
    """A table of which each worker reads what there is when it is first asked."""

    keeps = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.rows: list[int] = []

    def change(self, epoch: int) -> None:
        with open(self.path, "a") as file:
            file.writelines(f"{number}\n" for number in range(SAMPLES))

    def __getitem__(self, index: int) -> tuple[int, int]:
        if not self.rows or not self.keeps:
            with open(self.path) as file:
                self.rows = [int(row[0]) for row in csv.reader(file)]
        return len(self.rows), self.rows[index]


class GrowingTableReadAnew(GrowingTable):
    keeps = False


class DataBase(Changing):
    def change(self, epoch: int) -> None:
        connection = sqlite3.connect(self.path)
        connection.execute("create table if not exists numbers (place integer primary key, number integer)")
        connection.executemany("insert or replace into numbers values (?, ?)", [(index, 100 * epoch + index) for index in range(SAMPLES)])
        connection.commit()
        connection.close()

    def __getitem__(self, index: int) -> int:
        connection = sqlite3.connect(self.path)
        number = connection.execute("select number from numbers where place = ?", (index,)).fetchone()[0]
        connection.close()
        return number


class OpenDataBase(DataBase):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.connection: sqlite3.Connection | None = None

    def __getitem__(self, index: int) -> int:
        self.connection = self.connection or sqlite3.connect(self.path)
        return self.connection.execute("select number from numbers where place = ?", (index,)).fetchone()[0]


KINDS = [RewrittenFiles, GrowingTable, GrowingTableReadAnew, DataBase, OpenDataBase]


def epochs_of(loader_class: type, dataset: Dataset, change: Callable[[int], None], **arguments: object) -> list:
    """The batches of each epoch."""
    torch.manual_seed(4)
    loader = loader_class(dataset, batch_size=4, num_workers=2, shuffle=True, **arguments)
    epochs = []
    for epoch in range(EPOCHS):
        change(epoch)
        epochs.append([[part.tolist() for part in batch] if isinstance(batch, (tuple, list)) else batch.tolist() for batch in loader])
    return epochs


def assert_equal_epochs(kind: type[Changing], place: Path, **arguments: object) -> None:
    """Of torch's loader and of ours, each with a folder of its own."""
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        folder = place / loader_class.__module__
        folder.mkdir()
        dataset = kind(folder)
        seen.append(epochs_of(loader_class, dataset, dataset.change, **arguments))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_epoch_has_what_was_written_before_it(real_feeder, tmp_path, kind):
    assert_equal_epochs(kind, tmp_path)


@pytest.mark.parametrize("kind", [RewrittenFiles, GrowingTableReadAnew, DataBase], ids=lambda kind: kind.__name__)
def test_workers_that_persist_read_what_was_written_before_the_epoch(real_feeder, tmp_path, kind):
    assert_equal_epochs(kind, tmp_path, persistent_workers=True)


def test_images_that_are_decoded_natively_are_those_of_their_epoch(real_feeder, tmp_path):
    datasets = pytest.importorskip("torchvision.datasets")
    transforms = pytest.importorskip("torchvision.transforms")
    (tmp_path / "class").mkdir()

    def change(epoch: int) -> None:
        for index in range(SAMPLES):
            Image.new("RGB", (8, 8), (10 * epoch, index, 0)).save(tmp_path / "class" / f"{index:02}.png")

    change(0)
    folder = datasets.ImageFolder(tmp_path, transforms.Compose([transforms.Resize((8, 8)), transforms.ToTensor()]))
    assert DataLoader(folder, batch_size=4, num_workers=2).explain().startswith("executor: native")
    expected, found = (epochs_of(loader_class, folder, change) for loader_class in (TorchLoader, DataLoader))
    assert expected == found
