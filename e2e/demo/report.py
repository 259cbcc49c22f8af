"""The report of a run: pure functions from what was recorded to figures, checks and text.

Accelerator utilisation has four names here, because each is right for somebody:
  in the loop  compute / (compute + data wait) of the training loop without its first wait (MLPerf Storage's AU)
  second half  the same over the second half of a job's samples: the pace once its workers have come
  allocated    compute / time for which the job held its accelerator: what the job's owner pays for, start-up included
  wall         compute / time of the whole phase: what the cluster's owner sees
"""

import json


def job_figures(record, makespan):
    """Figures of one job in one phase (watch.JobRecord)."""
    result = record.result
    held = record.finished - record.pod_started
    return {
        "completion_seconds": round(record.finished - record.applied, 1),
        "in_loop_percent": result["utilisation_percent"],
        "second_half_percent": result["second_half_percent"],
        "allocated_percent": round(100 * result["compute_seconds"] / held, 1),
        "wall_percent": round(100 * result["compute_seconds"] / makespan, 1),
        "samples": result["samples"],
        "samples_per_second": result["samples_per_second"],
        "compute_seconds": result["compute_seconds"],
        "wait_seconds": result["wait_seconds"],
        "held_seconds": round(held, 1),
        "first_remote_batch_seconds": None if record.first_remote is None else round(record.first_remote - record.applied, 1),
        "most_workers_desired": record.most_desired,
        "most_workers_ready": record.most_ready,
        "decisions": record.decisions,
        "complete": result["complete"],
        "digests": [epoch["digest"] for epoch in result["epochs"]],
        "accelerator": result["accelerator"],
        "loader": result["loader"],
    }


def phase_figures(phase, watcher):
    """Figures of one phase, per job and for the cluster (every job has one accelerator)."""
    records = watcher.jobs.values()
    makespan = max(record.finished for record in records) - watcher.started
    jobs = {record.name: job_figures(record, makespan) for record in records}
    compute = sum(job["compute_seconds"] for job in jobs.values())
    looped = compute + sum(job["wait_seconds"] for job in jobs.values())
    return {
        "key": phase.key,
        "title": phase.title,
        "jobs": jobs,
        "cluster": {
            "in_loop_percent": round(100 * compute / looped, 1),
            "allocated_percent": round(100 * compute / sum(job["held_seconds"] for job in jobs.values()), 1),
            "wall_percent": round(100 * compute / (len(jobs) * makespan), 1),
            "completion_seconds": round(makespan, 1),
            "mean_completion_seconds": round(sum(job["completion_seconds"] for job in jobs.values()) / len(jobs), 1),
        },
        "cpu": {
            "allocatable_cores": round(watcher.cpu.allocatable, 3),
            "most_requested_cores": round(watcher.cpu.most_requested, 3),
            "most_for_workers_cores": round(watcher.cpu.most_for_workers, 3),
            "looks": watcher.cpu.looks,
        },
    }


def checks(phases):
    """(what must hold, whether it did) over all phases of a run."""
    by_key = {phase["key"]: phase for phase in phases}
    found = []
    for phase in phases:
        incomplete = [name for name, job in phase["jobs"].items() if not job["complete"]]
        found.append((f"({phase['key']}) every sample of every epoch was seen exactly once", not incomplete))
        cpu = phase["cpu"]
        found.append((f"({phase['key']}) CPU requested never exceeded what the nodes have: "
                      f"{cpu['most_requested_cores']:.2f} of {cpu['allocatable_cores']:.2f} cores",
                      cpu["most_requested_cores"] <= cpu["allocatable_cores"] + 1e-6))  # fmt: skip
    for key in ("b", "c"):
        if key in by_key:
            jobs = by_key[key]["jobs"]
            if "text" in jobs:
                found.append((f"({key}) text, which is not data-bound, was given no remote worker", jobs["text"]["most_workers_desired"] == 0))
            if "vision" in jobs:
                found.append((f"({key}) vision, which is starved, was given remote workers", jobs["vision"]["most_workers_ready"] > 0))
    if "b" in by_key and "c" in by_key:
        same = all(by_key["b"]["jobs"][name]["digests"] == job["digests"] for name, job in by_key["c"]["jobs"].items())
        found.append(("batches of (b) and (c) are equal: lowering and scaling are invisible", same))
    return found


def figure(value):
    return "-" if value is None else f"{value:.1f}"


def ratio(value, base):
    return f"{value / base:.2f}x" if base and value is not None else "-"


def text(run):
    """The report for people. `run` is what goes to report.json."""
    lines = ["", "Sluice demo", f"  {run['date']}   {run['machine']}", f"  {run['versions']}", ""]
    lines += [f"  ({phase['key']}) {phase['title']}" for phase in run["phases"]]
    accelerators = {job["accelerator"] for job in run["phases"][0]["jobs"].values()}
    lines += ["", "  accelerators:"] + [f"    {name}" for name in sorted(accelerators)] + [""]
    lines += utilisation_table(run["phases"]) + [""] + completion_table(run["phases"]) + [""] + scaling_lines(run["phases"]) + [""]
    lines += [f"  {'ok   ' if holds else 'FAILS'} {what}" for what, holds in run["checks"]]
    return "\n".join(lines)


UTILISATIONS = {"in_loop_percent": "in the loop", "second_half_percent": "second half", "allocated_percent": "allocated",
                "wall_percent": "wall"}  # fmt: skip


def utilisation_table(phases):
    first = phases[0]
    head = "  accelerator utilisation %  " + "".join(f"{'(' + phase['key'] + ')':>8}" for phase in phases)
    lines = [head + "".join(f"{phase['key'] + '/' + first['key']:>8}" for phase in phases[1:])]
    for kind, label in UTILISATIONS.items():
        # Halves are of a job; the cluster has none.
        for name in [*first["jobs"], *(["cluster"] if kind in first["cluster"] else [])]:
            values = [phase["cluster"][kind] if name == "cluster" else phase["jobs"][name][kind] for phase in phases]
            lines.append(f"    {label:12} {name:10}  " + "".join(f"{figure(value):>8}" for value in values)
                         + "".join(f"{ratio(value, values[0]):>8}" for value in values[1:]))  # fmt: skip
    return lines


def completion_table(phases):
    first = phases[0]
    lines = ["  completion, seconds        " + "".join(f"{'(' + phase['key'] + ')':>8}" for phase in phases)
             + "".join(f"{first['key'] + '/' + phase['key']:>8}" for phase in phases[1:])]  # fmt: skip
    rows = [(name, [phase["jobs"][name]["completion_seconds"] for phase in phases]) for name in first["jobs"]]
    rows.append(("mean", [phase["cluster"]["mean_completion_seconds"] for phase in phases]))
    rows.append(("all ended", [phase["cluster"]["completion_seconds"] for phase in phases]))
    for name, values in rows:
        lines.append(f"    {name:23}  " + "".join(f"{value:8.1f}" for value in values)
                     + "".join(f"{ratio(values[0], value):>8}" for value in values[1:]))  # fmt: skip
    return lines


def scaling_lines(phases):
    lines = []
    for phase in phases:
        cpu = phase["cpu"]
        lines.append(f"  ({phase['key']}) CPU requested at most {cpu['most_requested_cores']:.2f} of {cpu['allocatable_cores']:.2f} cores, "
                     f"{cpu['most_for_workers_cores']:.2f} of it by data workers")  # fmt: skip
        for name, job in phase["jobs"].items():
            first = job["first_remote_batch_seconds"]
            if job["most_workers_desired"] or phase["key"] != "a":
                lines.append(f"      {name:8} at most {job['most_workers_ready']} workers; "
                             + (f"first remote batch {first:.1f} s after kubectl apply" if first is not None else "no remote batch"))  # fmt: skip
    return lines


def write(run, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(run, indent=1) + "\n")
    (folder / "report.txt").write_text(text(run) + "\n")
