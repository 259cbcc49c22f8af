#!/usr/bin/env python3
"""Draws what loaders_bench.py has measured: how often each loader does the work while torch's does it once.

usage: plot.py RESULTS.json PLOT.svg
"""

import json
import pathlib
import sys

import matplotlib
from peers import BASELINE, OURS
from workloads import WORKLOADS

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

OURS_COLOUR, BASELINE_COLOUR, PEER_COLOUR = "#1b7f5c", "#444444", "#9aa7b5"


def panel(axes, rows, title):
    rows = sorted(rows, key=lambda row: row["ratio"]["median"])
    ratios = [row["ratio"]["median"] for row in rows]
    below = [row["ratio"]["median"] - row["ratio"]["smallest"] for row in rows]
    above = [row["ratio"]["largest"] - row["ratio"]["median"] for row in rows]
    colours = [{OURS: OURS_COLOUR, BASELINE: BASELINE_COLOUR}.get(row["peer"], PEER_COLOUR) for row in rows]
    axes.barh([row["peer"] for row in rows], ratios, xerr=(below, above), color=colours, error_kw={"elinewidth": 0.8})
    ends = [row["ratio"]["largest"] for row in rows]
    for at, (ratio, end) in enumerate(zip(ratios, ends, strict=True)):
        axes.text(end + max(ends) * 0.01, at, f"{ratio:.2f}", va="center", fontsize=7)
    axes.axvline(1, color=BASELINE_COLOUR, linewidth=0.8, linestyle=":")
    axes.set_title(title, fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def main():
    results, plot = map(pathlib.Path, sys.argv[1:])
    measured = json.loads(results.read_text())
    rows = [row for row in measured["rows"] if "ratio" in row]
    names = list(dict.fromkeys(row["workload"] for row in rows))
    counts = [sum(row["workload"] == name for row in rows) for name in names]
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "loaders"})
    figure, panels = pyplot.subplots(len(names), 1, figsize=(8, 0.6 * len(names) + 0.24 * sum(counts)), squeeze=False, height_ratios=counts)
    for axes, name in zip(panels[:, 0], names, strict=True):
        panel(axes, [row for row in rows if row["workload"] == name], WORKLOADS[name].title)
    figure.supxlabel(f"work for the same CPU time, torch = 1 (median and range of rounds, {measured['date']})", fontsize=8)
    figure.tight_layout()
    figure.savefig(plot, metadata={"Date": None})


if __name__ == "__main__":
    main()
