"""WebDataset's and Hugging Face's iterable data sets, where these packages are installed: every batch is compared with torch's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

from sluice.loader.iterable_iterator import IterableIterator
from sluice.torch import DataLoader
from test_loader import equal


def augmented(sample: tuple) -> tuple:
    values, label = sample
    return torch.from_numpy(values) + torch.rand(1) * random.random(), label


def shards(folder: Path, **arguments: Any) -> Any:
    webdataset = pytest.importorskip("webdataset")
    for shard in range(4):
        with webdataset.TarWriter(str(folder / f"shard-{shard}.tar")) as writer:
            for number in range(9 + shard):
                values = numpy.full((3, 8), shard * 100 + number, dtype=numpy.float32)
                writer.write({"__key__": f"{shard}-{number}", "npy": values, "cls": number})
    dataset = webdataset.WebDataset(str(folder / "shard-{0..3}.tar"), seed=5, workersplitter=webdataset.split_by_worker, **arguments)
    return dataset.compose(webdataset.detshuffle(6)).decode().to_tuple("npy", "cls").map(augmented)


def lines(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets")
    files = [folder / f"{shard}.jsonl" for shard in range(4)]
    for shard, file in enumerate(files):
        file.write_text("".join(json.dumps({"text": f"line {number}", "n": 100 * shard + number}) + "\n" for number in range(11)))
    return datasets.load_dataset("json", data_files=[str(file) for file in files], split="train", streaming=True, cache_dir=str(folder))


def with_length(row: dict) -> dict:
    return {"length": len(row["text"])}


CASES = {
    "WebDataset": (lambda folder: shards(folder, shardshuffle=4, detshuffle=True), {"batch_size": 4}),
    "WebDataset, batched by itself": (lambda folder: shards(folder, shardshuffle=False).batched(5), {"batch_size": None}),
    "Hugging Face, mapped and shuffled": (lambda folder: lines(folder).map(with_length).shuffle(seed=3, buffer_size=6), {}),
    "Hugging Face, as tensors": (lambda folder: lines(folder).remove_columns("text").with_format("torch"), {}),
}


@pytest.mark.parametrize("served_by", ["feeder", "forks"])
@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("name", CASES)
def test_batches_and_their_order_are_torchs(make_fake, monkeypatch, tmp_path, name, num_workers, served_by):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on" if served_by == "forks" else "off")
    make, arguments = CASES[name]
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(11)
        random.seed(12)
        loader = loader_class(make(tmp_path), num_workers=num_workers, **{"batch_size": 4, **arguments})
        seen.append([])
        for epoch in range(2):
            getattr(loader.dataset, "set_epoch", int)(epoch)
            batches = iter(loader)
            assert isinstance(batches, IterableIterator) == (loader_class is DataLoader)
            seen[-1].append(list(batches))
    assert equal(*seen) and len(seen[0][0]) >= 8
