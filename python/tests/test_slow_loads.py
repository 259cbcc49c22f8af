"""A data set that hangs while an executor unpickles it. Only its own loader waits."""

from __future__ import annotations

import os
import threading
import time

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from sluice.torch import DataLoader
from test_bad_data_sets import Ten, seen

BATCHES = [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]
pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


class Hangs(Ten):
    """In another process than the trainer it waits for a file, and then cannot be unpickled. Another file tells that it waits."""

    def __init__(self, folder) -> None:
        self.trainer, self.begun, self.go_on = os.getpid(), folder / "begun", folder / "go on"

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        if os.getpid() != self.trainer:
            self.begun.touch()
            while not self.go_on.exists():
                time.sleep(0.01)
            raise ValueError("not even now")


@pytest.fixture
def feeder_of_one_thread(tmp_path, monkeypatch):
    feeder = RealFeeder(tmp_path, threads=1)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    yield
    feeder.stop()


def test_a_data_set_that_hangs_holds_up_its_own_loader_only(feeder_of_one_thread, tmp_path):
    got: list = []
    hanging = threading.Thread(target=lambda: got.extend(seen(DataLoader, Hangs(tmp_path))))
    hanging.start()
    eventually((tmp_path / "begun").exists, 60)
    for _ in range(2):
        assert seen(DataLoader, Ten(), timeout=60) == BATCHES
    assert hanging.is_alive() and got == []
    (tmp_path / "go on").touch()
    hanging.join(60)
    assert got == BATCHES  # What no executor can load, this process makes.
