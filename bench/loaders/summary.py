"""What the rounds say of each peer: medians, and ratios to the baseline of the same round."""

import statistics

from peers import BASELINE, OURS

MEASURES = ["cpu_seconds_per_1000", "samples_per_second", "first_batch_seconds", "pss_mib"]


def middle(values):
    """Median, smallest and largest."""
    return {"median": statistics.median(values), "smallest": min(values), "largest": max(values)}


def summarised(runs, unavailable):
    """Rows by workload and peer, the cheapest first and those without figures last. `runs`: (round, workload, peer, figures). `unavailable`: reasons by
    workload and peer."""
    found = {}
    for number, workload, peer, figures in runs:
        found.setdefault((workload, peer), {})[number] = figures
    rows = [row_of(workload, peer, rounds, found.get((workload, BASELINE), {})) for (workload, peer), rounds in found.items()]
    rows += [{"workload": workload, "peer": peer, "failed": reason} for (workload, peer), reason in unavailable.items()]
    order = list(dict.fromkeys(row["workload"] for row in rows))
    return sorted(rows, key=lambda row: (order.index(row["workload"]), -row.get("ratio", {"median": 0})["median"]))


def row_of(workload, peer, rounds, baseline):
    good = {number: figures for number, figures in rounds.items() if "failed" not in figures}
    row = {"workload": workload, "peer": peer, "rounds": len(good)}
    failures = [figures["failed"] for figures in rounds.values() if "failed" in figures]
    if failures:
        row["failed"] = failures[0]
    if not good:
        return row
    newest = good[max(good)]
    row |= {"version": newest["version"], "output": newest["output"]}
    row |= {measure: middle([figures[measure] for figures in good.values()]) for measure in MEASURES}
    beside = {number: baseline[number] for number in good if "failed" not in baseline.get(number, {"failed": ""})}
    if beside:
        # Both sides met the same load within one round.
        row["ratio"] = middle([beside[number]["cpu_seconds_per_1000"] / good[number]["cpu_seconds_per_1000"] for number in beside])
        row["bytes_of_baseline"] = all(good[number]["checksum"] == beside[number]["checksum"] for number in beside)
    return row


def behind(rows, workload):
    """Peers that do the workload with less CPU than Sluice."""
    cost = {row["peer"]: row["cpu_seconds_per_1000"]["median"] for row in rows if row["workload"] == workload and "cpu_seconds_per_1000" in row}
    return [peer for peer, seconds in cost.items() if OURS in cost and seconds < cost[OURS]]
