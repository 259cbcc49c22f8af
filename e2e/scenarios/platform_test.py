"""Nodes of which architecture the chart's pods run on. No cluster is asked."""

import re

import pytest
from chart_test import CHART, configuration, helm


@pytest.mark.parametrize("settings, selector", [
    ((), "{kubernetes.io/arch: amd64, kubernetes.io/os: linux}"),
    (("image.architectures={arm64}",), "{kubernetes.io/arch: arm64, kubernetes.io/os: linux}"),
    (("image.architectures=null",), "{kubernetes.io/arch: amd64, kubernetes.io/os: linux}"),
    (("nodeSelector.pool=infra", "cache.nodeSelector.pool=infra"), "{kubernetes.io/arch: amd64, kubernetes.io/os: linux, pool: infra}"),
])  # fmt: skip
def test_pods_stay_on_nodes_of_their_platform(settings, selector):
    words = [word for each in ("cache.enabled=true", *settings) for word in ("--set", each)]
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", *words)
    found = re.findall(r"\n +nodeSelector:((?:\n +[\w./]+: \w+)+)", done.stdout)
    assert ["{" + ", ".join(each.split("\n        ")[1:]) + "}" for each in found] == [selector, selector], "of operator and cache"


def test_caches_of_an_image_of_two_architectures_run_on_nodes_of_both():
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", "cache.enabled=true,image.architectures={arm64,amd64}")
    assert re.findall(r"\n +kubernetes.io/arch: (\w+)", done.stdout) == ["arm64"], "the operator's"
    assert '{key: kubernetes.io/arch, operator: In, values: ["arm64","amd64"]}' in done.stdout
    assert 'architectures: ["arm64","amd64"]' in configuration("--set", "image.architectures={arm64,amd64}")
