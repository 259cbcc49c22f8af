"""Files that changed after they were noted are told from those that did not."""

from __future__ import annotations

import os
import time

import pytest

from sluice.loader.file_states import FileStates


@pytest.fixture
def settled(tmp_path):
    """A file that changed a while ago."""
    path = tmp_path / "file"
    path.write_text("1")
    time.sleep(0.15)
    return path


def rewrite(path):
    path.write_text("2")


def replace(path):
    other = path.with_name("other")
    other.write_text("1")
    os.replace(other, path)


def rewrite_with_the_time_of_before(path):
    status = path.stat()
    path.write_text("2")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def remove(path):
    path.unlink()


def read(path):
    path.read_text()


@pytest.mark.parametrize("change, is_same", [(rewrite, False), (replace, False), (rewrite_with_the_time_of_before, False), (remove, False), (read, True)])
def test_a_change_is_seen(settled, change, is_same):
    states = FileStates()
    states.note([str(settled)])
    change(settled)
    assert states.are_the_same() is is_same


def test_a_file_that_has_just_changed_may_change_again_unseen(settled):
    settled.write_text("2")
    states = FileStates()
    states.note([str(settled)])
    assert not states.are_the_same()


def test_the_first_state_of_a_file_counts(settled):
    states = FileStates()
    states.note([str(settled)])
    settled.write_text("2")
    time.sleep(0.15)
    states.note([str(settled)])
    assert not states.are_the_same()


def test_what_is_missing_is_never_the_same(tmp_path):
    states = FileStates()
    states.note([str(tmp_path / "missing"), "a\0name"])
    assert not states.are_the_same() and FileStates().are_the_same()
