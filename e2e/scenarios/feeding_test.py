"""The demo's three jobs with Sluice as shipped, on a small scale: who is given workers, and what the dashboard shows."""

import json
import re
import time

import pytest
import report
from conftest import ROOT
from demo import run_phase
from jobs import PHASES

DASHBOARDS = [json.loads(path.read_text()) for path in sorted((ROOT / "helm/sluice/dashboards").glob("*.json"))]
VARIABLES = {"$__rate_interval": "10s", "$__range": "5m", "$namespace": ".*", "$job": ".*", "$price": "3"}
SCALE = 0.6
# The demo's scripts say nothing of their end; plan_test.py has one that does.
ONLY_WHERE_ANNOUNCED = {"sluice_trainer_remaining_samples"}
ONLY_WHERE_CACHED = "sluice_cache_"  # of jobs with SLUICE_CACHE_DIR, which no job here has


@pytest.fixture(scope="module")
def phase(bed):
    """The figures of one run of phase (c), and the time in the middle of it."""
    began = time.time()
    figures = run_phase(bed.cluster, bed.console, bed.site, PHASES[2], SCALE)
    return figures, began


def test_every_check_of_the_report_holds(phase):
    found = report.checks([phase[0]])
    assert [what for what, holds in found if not holds] == []
    assert len(found) == 4  # complete, CPU, text without workers, vision with workers


def test_the_starved_job_was_given_workers_and_used_them(phase):
    vision = phase[0]["jobs"]["vision"]
    assert vision["most_workers_ready"] >= 1 and vision["first_remote_batch_seconds"] < 60
    assert any(after > before for _, before, after, _ in vision["decisions"])
    assert all(reason for _, _, _, reason in vision["decisions"]), "every decision has its reason"


def test_granted_cpu_never_exceeded_the_nodes(phase):
    cpu = phase[0]["cpu"]
    assert cpu["looks"] > 10 and cpu["most_requested_cores"] <= cpu["allocatable_cores"]


def expressions():
    for dashboard in DASHBOARDS:
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                if ONLY_WHERE_CACHED not in target["expr"]:  # node_cache_test.py asks these
                    yield f"{dashboard['title']}: {panel['title']}", target["expr"]


@pytest.mark.parametrize("title, expression", list(expressions()))
def test_every_query_of_the_dashboards_is_answered_with_data(bed, phase, title, expression):
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, "a variable that this test does not know"
    figures, began = phase
    # Some figures exist only while the job waits, or only after the first remote batch: look at several moments.
    moments = [began + share * figures["jobs"]["vision"]["completion_seconds"] for share in (0.5, 0.7, 0.9)]
    answers = [answer for moment in moments for answer in bed.query(expression, at=moment)]
    assert answers, expression
    assert any(answer["value"][1] not in ("NaN", "+Inf", "-Inf") for answer in answers), answers


QUERIED = {entry["name"]: entry for dashboard in DASHBOARDS for entry in dashboard["templating"]["list"] if entry["type"] == "query"}


@pytest.mark.parametrize("variable", QUERIED.values(), ids=QUERIED)
def test_the_dashboards_variables_have_values(bed, phase, variable):
    series, _, label = variable["definition"].removeprefix("label_values(").removesuffix(")").rpartition(", ")
    found = bed.query(f"count by ({label}) (last_over_time({series.replace('$namespace', '.*')}[10m]))")
    assert found and all(label in answer["metric"] for answer in found)


def test_the_documented_metrics_are_the_exported_ones(bed, phase):
    documented = set(re.findall(r"`(sluice_[a-z_]+)`", (ROOT / "docs/metrics.md").read_text()))
    documented = {name for name in documented if not name.startswith(ONLY_WHERE_CACHED)}
    figures, began = phase
    at = began + 0.7 * figures["jobs"]["vision"]["completion_seconds"]
    names = {answer["metric"]["__name__"] for answer in bed.query('count by (__name__) ({__name__=~"sluice_.+"})', at=at)}
    exported = {re.sub(r"(_bucket|_sum|_count)$", "", name) for name in names}
    assert exported == documented - ONLY_WHERE_ANNOUNCED
