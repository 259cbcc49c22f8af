"""Elastic torchrun: a rank is killed, the other one goes on alone, a new one joins, and each sample is trained on where it belongs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch.utils.data import DistributedSampler

from conftest import eventually
from test_run import PACKAGE

SAMPLES, EPOCHS, BATCH, MOST_RANKS = 96, 2, 4, 2
SECONDS = 120
# The script commits where any number of ranks can go on: behind a multiple of BATCH * MOST_RANKS samples. What it did behind that is
# done again after a restart. It goes no further than the file `allowed` says, so that the test knows where a rank is killed.
TRAIN = f"""
import datetime, json, os, time
from pathlib import Path
import torch
import torch.distributed as dist
from sluice.torch import DataLoader
from torch.utils.data import Dataset, DistributedSampler


class Numbers(Dataset):
    def __len__(self):
        return {SAMPLES}

    def __getitem__(self, index):
        return index


def write(name, what):
    Path(name + ".new").write_text(json.dumps(what))
    os.replace(name + ".new", name)


dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
rank, ranks = dist.get_rank(), dist.get_world_size()
loader = DataLoader(Numbers(), batch_size={BATCH}, sampler=DistributedSampler(Numbers(), seed=3), num_workers=2)
saved = json.loads(Path("saved").read_text()) if os.path.exists("saved") else {{"epoch": 0, "trained": [], "loader": None}}
if rank == 0:
    write("ranks", ranks)
for epoch in range(saved["epoch"], {EPOCHS}):
    loader.sampler.set_epoch(epoch)
    if saved["loader"]:
        loader.load_state_dict(saved["loader"])
    trained, steps = list(saved["trained"]), 0
    for batch in loader:
        everywhere = [None] * ranks
        dist.all_gather_object(everywhere, batch.tolist())
        trained += [indices[place] for place in range(len(batch)) for indices in everywhere]
        steps += 1
        if len(trained) % {BATCH * MOST_RANKS} == 0 and rank == 0:
            write("saved", {{"epoch": epoch, "trained": trained, "loader": loader.state_dict()}})
            while epoch * {SAMPLES} + len(trained) >= json.loads(Path("allowed").read_text()):
                time.sleep(0.01)
    everywhere = [None] * ranks
    dist.all_gather_object(everywhere, steps)
    assert len(set(everywhere)) == 1, everywhere
    saved = {{"epoch": epoch + 1, "trained": [], "loader": None}}
    if rank == 0:
        write(f"epoch{{epoch}}", trained)
        write("saved", saved)
dist.barrier()
dist.destroy_process_group()
"""


class Agents:
    """Each is torchrun as a pod would start it, with one rank. All have the feeder that is beside them."""

    def __init__(self, folder: Path, feeder: str) -> None:
        self.folder, self._feeder = folder, feeder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._store = probe.getsockname()
        self._running: list[subprocess.Popen] = []

    def start(self) -> subprocess.Popen:
        # Without the last variable the ranks of a later round read what those of an earlier one wrote (docs/designs/multi-node.md).
        env = {**os.environ, "PYTHONPATH": str(PACKAGE), "SLUICE_FEEDER_SOCKET": self._feeder, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        command = [sys.executable, "-m", "torch.distributed.run", f"--nnodes=1:{MOST_RANKS}", "--nproc-per-node=1", "--max-restarts=5", "--monitor-interval=0.1",
                   "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self._store[1]}", "--rdzv-id=elastic", "--local-addr=127.0.0.1",
                   "--rdzv-conf=keep_alive_interval=1,last_call_timeout=2,join_timeout=90", "train.py"]  # fmt: skip
        with open(self.folder / f"agent{len(self._running)}.log", "w") as log:
            self._running.append(subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        eventually(self._store_answers, SECONDS)  # It is in the agent that comes first, and ends with it.
        return self._running[-1]

    def _store_answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(self._store) == 0

    @staticmethod
    def kill(agent: subprocess.Popen) -> None:
        """With its rank, as the end of a pod does; the agent of the other rank is told nothing."""
        if agent.poll() is None:
            agent.send_signal(signal.SIGSTOP)  # It starts no other.
            ranks = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split()
            for pid in [*map(int, ranks), agent.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        agent.wait()

    def kill_all(self) -> None:
        for agent in self._running:
            self.kill(agent)

    def said(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("agent*.log")))


@pytest.fixture
def agents(tmp_path, shared_real_feeder) -> Iterator[Agents]:
    (tmp_path / "train.py").write_text(TRAIN)
    agents = Agents(tmp_path, shared_real_feeder.path)
    yield agents
    agents.kill_all()
    print(agents.said())  # pytest shows it where the test has failed


def test_a_rank_leaves_and_another_comes_and_every_sample_is_where_it_belongs(agents):
    folder = agents.folder

    def trained(ranks, samples):
        """That so many ranks have come to so many samples."""
        (folder / "allowed").write_text(str(samples))
        def there():
            saved = json.loads((folder / "saved").read_text()) if (folder / "saved").exists() else {"epoch": 0, "trained": []}
            return saved["epoch"] * SAMPLES + len(saved["trained"]) >= samples and json.loads((folder / "ranks").read_text()) == ranks
        eventually(there, SECONDS)

    first, second = agents.start(), agents.start()
    trained(2, 24)
    agents.kill(second)
    trained(1, 56)
    third = agents.start()
    eventually(lambda: json.loads((folder / "ranks").read_text()) == 2, SECONDS)
    trained(2, SAMPLES + 16)
    (folder / "allowed").write_text(str(SAMPLES * EPOCHS + 1))
    assert [first.wait(SECONDS), third.wait(SECONDS)] == [0, 0], agents.said()
    sampler = DistributedSampler(range(SAMPLES), 1, 0, seed=3)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        assert json.loads((folder / f"epoch{epoch}").read_text()) == list(sampler)
