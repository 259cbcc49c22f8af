"""Turns, runs that fail, and what becomes of the figures."""

import os
import sys

import environments
import pytest
import report
import rounds
import summary
from process_trees import adopt_orphans, process_tree

COST = "cpu_seconds_per_1000"


def figures(cost, checksum=1):
    return {COST: cost, "samples_per_second": 100 / cost, "first_batch_seconds": 1.0, "pss_mib": 10.0, "output": "uint8 CHW", "checksum": checksum, "version": "1"}


def program(text):
    return [sys.executable, "-S", "-c", text]


def test_every_other_round_goes_the_other_way():
    assert list(rounds.turns(["a", "b"], 0, 2)) + list(rounds.turns(["a", "b"], 2, 1)) == [(0, "a"), (0, "b"), (1, "b"), (1, "a"), (2, "a"), (2, "b")]


def test_a_run_gives_its_figures_or_the_reason_why_not():
    good = rounds.run(program("import sys; open(sys.argv[1], 'w').write('{\"x\": 1}')"), {})
    assert good["x"] == 1 and "load_average" in good
    assert rounds.run(program("import atexit; atexit.register(print, 'noise'); raise RuntimeError('no codec')"), {}) == {"failed": "RuntimeError: no codec"}
    assert rounds.run(program(""), {}) == {"failed": "no output"}


def test_a_run_that_hangs_is_ended_with_the_processes_that_it_has_left_behind():
    adopt_orphans()
    orphan = "import os, time; os.fork() or os.setsid() or os.fork() or time.sleep(60); time.sleep(60)"
    assert rounds.run(program(orphan), {}, 0.3) == {"failed": "not done after 0.3 s"}
    assert list(process_tree(os.getpid())) == [os.getpid()]


def test_ratios_are_those_of_one_round():
    runs = [(0, "bytes", "torch", figures(2.0)), (0, "bytes", "Sluice", figures(0.5)), (1, "bytes", "torch", figures(6.0)), (1, "bytes", "Sluice", figures(2.0)),
            (2, "bytes", "torch", figures(4.0)), (2, "bytes", "Sluice", figures(2.0))]  # fmt: skip
    ours, baseline = summary.summarised(runs, {})
    assert (ours["peer"], ours["ratio"], ours[COST]["median"]) == ("Sluice", {"median": 3.0, "smallest": 2.0, "largest": 4.0}, 2.0)
    assert baseline["ratio"]["median"] == 1.0


def test_a_peer_that_fails_is_a_row_with_its_reason():
    runs = [(0, "bytes", "torch", figures(2.0)), (0, "bytes", "Grain", {"failed": "ImportError: x"}),
            (0, "bytes", "SPDL", {"failed": "not done"}), (1, "bytes", "torch", figures(2.0)), (1, "bytes", "SPDL", figures(1.0, checksum=2))]  # fmt: skip
    rows = {row["peer"]: row for row in summary.summarised(runs, {("bytes", "FFCV"): "not installable here: no compiler"})}
    assert list(rows) == ["SPDL", "torch", "Grain", "FFCV"]
    assert rows["SPDL"]["rounds"] == 1 and rows["SPDL"]["ratio"]["median"] == 2.0 and rows["SPDL"]["failed"] == "not done"
    text = report.markdown(rows.values(), dict.fromkeys(rows, "other pixels"))
    assert "| Grain | ImportError: x |" in text and "| FFCV | not installable here: no compiler |" in text
    assert [line for line in text.splitlines() if "torch's bytes" in line] == [line for line in text.splitlines() if line.startswith("| torch 1 ")]


@pytest.mark.parametrize("cost, ahead", [(0.4, ["DALI"]), (0.6, [])])
def test_who_is_ahead_of_ours_is_told(cost, ahead):
    rows = summary.summarised([(0, "bytes", "Sluice", figures(0.5)), (0, "bytes", "DALI", figures(cost)), (0, "bytes", "FFCV", {"failed": "x"})], {})
    assert summary.behind(rows, "bytes") == ahead
    assert summary.behind(rows, "text") == []


def test_an_installers_output_is_told_in_a_line():
    with pytest.raises(environments.NotInstallable, match="pip: ERROR: no wheel"):
        environments.ran("pip", program("import sys; sys.exit('warning\\nERROR: no wheel\\nnote: the end')"))
