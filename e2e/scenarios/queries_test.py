"""The chart's queries, by Prometheus' own test of expressions: what they answer for trainers of several ranks."""

import json
import subprocess

import pytest
from chart_queries import chart_queries
from machine import cache_folder

PROMTOOL = cache_folder() / "packages/prometheus/usr/bin/promtool"
JOB = 'namespace="a", training_job="b"'  # The first label is the scrape's.


def series_of(ranks):
    """A value each ten seconds; `ranks` are seconds of computing and of waiting in these ten."""
    made = []
    for rank, shares in enumerate(ranks):
        labels = f'instance="{rank}:9464", rank="{rank}", {JOB}'
        for phase, seconds in zip(("compute", "data_wait"), shares, strict=True):
            made.append({"series": f'sluice_trainer_step_seconds_total{{phase="{phase}", {labels}}}', "values": f"0+{seconds}x12"})
    return made


def expect(folder, series, expected):
    path = folder / "test.json"  # JSON is YAML
    path.write_text(json.dumps({"evaluation_interval": "10s", "tests": [{"interval": "10s", "input_series": series, "promql_expr_test": expected}]}))
    done = subprocess.run([PROMTOOL, "test", "rules", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("ranks, compute, wait", [
    ([(9, 1)], 0.9, 0.1),
    ([(9, 1), (9, 1)], 0.9, 0.1),
    ([(9, 1), (5, 5), (10, 0)], 0.5, 0.5),
    ([(8, 0), (6, 2)], 0.6, 0.2),  # two of ten seconds outside the loop
    ([(6, 4), (0, 0)], 0.3, 0.2),  # a rank that takes no step is no slow rank; the loops ran for half of the ranks' time
    ([(0, 0), (0, 0)], 0, 0),
])  # fmt: skip
def test_the_rank_that_waits_longest_counts(ranks, compute, wait, tmp_path):
    expected = [{"expr": chart_queries("60s")[name], "eval_time": "2m", "exp_samples": [{"labels": f"{{{JOB}}}", "value": value}]}
                for name, value in (("computeShare", compute), ("dataWaitShare", wait))]  # fmt: skip
    expect(tmp_path, series_of(ranks), expected)


def scraped(interval_seconds, minutes):
    """A trainer's series as a scrape makes it, in the test's steps of 10 s: `_` is no sample."""
    every = interval_seconds // 10
    return " ".join(str(step) if step % every == 0 else "_" for step in range(minutes * 6 + 1))


@pytest.mark.parametrize("interval_seconds, window, scrapes", [
    (10, "30s", 3),
    (10, "60s", 6),
    (60, "30s", 0),  # at 4 min 55 s: none in the window, and yet the pod was there all the time
    (60, "4m", 4),
])  # fmt: skip
def test_the_scrapes_in_the_window_are_counted_where_there_are_none_too(interval_seconds, window, scrapes, tmp_path):
    series = [{"series": f'sluice_trainer_samples_total{{instance="1:9464", {JOB}}}', "values": scraped(interval_seconds, 6)}]
    ask = {"expr": chart_queries(window)["scrapesInWindow"], "eval_time": "4m55s"}
    expect(tmp_path, series, [ask | {"exp_samples": [{"labels": f"{{{JOB}}}", "value": scrapes}]}])


def test_scrapes_are_not_counted_of_a_pod_that_has_come_or_gone_in_the_window(tmp_path):
    came = "_x24 " + "1x12"  # at 4 min
    left = "1x26 stale"
    series = [{"series": f'sluice_trainer_samples_total{{instance="{name}:9464", {JOB}}}', "values": values} for name, values in (("came", came), ("left", left))]
    expect(tmp_path, series, [{"expr": chart_queries("60s")["scrapesInWindow"], "eval_time": "4m55s", "exp_samples": []}])


# Each with the labels that tell its series apart, and what it answers for two pods of one series each.
SUMS = [
    ("samplesPerSecond", "sluice_trainer_samples_total", 'rank="POD"', 2),
    ("batchesInWindow", "sluice_trainer_batches_total", 'rank="POD"', 120),
    ("queueDepth", "sluice_trainer_queue_depth", 'rank="POD"', None),
    ("queueCapacity", "sluice_trainer_queue_capacity", 'rank="POD"', None),
    ("workerSamplesPerSecond", "sluice_worker_samples_total", 'placement="remote", executor="python"', 2),
    ("workerBusyCores", "sluice_worker_busy_seconds_total", 'placement="remote", executor="python"', 2),
    ("workersAtWork", "sluice_worker_samples_total", 'placement="remote", executor="python"', 2),
    ("blockedThreads", "sluice_worker_blocked_seconds_total", 'placement="remote", executor="python"', 2),
    ("remainingSamples", "sluice_trainer_remaining_samples", 'rank="POD"', 2380),
]


@pytest.mark.parametrize("query, metric, labels, expected", SUMS, ids=[row[0] for row in SUMS])
def test_the_pods_of_a_job_are_summed(query, metric, labels, expected, tmp_path):
    series = [{"series": f'{metric}{{instance="10.0.0.{pod}:9464", {labels}, {JOB}}}'.replace("POD", str(pod)), "values": "0+10x120"} for pod in (1, 2)]
    placement = 'placement="remote", ' if query in {"workerSamplesPerSecond", "workerBusyCores"} else ""
    value = expected if expected is not None else 2 * (1190 - 25)  # the mean over the window's six or seven samples
    expect(tmp_path, series, [{"expr": chart_queries("60s")[query], "eval_time": "19m55s", "exp_samples": [{"labels": f"{{{placement}{JOB}}}", "value": value}]}])


# What samples read, of native executors in two pods: bytes and samples each ten seconds, then the bytes that caches served.
@pytest.mark.parametrize("bytes_read, samples, cached, expected", [
    ([1000, 3000], [10, 10], {}, 200),
    ([1000, 3000], [10, 10], {"source": 600, "transcoded": 400}, 150),
    ([1000, 3000], [10, 10], {"prefix": 5000}, 0),  # caches served all, and the counters were scraped at different moments
    ([0], [0], {}, None),  # Python executors alone
])  # fmt: skip
def test_bytes_that_caches_served_are_not_read(bytes_read, samples, cached, expected, tmp_path):
    series = []
    for pod, (read, made) in enumerate(zip(bytes_read, samples, strict=True)):
        labels = f'instance="10.0.0.{pod}:9464", placement="remote", {JOB}'
        series += [{"series": f'sluice_worker_op_bytes_total{{op="read", {labels}}}', "values": f"0+{read}x120"},
                   {"series": f'sluice_worker_op_bytes_total{{op="decode", {labels}}}', "values": f"0+{7 * read}x120"},
                   {"series": f'sluice_worker_samples_total{{executor="native", {labels}}}', "values": f"0+{made}x120"},
                   {"series": f'sluice_worker_samples_total{{executor="python", {labels}}}', "values": "0+5x120"}]  # fmt: skip
    series += [{"series": f'sluice_cache_hit_bytes_total{{instance="10.0.0.0:9464", placement="remote", form="{form}", {JOB}}}', "values": f"0+{hit}x120"}
               for form, hit in cached.items()]  # fmt: skip
    answer = [] if expected is None else [{"labels": f"{{{JOB}}}", "value": expected}]
    expect(tmp_path, series, [{"expr": chart_queries("60s")["readBytesPerSample"], "eval_time": "19m55s", "exp_samples": answer}])
