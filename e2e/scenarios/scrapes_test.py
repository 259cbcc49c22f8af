"""A pod that several scrapes find counts once, for the operator and on the dashboards: by Prometheus' own evaluation.

Annotations and a PodMonitor may both find a pod, or a scrape finds it once for each container port. Such series differ in the
labels of the scrape and have the same `instance`.
"""

import itertools
import json
import re
import subprocess

import pytest
from chart_queries import chart_queries
from conftest import ROOT
from machine import cache_folder

PROMTOOL = cache_folder() / "packages/prometheus/usr/bin/promtool"
DASHBOARDS = [json.loads(path.read_text()) for path in sorted((ROOT / "helm/sluice/dashboards").glob("*.json"))]
VARIABLES = {"$__rate_interval": "60s", "$__range": "5m", "$namespace": ".*", "$job": ".*", "$price": "3"}
OF_A_JOB = {"namespace": "a", "job_namespace": "a", "training_job": "b"}
SCRAPES = [{"job": "kubernetes-pods"}, {"job": "kubernetes-pods", "container": "feeder"}, {"job": "monitoring/sluice", "endpoint": "metrics"}]
ONE_INSTANCE = r"max by \(([^)]*\binstance\b[^)]*)\)"


def documented():
    """The labels of each metric, with the values that docs/metrics.md names, if it does."""
    found = {}
    for row in re.findall(r"^\| `\w+` \|.*", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE):
        _, name, kind, labels, *_ = (cell.strip() for cell in re.split(r"(?<!\\)\|", row))
        named = {part.split("=")[0]: re.findall(r"`([\w]+)`", part) for part in labels.split(", ") if part}
        named = {label: values for label, values in named.items() if label not in OF_A_JOB}
        ends = {"_sum": {}, "_count": {}, "_bucket": {"le": ["0.1", "+Inf"]}} if kind == "histogram" else {"": {}}
        found |= {name.strip("`") + end: named | more for end, more in ends.items()}
    return found


LABELS = documented()


def series_of(expression, scrapes_of_pods):
    """What two or more pods export of the metrics in the expression, each as it is found by so many scrapes."""
    def values_of(label, named):
        return named or re.findall(rf'\b{label}="(\w+)"', expression) or ["x", "y"]

    made = []
    for metric in sorted(set(re.findall(r"\b(?:sluice|process)_\w+", expression)) & set(LABELS)):
        for pod, scrapes in enumerate(scrapes_of_pods):
            for rise, values in enumerate(itertools.product(*(values_of(*each) for each in LABELS[metric].items())), start=2 * pod + 1):
                own = dict(zip(LABELS[metric], values, strict=True)) | OF_A_JOB | {"instance": f"10.0.0.{pod}:9464"}
                labels = [own | scrape for scrape in SCRAPES[:scrapes]]
                made += [{"series": metric + "{" + ", ".join(f'{name}="{value}"' for name, value in each.items()) + "}", "values": f"0+{rise}x120"} for each in labels]
    return made


def answers(folder, series, expressions):
    """For each, the value of each of its samples, by their labels."""
    asked = [{"expr": expression, "eval_time": "19m55s", "exp_samples": []} for expression in expressions]
    path = folder / "test.json"  # JSON is YAML
    path.write_text(json.dumps({"evaluation_interval": "10s", "tests": [{"interval": "10s", "input_series": series, "promql_expr_test": asked}]}))
    done = subprocess.run([PROMTOOL, "test", "rules", path], capture_output=True, text=True, check=False)
    found = re.findall(r"^ +got: (.+)$", done.stdout + done.stderr, re.MULTILINE)
    assert len(found) == len(expressions), done.stdout + done.stderr
    return [{labels: float(value) for labels, value in re.findall(r"(\{[^}]*\}) ([-+.\w]+)", text)} for text in found]


def expressions():
    found = []
    for name, query in chart_queries("60s").items():
        found.append(pytest.param(query, id=name))
    for dashboard in DASHBOARDS:
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                expression = target["expr"]
                for variable, value in VARIABLES.items():
                    expression = expression.replace(variable, value)
                found.append(pytest.param(expression, id=f"{dashboard['title']}: {panel['title']} {target['refId']}"))
    return found


@pytest.mark.parametrize("expression", expressions())
def test_a_pod_that_several_scrapes_find_counts_once(expression, tmp_path):
    [once] = answers(tmp_path, series_of(expression, [1, 1]), [expression])
    [thrice] = answers(tmp_path, series_of(expression, [3, 1]), [expression])
    assert thrice == pytest.approx(once, nan_ok=True)


@pytest.mark.parametrize("expression", expressions())
def test_no_series_of_a_pod_is_taken_for_another(expression, tmp_path):
    """Where one scrape finds each pod, the largest series of an instance is the only one, and so their sum."""
    summed = re.sub(ONE_INSTANCE, r"sum by (\1)", expression)
    largest, sums = answers(tmp_path, series_of(expression, [1, 1]), [expression, summed])
    assert largest == pytest.approx(sums, nan_ok=True)
