"""The report that is checked in has all scenarios, and docs/scheduling.md says of P1 to P8 what it says."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = {scenario["scenario"]: scenario for scenario in json.loads((ROOT / "bench/results/sim-report.json").read_text())["scenarios"]}
ROWS = re.findall(r"^\| (P\d) \| (.*) \|$", (ROOT / "docs/scheduling.md").read_text(), re.MULTILINE)
# Of the table's columns, behind the scenario.
FIGURES = ["jct_gain", "allocated_gain", "over_best_peer", None, "share_of_perfect", "over_lower_bound"]
TABLE = {name: cells.split(" | ") for name, cells in ROWS if len(cells.split(" | ")) == len(FIGURES)}


def test_the_report_has_every_scenario_of_the_catalogue_with_all_seeds():
    catalogue = {path.stem for path in (ROOT / "scheduler/simulator/catalogue").glob("[A-Z][0-9].yaml")}
    assert SCENARIOS.keys() == catalogue
    assert {scenario["seeds"] for scenario in SCENARIOS.values()} == {8}


@pytest.mark.parametrize("name", [f"P{number}" for number in range(1, 9)])
def test_the_table_has_the_figures_of_the_report(name):
    reported = {figure["name"]: figure for figure in SCENARIOS[name]["figures"]}
    for figure, cell in zip(FIGURES, TABLE[name], strict=True):
        if figure is None:
            continue
        said = float(re.search(r"\d*\.\d+", cell).group())
        assert said == pytest.approx(reported[figure]["value"], abs=0.0051), f"{figure}: {cell}"
    assert reported["over_best_peer"]["peer"] in TABLE[name][2]
