"""Sockets lie in the temporary folder, unless its name is too long for them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from sluice.feeder.socket_folder import folder_for_sockets

NAME = "sluice.0/" + 24 * "0" + "/feeder.sock"


@pytest.mark.parametrize("spare_bytes, fits", [(-1, False), (0, True), (40, True)])
def test_a_socket_has_a_path_of_107_bytes_at_most(monkeypatch, spare_bytes, fits):
    folder = "/" + "t" * (107 - spare_bytes - len(NAME) - 2)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    assert folder_for_sockets(NAME) == Path(folder if fits else "/tmp")
    assert len(str(folder_for_sockets(NAME) / NAME)) <= 107


def test_it_is_bytes_that_count(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/" + "ü" * 31)
    assert folder_for_sockets(NAME) == Path("/tmp")
