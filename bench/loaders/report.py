"""The table that a person reads, as Markdown."""

from workloads import WORKLOADS

COLUMNS = ["loader", "CPU-s per 1,000", "times torch [range]", "samples/s", "first batch", "PSS", "batches", "pixels"]


def cells(row, semantics):
    if "cpu_seconds_per_1000" not in row:
        return [row["peer"], row["failed"], *[""] * (len(COLUMNS) - 2)]
    ratio = row.get("ratio")
    pixels = "torch's bytes" if row.get("bytes_of_baseline") else semantics
    return [
        f"{row['peer']} {row['version']}",
        precise(row["cpu_seconds_per_1000"]["median"]),
        f"{ratio['median']:.2f} [{ratio['smallest']:.2f}-{ratio['largest']:.2f}]" if ratio else "",
        f"{row['samples_per_second']['median']:,.0f}",
        f"{row['first_batch_seconds']['median']:.1f} s",
        f"{row['pss_mib']['median']:,.0f} MiB",
        row["output"],
        "" if row["workload"] == "text" else pixels,
    ]


def precise(seconds):
    return f"{seconds:.2f}" if seconds >= 0.1 else f"{seconds:.4f}"


def line(values):
    return "| " + " | ".join(value.replace("|", "/") for value in values) + " |"


def markdown(rows, semantics):
    """A table for each workload. `semantics`: by peer."""
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        lines += [f"**{workload}**: {WORKLOADS[workload].title}", "", line(COLUMNS), line(["---"] * len(COLUMNS))]
        lines += [line(cells(row, semantics[row["peer"]])) for row in rows if row["workload"] == workload]
        lines.append("")
    return "\n".join(lines)
