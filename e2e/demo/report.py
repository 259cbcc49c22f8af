"""The report of a run: pure functions from what was recorded to figures, checks and text.

Accelerator utilisation has four names here, because each answers another question:
  in the loop  compute / (compute + data wait) of the training loop without its first wait (MLPerf Storage's AU)
  second half  the same over the second half of a job's samples: the pace once its workers have come
  allocated    compute / time for which the job held its accelerator: what the job's owner pays for, start-up included
  wall         compute / time of the whole phase: what the cluster's owner sees
"""

import json

import slow_store_report


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
                given = "".join(f"; at {at} s {before} to {after}: {reason}" for at, before, after, reason in jobs["text"]["decisions"] if after)
                found.append((f"({key}) text, which is not data-bound, was given no remote worker{given}", jobs["text"]["most_workers_desired"] == 0))
            if "vision" in jobs:
                found.append((f"({key}) vision, which is starved, was given remote workers", jobs["vision"]["most_workers_ready"] > 0))
    if "b" in by_key and "c" in by_key:
        same = all(by_key["b"]["jobs"][name]["digests"] == job["digests"] for name, job in by_key["c"]["jobs"].items())
        found.append(("batches of (b) and (c) are equal: lowering and scaling are invisible", same))
    return found


# Of the second trainer's steps, longer than alone. Two processors of one core, and hypervisors, make steps slower, whatever uses the other processor. So
# longer steps count only with as much more of their time in which they were ready to run and other processes had the cores.
MOST_SLOWER = MOST_WAITING = 0.02
# Both nodes and the control plane are this one machine. Beyond that even perfect neighbours meet on its few processors.
MOST_BUSY = 0.4
LEAST_SPEED = 0.97  # of vision on its host's own cores, by its utilisation with data workers


def own_cores_checks(figures, phases):
    """The same of own_cores.run(); `figures` may be None."""
    if figures is None:
        return []
    host, remote, neighbour = figures["on_host"], figures["with_workers"], figures["neighbour"]
    waiting, waiting_alone, busy = (neighbour[name] for name in ("waiting_share", "alone_waiting_share", "machine_busy_share"))
    is_judged = None not in (waiting, *waiting_alone) and busy <= MOST_BUSY
    slower = neighbour["seconds_per_step"] / max(neighbour["alone_seconds_per_step"]) - 1
    found = [
        (f"(d) free cores of the host come first: the feeder grew from {figures['feeder_cores_at_start']:.2f} "
         f"to {host['feeder_cores']:.2f} cores, and no data worker started",
         host["feeder_cores"] > figures["feeder_cores_at_start"] and host["most_workers_desired"] == 0),
        (f"(d) utilisation is the same: {host['utilisation_percent']:.1f} % on the host's own cores, {remote['utilisation_percent']:.1f} % with data workers",
         host["utilisation_percent"] >= LEAST_SPEED * remote["utilisation_percent"]),
        (f"(d) a second trainer had its cores back: the feeder shrank to {remote['feeder_cores']:.2f} cores, and data workers took over",
         remote["feeder_cores"] < host["feeder_cores"] and remote["most_workers_ready"] > 0),
        (f"(d) the second trainer's steps took {100 * slower:+.1f} % of their time alone, and waited for a core in {percents([waiting])} of it, "
         f"alone {percents(waiting_alone)}"
         + (f"; too much is {100 * MOST_SLOWER:.0f} points more of both" if is_judged else
            f". Not judged: the machine that is both nodes was busy for {percents([busy])}, at most {100 * MOST_BUSY:.0f} %"),
         not is_judged or slower <= MOST_SLOWER or waiting <= max(waiting_alone) + MOST_WAITING),
        ("(d) every sample of every epoch was seen exactly once", figures["complete"]),
        (f"(d) CPU requested never exceeded what the nodes have: {figures['cpu']['most_requested_cores']:.2f} of {figures['cpu']['allocatable_cores']:.2f} cores",
         figures["cpu"]["most_requested_cores"] <= figures["cpu"]["allocatable_cores"] + 1e-6),
    ]  # fmt: skip
    shipped = next((phase["jobs"]["vision"]["digests"] for phase in phases if phase["key"] == "c" and "vision" in phase["jobs"]), [])
    if len(shipped) > 1:  # of whole epochs: a part of one is other work
        found.append(("batches of (d) are those of (c), in the same order", figures["digests"][: len(shipped)] == shipped))
    return found


def own_cores_lines(figures):
    if figures is None:
        return []
    host, remote, neighbour = figures["on_host"], figures["with_workers"], figures["neighbour"]
    return [
        f"  (d) {figures['title']}",
        f"      vision on its host alone   utilisation {host['utilisation_percent']:5.1f} %, feeder {host['feeder_cores']:.2f} cores, "
        f"at most {host['most_workers_desired']} workers",
        f"      beside a second trainer    utilisation {remote['utilisation_percent']:5.1f} %, feeder {remote['feeder_cores']:.2f} cores, "
        f"at most {remote['most_workers_ready']} workers",
        f"      second trainer             seconds a step: alone {' and '.join(f'{seconds:.4f}' for seconds in neighbour['alone_seconds_per_step'])}, "
        f"beside vision {neighbour['seconds_per_step']:.4f}",
        f"                                 without a core {percents(neighbour['alone_waiting_share'])}, "
        f"beside vision {percents([neighbour['waiting_share']])} of that time",
        "",
    ]  # fmt: skip


def percents(shares):
    return " and ".join("an unknown part (this kernel does not tell)" if share is None else f"{100 * share:.1f} %" for share in shares)


def figure(value):
    return "-" if value is None else f"{value:.1f}"


def ratio(value, base):
    return f"{value / base:.2f}x" if base and value is not None else "-"


def text(run):
    """The report for people. `run` is what goes to report.json."""
    lines = ["", "Sluice demo", f"  {run['date']}   {run['machine']}", f"  {run['versions']}", ""]
    lines += phases_lines(run["phases"]) if run["phases"] else []  # only (d) or (e) was asked for
    lines += own_cores_lines(run.get("own_cores")) + slow_store_report.lines(run.get("slow_store"))
    lines += [f"  {'ok   ' if holds else 'FAILS'} {what}" for what, holds in run["checks"]]
    return "\n".join(lines)


def phases_lines(phases):
    accelerators = {job["accelerator"] for job in phases[0]["jobs"].values()}
    lines = [f"  ({phase['key']}) {phase['title']}" for phase in phases]
    lines += ["", "  accelerators:"] + [f"    {name}" for name in sorted(accelerators)] + [""]
    return lines + utilisation_table(phases) + [""] + completion_table(phases) + [""] + scaling_lines(phases) + [""]


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
