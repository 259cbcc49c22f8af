"""An epoch's price is what sluice-sim charges, and docs/designs/ordering.md says what the checked-in run found."""

import json
import os
import pathlib

import epoch_cost
import pytest

ROOT = epoch_cost.ROOT
BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
FOUND = json.loads((ROOT / "bench/results/epoch-cost.json").read_text())
ORDER = json.loads((ROOT / "bench/results/order.json").read_text())
DOCUMENT = (ROOT / "docs/designs/ordering.md").read_text()
SECTION = DOCUMENT.partition("\n## Money")[2].partition("\n## ")[0]


@pytest.mark.parametrize("policy", ["cachew", "pecan", "sluice-cost"])
def test_the_parts_of_all_trainings_add_up_to_the_simulators_own_cost(policy):
    described = epoch_cost.scenario(images_per_second=3230, cpu_seconds_per_1000=4, remote_only=policy == "cachew")
    entry = epoch_cost.simulated(BUILD, policy, described)
    jobs = entry["time_line"]["jobs"]
    assert len(jobs) == epoch_cost.TRAININGS
    seconds = described["jobs"][0]["ideal_seconds"]
    parts = [sum(epoch_cost.dollars(*epoch_cost.part_of(job, 0, seconds))) for job in jobs]
    assert sum(parts) == pytest.approx(entry["cost_dollars"]["value"], rel=1e-3)
    local = max(step[2] for job in jobs for step in job["steps"])
    assert (local < 0.1) == (policy == "cachew")  # Cachew's workers are all remote


def test_a_part_of_a_training_costs_the_steps_that_it_lies_in():
    # Half speed with 2 remote cores for 100 s, full speed with 4 for 50 s.
    job = {"steps": [[10, 0.5, 8, 2, 9], [110, 1, 8, 4, 9]], "finish_seconds": 160}
    assert epoch_cost.part_of(job, 0, 100) == pytest.approx((150, 400))
    assert epoch_cost.part_of(job, 40, 60) == pytest.approx((20 + 10, 40 + 40))
    assert epoch_cost.part_of(job, 90, 100) == pytest.approx((10, 40))


def test_the_results_are_of_the_cpu_figures_that_are_checked_in():
    assert FOUND["cpu_of_samples"] == {key: ORDER[key] for key in ("date", "machine", "versions")}
    for name in ("native", "torchvision"):
        assert [row["pipeline"] for row in FOUND[name]] == [row["pipeline"] for row in ORDER["rows"]]


@pytest.mark.parametrize("name", epoch_cost.TABLES)
def test_the_document_has_the_figures_of_the_results(name):
    for row in FOUND[name]:
        costs = [row[rule.name] for rule in epoch_cost.TABLES[name].rules]
        assert f"| {row['pipeline']} | " + " | ".join(epoch_cost.cell(cost, costs[0]) for cost in costs) + " |" in SECTION


def test_the_document_has_the_cpu_figures():
    for row in ORDER["rows"]:
        figures = " | ".join(f"{row[column]:.2f}" for column in ("torchvision", "torchvision_pecan", "program", "pecan", "exact", "relaxed"))
        assert f"| {row['pipeline']} | {figures} |" in DOCUMENT
