"""Ranks of torchrun that train together over gloo, unmodified: the same samples and the same losses, bit for bit, as with torch's loader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY
from test_run import PACKAGE, run
from warm_python import WarmPython

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)

SAMPLES, EPOCHS, BATCH = 103, 3, 8  # So that neither ranks nor batches share the samples evenly.
TRAIN = f"""
import json, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Noisy(Dataset):
    def __len__(self):
        return {SAMPLES}

    def __getitem__(self, index):
        return index, torch.full((8,), index / {SAMPLES}) + torch.rand(8) / 10


dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = DataLoader(Noisy(), batch_size={BATCH}, sampler=DistributedSampler(Noisy(), seed=3), num_workers=2)
for epoch in range({EPOCHS}):
    loader.sampler.set_epoch(epoch)
    torch.manual_seed(100 * epoch + rank)
    seen, losses = [], []
    for indices, inputs in loader:
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += indices.tolist()
        losses.append(loss.item().hex())
    with open(f"{{epoch}}.{{rank}}.json", "w") as file:
        json.dump([seen, losses], file)
dist.destroy_process_group()
"""


def trained(folder: Path, ranks: int, sluice: bool, python: WarmPython | None = None) -> dict[str, list]:
    """What each rank has seen of each epoch, and its losses, by "epoch.rank". The ranks are forks of `python`, or torchrun's."""
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    settings = {"PYTHONPATH": str(PACKAGE), "SLUICE_FEEDER_BINARY": str(REAL_BINARY), "SLUICE_RANDOMNESS": "torch", "SLUICE_REPORT": "1"}
    if python is not None:
        status, _, errors = python.run(["train.py"], cwd=folder, imports=("torch._dynamo",), attached=sluice, ranks=ranks, **settings)
    else:
        launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", "train.py"]
        status, _, errors = run([*(["-m", "sluice"] if sluice else []), *launcher], cwd=folder, **settings)
    assert status == 0, errors
    served = [line for line in errors.splitlines() if line.startswith("sluice: DataLoader of Noisy") and "served in Python" in line]
    assert len(served) == (ranks if sluice else 0), errors
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_two_ranks_see_the_samples_and_losses_that_they_see_with_torch(tmp_path, warm_python):
    ours, torchs = trained(tmp_path / "ours", 2, sluice=True), trained(tmp_path / "torch", 2, sluice=False, python=warm_python)
    assert len(ours) == 2 * EPOCHS and ours == torchs


def test_four_ranks_see_equal_shares_of_all_samples(tmp_path, warm_python):
    found = trained(tmp_path / "ours", 4, sluice=True, python=warm_python)
    for epoch in range(EPOCHS):
        seen = [found[f"{epoch}.{rank}"][0] for rank in range(4)]
        assert {len(part) for part in seen} == {-(-SAMPLES // 4)}
        assert {index for part in seen for index in part} == set(range(SAMPLES))
