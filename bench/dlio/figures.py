"""What DLIO writes about a run, and what the runs say of each loader: medians, and ratios to DLIO's own loader in the same round."""

import json

import report
from summary import middle

OWN, OURS, ATTACHED = LOADERS = ("DLIO's own", "Sluice", "DLIO's own, `sluice run`")
LEAST_RATIO = 0.97
MEASURES = ["au_percent", "samples_per_second", "cpu_seconds"]
COLUMNS = ["loader", "AU, %", "samples/s", "times DLIO's own [range]", "CPU-seconds", "less CPU", "samples"]


class NotAsAsked(Exception):
    """Its text says what of a run is not what it should be."""


def of_run(output, workload):
    """Figures that DLIO has written into the folder `output`. Raises NotAsAsked if it has not made every step of every epoch."""
    metric = json.loads((output / "summary.json").read_text())["metric"]
    epochs = json.loads((output / "0_output.json").read_text())
    steps = [sum(map(len, epochs[str(epoch)]["proc"].values())) for epoch in range(1, workload.epochs + 1) if str(epoch) in epochs]
    if steps != [workload.steps] * workload.epochs:
        raise NotAsAsked(f"{steps} steps instead of {workload.steps} in each of {workload.epochs} epochs")
    return {"au_percent": metric["train_au_mean_percentage"], "samples_per_second": metric["train_throughput_mean_samples_per_second"],
            "samples": sum(steps) * workload.batch_size}  # fmt: skip


def recorded(output):
    """The samples that each worker has read, in its order."""
    return {file.name: [int(line) for line in file.read_text().split()] for file in sorted(output.glob("samples-*"))}


def check_samples(own, ours, workload):
    """Raises NotAsAsked unless each worker has read the same samples in the same order with either loader, and all of them each sample once an epoch.
    Each has every epoch's batches in turn, so this is the order of the batches, too."""
    if own != ours:
        worker = next(name for name in sorted({*own, *ours}) if own.get(name) != ours.get(name))
        raise NotAsAsked(f"{worker} are {ours.get(worker, [])[:8]} instead of {own.get(worker, [])[:8]}")
    read = sorted(sample for samples in ours.values() for sample in samples)
    if read != sorted([*range(workload.steps * workload.batch_size)] * workload.epochs):
        raise NotAsAsked(f"{len(read)} samples instead of each of {workload.steps * workload.batch_size} in each of {workload.epochs} epochs")


def check_served(log):
    """Raises NotAsAsked unless Sluice says at the end of `log` that it has made the batches."""
    said = [line for line in log.splitlines() if line.startswith("sluice: DataLoader of")]
    left = [line for line in said if ": served " not in line]
    if left or not said:
        raise NotAsAsked(left[0] if left else "Sluice says nothing of a loader")


def summarised(runs):
    """Rows by workload and loader. `runs`: (round, workload, loader, figures)."""
    found = {}
    for number, workload, loader, figures in runs:
        found.setdefault((workload, loader), {})[number] = figures
    return [row_of(workload, loader, rounds, found[workload, OWN]) for (workload, loader), rounds in sorted(found.items(), key=order)]


def order(item):
    (workload, loader), _ = item
    return workload, LOADERS.index(loader)


def row_of(workload, loader, rounds, own):
    """Both sides met the same load within one round."""
    row = {"workload": workload, "loader": loader, "rounds": len(rounds), "samples": next(iter(rounds.values()))["samples"]}
    row |= {measure: middle([figures[measure] for figures in rounds.values()]) for measure in MEASURES}
    beside = [number for number in rounds if number in own]
    row["faster"] = middle([rounds[number]["samples_per_second"] / own[number]["samples_per_second"] for number in beside])
    row["less_cpu"] = middle([own[number]["cpu_seconds"] / rounds[number]["cpu_seconds"] for number in beside])
    return row


def behind(rows):
    """Those that are slower than DLIO's own loader."""
    return [row for row in rows if row["faster"]["median"] < LEAST_RATIO]


def markdown(rows, titles):
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        lines += [f"**{workload}**: {titles[workload]}", "", report.line(COLUMNS), report.line(["---"] * len(COLUMNS))]
        lines += [report.line(cells(row)) for row in rows if row["workload"] == workload]
        lines.append("")
    return "\n".join(lines)


def cells(row):
    faster = row["faster"]
    return [
        row["loader"],
        f"{row['au_percent']['median']:.1f}",
        f"{row['samples_per_second']['median']:,.0f}",
        f"{faster['median']:.2f} [{faster['smallest']:.2f}-{faster['largest']:.2f}]",
        f"{row['cpu_seconds']['median']:.1f}",
        f"{row['less_cpu']['median']:.2f}",
        f"{row['samples']:,}",
    ]
