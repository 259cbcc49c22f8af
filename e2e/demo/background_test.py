"""Commands in the background: a failure is told where it is waited for, and nothing outlives the demo."""

import os

import pytest
from background import Background
from console import DemoError


def test_what_a_failed_command_wrote_is_told_when_it_is_waited_for():
    with Background([["bash", "-c", "echo no proxy; exit 3"]], "connect the machine") as background:
        with pytest.raises(DemoError, match=r"(?s)exit status 3.*no proxy") as failure:
            background.wait()
    assert failure.value.way_out == "connect the machine"


def test_commands_that_work_are_waited_for(tmp_path):
    with Background([["touch", tmp_path / "it's made"], ["cp", tmp_path / "it's made", tmp_path / "copied"]], "") as background:
        background.wait()
    assert (tmp_path / "copied").exists()


def test_nothing_runs_after_a_command_that_failed(tmp_path):
    with Background([["false"], ["touch", tmp_path / "made"]], "") as background:
        with pytest.raises(DemoError):
            background.wait()
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("gives_way, niceness", [(False, 0), (True, 10)])
def test_only_commands_that_give_way_have_a_lower_priority(tmp_path, gives_way, niceness):
    own = os.nice(0)
    with Background([["sh", "-c", f"nice > {tmp_path}/niceness"]], "", gives_way) as background:
        background.wait()
    assert int((tmp_path / "niceness").read_text()) == min(19, own + niceness)


def test_an_interrupt_ends_the_command_and_what_it_started():
    with pytest.raises(KeyboardInterrupt):
        with Background([["bash", "-c", "sleep 100 & wait"]], "") as background:
            raise KeyboardInterrupt
    assert background._process.returncode != 0
