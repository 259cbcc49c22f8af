"""The alerting rules, by Prometheus' own test of rules: each fires in its situation, none when all is well.

One value a minute; a condition has to last its `for` longer than the first minute in which it holds.
"""

import json
import re
import subprocess

import pytest
from conftest import ROOT
from machine import cache_folder

RULES = ROOT / "helm/sluice/alerts/sluice.yaml"
PROMTOOL = cache_folder() / "packages/prometheus/usr/bin/promtool"
JOB = 'job_namespace="a", training_job="b"'
CACHE = 'namespace="sluice-system", pod="sluice-cache-x"'

DAY = 86400  # seconds; the first minute of a situation is Unix time 0

# A cluster in which nothing is wrong: a decision each 5 s, a job that waits 5 % of its time.
WELL = {
    "sluice_operator_decisions_total": "0+12x60",
    'sluice_operator_metrics_queries_total{result="failed"}': "0x60",
    'sluice_operator_reconcile_errors_total{controller="training_job"}': "3x60",
    f'sluice_job_workers{{state="desired", {JOB}}}': "4x60",
    f'sluice_job_workers{{state="ready", {JOB}}}': "2x5 4x55",
    f"sluice_feeder_remote_workers{{{JOB}}}": "0x5 4x55",
    'sluice_operator_watch_age_seconds{resource="pods"}': "1+1x58 0x1",
    f"sluice_certificate_expiry_timestamp_seconds{{{JOB}}}": f"{29 * DAY}x60",
    f"sluice_worker_errors_total{{{JOB}}}": "1x60",
    f'sluice_cache_node_errors_total{{kind="write", {CACHE}}}': "2x60",
    f'sluice_cache_node_errors_total{{kind="version", {CACHE}}}': "0+1x60",
    f'sluice_cache_errors_total{{kind="gone", {JOB}}}': "0x60",
    f'sluice_trainer_step_seconds_total{{phase="data_wait", {JOB}}}': "0+3x60",
    f'sluice_trainer_step_seconds_total{{phase="compute", {JOB}}}': "0+57x60",
}
SITUATIONS = {
    "all is well": ({}, set()),
    "the operator hangs": ({"sluice_operator_decisions_total": "0+12x10 120x50"}, {"SluiceDoesNotDecide"}),
    "there is no operator": ({"sluice_operator_decisions_total": "_x60"}, {"SluiceDoesNotDecide"}),
    "the operator was restarted": ({"sluice_operator_decisions_total": "0+12x50 _x2 0+12x8"}, set()),
    "Prometheus is not reached": ({'sluice_operator_metrics_queries_total{result="failed"}': "0+12x60"}, {"SluiceMetricsUnanswered"}),
    "one question failed": ({'sluice_operator_metrics_queries_total{result="failed"}': "0x50 1x10"}, set()),
    "steps fail": ({'sluice_operator_reconcile_errors_total{controller="training_job"}': "0+1x60"}, {"SluiceReconcileErrors"}),
    "a worker stays pending": ({f'sluice_job_workers{{state="ready", {JOB}}}': "3x60"}, {"SluiceWorkersNotReady"}),
    "the feeder reaches no worker": ({f"sluice_feeder_remote_workers{{{JOB}}}": "0x60"}, {"SluiceWorkersUnused"}),
    "the feeder lost its workers for five minutes": ({f"sluice_feeder_remote_workers{{{JOB}}}": "4x50 0x5 4x5"}, set()),
    "a watch is dead": ({'sluice_operator_watch_age_seconds{resource="pods"}': "0+60x60"}, {"SluiceWatchSilent"}),
    "a certificate is not renewed": ({f"sluice_certificate_expiry_timestamp_seconds{{{JOB}}}": f"{20 * DAY}x60"}, {"SluiceCertificateExpires"}),
    "a certificate is renewed late": ({f"sluice_certificate_expiry_timestamp_seconds{{{JOB}}}": f"{20 * DAY}x50 {90 * DAY}x10"}, set()),
    "batches fail": ({f"sluice_worker_errors_total{{{JOB}}}": "0+2x60"}, {"SluiceWorkerErrors"}),
    "a cache's disk is full": ({f'sluice_cache_node_errors_total{{kind="write", {CACHE}}}': "2+1x60"}, {"SluiceNodeCacheFails"}),
    "a cache's disk failed once": ({f'sluice_cache_node_errors_total{{kind="write", {CACHE}}}': "2x50 3x10"}, set()),
    "a job finds no cache": ({f'sluice_cache_errors_total{{kind="gone", {JOB}}}': "0+2x60"}, {"SluiceNodeCacheNotReached"}),
    "a cache was moved": ({f'sluice_cache_errors_total{{kind="gone", {JOB}}}': "0x40 0+4x5 20x15"}, set()),
    "a job waits": ({f'sluice_trainer_step_seconds_total{{phase="data_wait", {JOB}}}': "0+30x60"}, {"SluiceJobWaitsForData"}),
    "one of three ranks waits": ({
        f'sluice_trainer_step_seconds_total{{phase="data_wait", rank="{rank}", {JOB}}}': f"0+{waits}x60" for rank, waits in enumerate((0, 30, 0))} | {
        f'sluice_trainer_step_seconds_total{{phase="compute", rank="{rank}", {JOB}}}': f"0+{60 - waits}x60" for rank, waits in enumerate((0, 30, 0))},
        {"SluiceJobWaitsForData"}),
    "a job waited for ten minutes": ({f'sluice_trainer_step_seconds_total{{phase="data_wait", {JOB}}}': "0+3x40 120+30x10 420+3x10"}, set()),
}  # fmt: skip


def values_of(field):
    """The text behind `field:` in each rule, in their order."""
    return re.findall(rf"^ +(?:- )?{field}: (.+)$", RULES.read_text(), re.MULTILINE)


def firing(series, folder):
    """The alerts that fire after an hour."""
    expected = [{"eval_time": "60m", "alertname": name, "exp_alerts": []} for name in values_of("alert")]
    test = {"interval": "1m", "input_series": [{"series": key, "values": value} for key, value in series.items()], "alert_rule_test": expected}
    path = folder / "test.json"  # JSON is YAML
    path.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run([PROMTOOL, "test", "rules", path], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    fires = set(re.findall(r"alertname: ?(\w+), time", said))
    assert fires or done.returncode == 0, said
    return fires


def found_by_two_scrapes(series):
    """A pod's annotations and a PodMonitor find it: one instance, with the labels of each scrape."""
    bare = {name if "{" in name else name + "{}": values for name, values in series.items()}
    return {name.replace("{", f'{{instance="10.0.0.1:9464", job="{scrape}", '): values for name, values in bare.items() for scrape in ("pods", "sluice")}


@pytest.mark.parametrize("found", [dict, found_by_two_scrapes], ids=["one scrape", "two scrapes"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_who_is_called_and_when(situation, found, tmp_path):
    changed, expected = SITUATIONS[situation]
    known = {re.sub(r'rank="\d+", ', "", series) for series in changed}
    assert known <= set(WELL)
    assert firing(found({**WELL, **changed}), tmp_path) == expected


def test_every_alert_has_a_situation_and_a_page_that_exists():
    alerts, pages = values_of("alert"), values_of("runbook_url")
    assert set(alerts) == set().union(*(expected for _, expected in SITUATIONS.values()))
    assert len(alerts) == len(pages) == len(values_of("summary")) == len(values_of("labels"))
    assert all((ROOT / page).is_file() for page in pages), pages
