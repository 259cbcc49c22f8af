"""Warnings show as beside torch's loader: how often, and in the name of which module."""

from __future__ import annotations

import warnings

import pytest
from torch.utils.data import DataLoader as TorchLoader

from sample_datasets import Numbers
from sluice.torch import DataLoader
from test_forks import loader_with_forks


def test_a_warning_of_the_script_shows_once_beside_forks(make_fake, recwarn):
    make_fake()
    warnings.resetwarnings()
    warnings.simplefilter("default")
    registry: dict = {}
    for _ in range(3):
        warnings.warn_explicit("of the loop", UserWarning, "train.py", 5, registry=registry)
        assert len(list(loader_with_forks())) > 0
    assert [str(warning.message) for warning in recwarn.list if warning.filename == "train.py"] == ["of the loop"]


def messages(seen):
    """But for what Python 3.12 and later say of forks beside threads."""
    return [str(warning.message) for warning in seen if warning.category is not DeprecationWarning]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_warnings_about_a_loader_are_torchs_and_hidden_as_those(make_fake, monkeypatch, switch):
    make_fake()
    monkeypatch.setenv("SLUICE", switch)
    monkeypatch.setattr(TorchLoader, "check_worker_number_rationality", lambda loader: warnings.warn("so many workers", stacklevel=2))
    shown = []
    for loader_class in (TorchLoader, DataLoader):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            iter(loader_class(Numbers(8), batch_size=4, num_workers=1, pin_memory=True))
            shown.append(sorted(messages(seen)))
            seen.clear()
            warnings.filterwarnings("ignore", module=r"torch\.utils\.data")
            iter(loader_class(Numbers(8), batch_size=4, num_workers=1, pin_memory=True))
            assert messages(seen) == []
    assert shown[0] == shown[1] and shown[0].count("so many workers") == 2
