"""cache.py: once, completely or not at all."""

import os
import signal
import subprocess
import sys

import pytest

import cache


def test_what_exists_is_not_made_again(tmp_path):
    calls = []
    for _ in range(2):
        cache.make(tmp_path, "set", lambda out: calls.append(out.joinpath("file").write_text("x")))
    assert len(calls) == 1
    assert (tmp_path / "set/file").read_text() == "x"


def test_a_failure_leaves_nothing(tmp_path):
    def fail(out):
        (out / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.make(tmp_path, "set", fail)
    assert list(tmp_path.iterdir()) == []


def test_remains_of_a_killed_process_are_not_taken_over(tmp_path):
    (tmp_path / "set.unfinished").mkdir()
    (tmp_path / "set.unfinished/old").write_text("x")
    made = cache.make(tmp_path, "set", lambda out: out.joinpath("new").write_text("x"))
    assert [path.name for path in made.iterdir()] == ["new"]


def test_termination_leaves_nothing(tmp_path):
    script = f"""
import pathlib, sys, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
import cache
def fill(out):
    print("filling", flush=True)
    time.sleep(60)
cache.make(pathlib.Path({str(tmp_path)!r}), "set", fill)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "filling\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_two_at_once_make_it_once(tmp_path):
    script = f"""
import pathlib, sys, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
import cache
def fill(out):
    print("made", flush=True)
    time.sleep(0.5)
cache.make(pathlib.Path({str(tmp_path)!r}), "set", fill)
"""
    started = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = sorted(process.communicate(timeout=30)[0] for process in started)
    assert outputs == ["", "made\n"]


@pytest.mark.parametrize("setting, user, want", [
    ("/elsewhere", 0, "/elsewhere"),
    (None, 0, "/var/cache/sluice"),
    ("", 0, "/var/cache/sluice"),
    (None, 1000, "/home/somebody/.cache/sluice"),
])
def test_the_cache_folder_can_be_chosen(monkeypatch, setting, user, want):
    monkeypatch.delenv("SLUICE_CACHE", raising=False)
    if setting is not None:
        monkeypatch.setenv("SLUICE_CACHE", setting)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert str(cache.cache_folder()) == want
