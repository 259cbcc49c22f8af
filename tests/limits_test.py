"""A command that hangs fails; one that is slow, or waits for the processor, does not."""

import os
import pathlib
import subprocess
import sys
import time

import limits
import pytest
import run


@pytest.fixture
def short_limits(tmp_path, monkeypatch):
    for module, name, value in [(run, "LOGS", tmp_path), (limits, "STILL_SECONDS", 2), (limits, "LOOK_SECONDS", 0.1)]:
        monkeypatch.setattr(module, name, value)
    return tmp_path


@pytest.mark.parametrize("command", [
    pytest.param("for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done", id="writes to its log"),
    pytest.param("end=$((SECONDS + 3)); (while [ $SECONDS -lt $end ]; do :; done)", id="computes in a child"),
])  # fmt: skip
def test_a_command_that_makes_progress_has_no_limit_of_wall_time(short_limits, command):
    assert run.run("slow", ["bash", "-c", command])


def test_a_command_that_does_nothing_fails(short_limits, capsys):
    assert not run.run("hangs", ["sleep", "100"])
    assert "nothing done for 2 s" in capsys.readouterr().out


def test_a_command_that_computes_without_end_fails(short_limits, capsys):
    assert not run.run("spins", ["bash", "-c", "(echo $BASHPID; while :; do :; done)"], cpu_seconds=1)
    assert "CPU-seconds" in capsys.readouterr().out
    child = pathlib.Path("/proc", (short_limits / "spins.log").read_text().strip(), "stat")
    deadline = time.monotonic() + 60  # a busy machine takes its time to end it
    while child.exists() and " Z " not in child.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_processor_time_of_children_that_ended_counts():
    before = limits.family(os.getpid())[os.getpid()]
    subprocess.run(["bash", "-c", "end=$((SECONDS + 2)); while [ $SECONDS -lt $end ]; do :; done"], check=True)
    assert limits.family(os.getpid())[os.getpid()] > before


def test_the_line_of_a_command_tells_its_processor_time(short_limits, capsys):
    spin = f"{sys.executable} -c 'import time\nwhile time.process_time() < 2: pass'"
    assert run.run("busy", ["bash", "-c", f"({spin}); true"])
    words = capsys.readouterr().out.split()
    assert words[-1] == "CPU-s" and 2 <= int(words[-2]) <= 4, words
