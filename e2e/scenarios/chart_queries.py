"""The queries that the chart gives to the operator."""

import re

from conftest import ROOT


def chart_queries(window):
    """By name, with the window ("15s") and the usual label of the namespace filled in."""
    block = (ROOT / "helm/sluice/values.yaml").read_text().split("\n  queries:\n")[1].split("\nfeeder:")[0]
    block = re.sub(r"^ *#.*\n", "", block, flags=re.MULTILINE)
    found = re.findall(r"^    (\w+): >-\n((?:      .*\n?)+)", block, re.MULTILINE)
    return {name: " ".join(text.split()).replace("$window", window).replace("$namespace", "namespace") for name, text in found}
