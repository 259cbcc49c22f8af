"""A command in the background: its failure is told where it is waited for, and it does not outlive the demo."""

import pytest
from background import Background
from console import DemoError


def test_what_a_failed_command_wrote_is_told_when_it_is_waited_for():
    with Background(["bash", "-c", "echo no proxy; exit 3"], "connect the machine") as background:
        with pytest.raises(DemoError, match=r"(?s)exit status 3.*no proxy") as failure:
            background.wait()
    assert failure.value.way_out == "connect the machine"


def test_a_command_that_works_is_waited_for(tmp_path):
    with Background(["touch", tmp_path / "made"], "") as background:
        background.wait()
    assert (tmp_path / "made").exists()


def test_an_interrupt_ends_the_command_and_what_it_started():
    with pytest.raises(KeyboardInterrupt):
        with Background(["bash", "-c", "sleep 100 & wait"], "") as background:
            raise KeyboardInterrupt
    assert background._process.returncode != 0
