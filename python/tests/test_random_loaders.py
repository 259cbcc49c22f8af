"""Loops over loaders that are put together at random get from ours what they get from torch's: batches, order, errors and random states.

SLUICE_TESTED_LOADERS=1000:2000 tries others than those that are tried each time.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from torch.utils.data import DataLoader as TorchLoader

from conftest import NO_REAL_FEEDER, REAL_BINARY
from random_loaders import Loop, case_of
from sluice.torch import DataLoader

FIRST, END = map(int, os.environ.get("SLUICE_TESTED_LOADERS", "0:12").split(":"))


@pytest.fixture(autouse=True)
def a_laptop(clean_slate, monkeypatch, tmp_path):
    """A script's own feeder, and batches where they are worth it."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", str(REAL_BINARY))
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


@pytest.mark.filterwarnings("ignore")
def test_a_loop_gets_what_torch_gives_it(monkeypatch, tmp_path):
    different = []
    for seed in range(FIRST, END):
        cases = (case_of(2 * seed), case_of(2 * seed + 1))
        steps = random.Random(seed).choices(Loop.STEPS, k=8)
        # torch's workers draw torch's numbers; ours do only on request.
        monkeypatch.setenv("SLUICE_RANDOMNESS", "torch" if cases[0].is_random or cases[1].is_random else "sample")
        folder = Path(tempfile.mkdtemp())
        expected, got = (Loop(loader_class, cases, folder).run(steps) for loader_class in (TorchLoader, DataLoader))
        if got != expected:
            at = next((number for number, (ours, theirs) in enumerate(zip(got, expected, strict=False)) if ours != theirs), min(len(got), len(expected)))
            different.append(f"loader {seed}: {str(got[at : at + 1])[:300]} instead of {str(expected[at : at + 1])[:300]}; {steps}, {cases}")
    assert not different, "\n".join(different)
