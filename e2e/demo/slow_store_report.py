"""Figures, checks and text of the fifth situation (slow_store.py): pure functions from what was recorded."""

LATER_EPOCHS_MOST = 0.1   # of what epochs behind the first read without a cache, where all fits
FEWER_READS_MOST = 0.7    # of the reads without a cache, with room for .4 of the photographs
WITHOUT_LEAST = 0.9       # of the data set that each epoch reads without a cache


def job_figures(record, address, events, reads):
    """Of one job (watch.JobRecord), whose pod had that address, from what its trainer has told and from all reads of the store."""
    start = next(event["time"] for event in events if event["event"] == "start")
    ends = [event["time"] for event in events if event["event"] == "epoch"]
    result = record.result

    def between(begin, end):
        return round(sum(nbytes for time, reader, nbytes in reads if reader == address and begin <= time < end) / 1e6, 1)

    return {
        "started": start,
        "ended": ends[-1],
        "completion_seconds": round(record.finished - record.applied, 1),
        "in_loop_percent": result["utilisation_percent"],
        "samples_per_second": result["samples_per_second"],
        "megabytes_for_index": between(0, start),
        # What is read ahead for the next epoch counts for the one in which it was read.
        "megabytes_by_epoch": [between(*epoch) for epoch in zip([start, *ends], ends)],
        "complete": result["complete"],
        "digests": [epoch["digest"] for epoch in result["epochs"]],
        "bottlenecks": record.bottlenecks,
    }


def run_figures(name, jobs, cpu):
    seconds = max(job.pop("ended") for job in jobs.values()) - min(job.pop("started") for job in jobs.values())
    return {"name": name, "first_start_to_last_end_seconds": round(seconds, 1), "jobs": jobs,
            "cpu": {"allocatable_cores": round(cpu.allocatable, 3), "most_requested_cores": round(cpu.most_requested, 3)}}  # fmt: skip


def by_epoch(run):
    """Megabytes that both jobs have read in their first epoch, their second, ..."""
    return [round(sum(epochs), 1) for epochs in zip(*(job["megabytes_by_epoch"] for job in run["jobs"].values()))]


def megabytes(run):
    return sum(by_epoch(run))


def checks(figures):
    """(what must hold, whether it did); `figures` of slow_store.run() may be None."""
    if figures is None:
        return []
    without, full, part = runs = figures["runs"]
    jobs = [job for run in runs for job in run["jobs"].values()]
    one_epoch = figures["megabytes"] * len(without["jobs"])
    later, later_without = (sum(by_epoch(run)[1:]) for run in (full, without))
    most = max(run["cpu"]["most_requested_cores"] for run in runs)
    named = all("DataBoundStorage" in job["bottlenecks"] for job in without["jobs"].values())
    orders = {tuple(job["digests"]) for job in jobs}
    return [
        ("(e) every sample of every epoch was seen exactly once", all(job["complete"] for job in jobs)),
        ("(e) batches and their order are the same without a cache, with room for all and with room for a part; each job has its own order",
         all(len({tuple(run["jobs"][name]["digests"]) for run in runs}) == 1 for name in without["jobs"]) and len(orders) == len(without["jobs"])),
        (f"(e) without a cache both jobs read {megabytes(without):.0f} MB from the store, at least {WITHOUT_LEAST:g} of {figures['epochs']} times the data set for each",
         megabytes(without) >= WITHOUT_LEAST * figures["epochs"] * one_epoch),
        (f"(e) with room for all, the epochs behind the first read {later:.1f} MB from the store, at most {LATER_EPOCHS_MOST:g} of the {later_without:.1f} MB without a cache",
         later <= LATER_EPOCHS_MOST * later_without),
        (f"(e) with {part['name']} both jobs read {megabytes(part) / megabytes(without):.2f} of what they read without a cache, at most {FEWER_READS_MOST:g}",
         megabytes(part) <= FEWER_READS_MOST * megabytes(without)),
        (f"(e) from the first start to the last end it took {full['first_start_to_last_end_seconds']:.1f} s with room for all, and without a cache, "
         f"{without['first_start_to_last_end_seconds']:.1f} s, longer",
         full["first_start_to_last_end_seconds"] < without["first_start_to_last_end_seconds"]),
        ("(e) without a cache the operator named the storage as what both jobs wait for (DataBoundStorage)"
         + ("" if named else ", but said " + "; ".join(" and ".join(job["bottlenecks"]) or "nothing" for job in without["jobs"].values())), named),
        (f"(e) CPU requested never exceeded what the nodes have: {most:.2f} of {without['cpu']['allocatable_cores']:.2f} cores",
         most <= without["cpu"]["allocatable_cores"] + 1e-6),
    ]  # fmt: skip


def lines(figures):
    if figures is None:
        return []
    found = [f"  (e) {figures['title']}: {figures['photographs']} photographs, {figures['megabytes']:.1f} MB; 20 MB/s, 50 ms",
             f"      {'':14} {'seconds':>8} {'utilisation %':>14}  MB that both jobs read, by epoch"]  # fmt: skip
    for run in figures["runs"]:
        busy = " and ".join(f"{job['in_loop_percent']:.1f}" for job in run["jobs"].values())
        found.append(f"      {run['name']:14} {run['first_start_to_last_end_seconds']:8.1f} {busy:>14}  " + "  ".join(f"{value:.1f}" for value in by_epoch(run)))
    for name, job in figures["runs"][0]["jobs"].items():
        named = ", ".join(f"{bottleneck} after {seconds:.0f} s" for bottleneck, seconds in job["bottlenecks"].items())
        found.append(f"      without a cache the operator called {name} {named or 'nothing'}")
    return [*found, ""]
