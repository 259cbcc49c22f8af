"""Executors that make the batches of several ranks: none meets what another has learnt."""

from __future__ import annotations

import os

import pytest
import torch

from sluice.executor.computation import BatchRequest, Computation, PythonPipeline, untouched_process
from sluice.shipping.shipment import describe_pipeline


class Learns(torch.utils.data.Dataset):
    """Looks up its rank when it is first read, as some libraries do."""

    def __init__(self, known: str = "none") -> None:
        if known == "as None":
            self.rank = None

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[int, int]:
        if getattr(self, "rank", None) is None:
            self.rank = int(os.environ["RANK"])
        return index, self.rank


class Opens(Learns):
    """Opens a file when it is first read, and looks up its rank each time."""

    file = None

    def __getitem__(self, index: int) -> tuple[int, int]:
        self.file = self.file or open(os.devnull)
        return index, int(os.environ["RANK"])


def ranks_of(computation: Computation) -> set[int]:
    _, ranks = computation.compute(BatchRequest(0, 1, 0, 0, [0, 1, 2], 0, 1))
    return set(ranks.tolist())


@pytest.mark.parametrize("dataset", [Learns(), Learns("as None"), Opens()], ids=["no attribute", "None", "a file"])
def test_a_rank_meets_no_other_ranks_number(monkeypatch, dataset):
    description, states = None, []
    for rank in range(20):
        monkeypatch.setenv("RANK", str(rank))
        description, state = describe_pipeline(PythonPipeline(dataset, None, True), description)
        states.append(state)
    computation = Computation(description.shipment.memory)
    datasets = set()
    with untouched_process():
        for rank in [0, 1, 0, 1, 1, 2, *range(20), 0, 19]:
            computation.enter(states[rank])
            assert ranks_of(computation) == {rank}
            datasets.add(id(computation.dataset))
    assert (len(datasets) == 1) == isinstance(dataset, Opens)  # A copy for each rank is made only where it has to be.


def test_a_later_epoch_begins_anew_for_all_ranks(monkeypatch):
    dataset, description, states = Learns(), None, {}
    for epoch in range(2):
        dataset.epoch = epoch
        for rank in range(2):
            monkeypatch.setenv("RANK", str(rank))
            description, states[epoch, rank] = describe_pipeline(PythonPipeline(dataset, None, True), description)
    computation = Computation(description.shipment.memory)
    with untouched_process():
        for epoch, rank in [(0, 0), (0, 1), (1, 1), (1, 0), (1, 1)]:
            computation.enter(states[epoch, rank])
            assert ranks_of(computation) == {rank} and computation.dataset.epoch == epoch
