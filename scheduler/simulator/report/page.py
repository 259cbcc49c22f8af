#!/usr/bin/env python3
"""page.py RESULTS.json PAGE.html: one self-contained page of what `sluice-sim run --json RESULTS.json --time-lines` wrote.

The page has the tables of the text report, and for each policy the GPUs, the CPU and the largest jobs of seed 1 over time. It has
no scripts and loads nothing. $SLUICE_CACHE/venv/bin/python runs it: Jinja2 comes with PyTorch.
"""

import json
import pathlib
import sys

import jinja2
import numpy

TEMPLATE = pathlib.Path(__file__).with_name("page.html.jinja")
BUCKETS, JOB_BUCKETS, MOST_JOBS = 240, 160, 40
LEFT, WIDTH, HEIGHT, ROW = 60, 900, 130, 14  # of a chart; LEFT is for labels, ROW the height of a job

POLICIES = {
    "static": "each job has the CPU of its hosts in proportion to its GPUs",
    "fixed-workers": "four loader processes for each GPU, whatever the job needs",
    "burst": "static, and the idle CPU of the job's hosts",
    "knee-proportional": "every job gets its measured need, all cut by one factor where CPU lacks",
    "hpa": "Kubernetes' autoscaler at 80 % CPU; data workers on nodes without GPUs",
    "hpa-everywhere": "the same, data workers also on GPU hosts",
    "keda": "data workers by the backlog of the queue, on nodes without GPUs",
    "keda-everywhere": "the same, also on GPU hosts",
    "cachew": "each job adds workers of 7 cores one by one while that makes it faster",
    "cachew-2": "the same with workers of 2 cores",
    "cachew-1": "the same with workers of 1 core",
    "pecan": "each job moves its work between its hosts and remote workers step by step",
    "fastflow": "each job is profiled at its start and keeps the workers found then",
    "synergy": "the CPU of a GPU host is divided by profiles; no data workers",
    "tfdata": "each job's workers follow the formula of the tf.data service",
    "sluice": "Sluice: one decision for all jobs together",
    "perfect": "a limit: Sluice with all information at once, and workers that start in no time",
    "no-stall": "a limit: no job ever waits for data",
    "true-rates": "Sluice, where the executors' reports are true",
    "little-noise": "Sluice, where metrics have little noise",
    "unannounced": "Sluice, where no trainer says how long it will train",
    "no-feedback": "Sluice, without learning from the effect of its decisions",
}


def means(job, values, seconds, count):
    """The time integral of one number per step, in each of `count` equal buckets of `seconds`, as a mean over the bucket."""
    times = [step[0] for step in job["steps"]] + [job["finish_seconds"]]
    integral = numpy.concatenate([[0], numpy.cumsum(numpy.array(values) * numpy.diff(times))])
    return numpy.diff(numpy.interp(numpy.linspace(0, seconds, count + 1), times, integral)) / (seconds / count)


def columns(job, seconds, count):
    """Share of the bucket in which the job runs, and its speed, local, remote and wanted cores as means over the bucket."""
    steps = [(1, *step[1:]) if len(step) > 1 else (0, 0, 0, 0, 0) for step in job["steps"]]  # a waiting job has only a time
    return [means(job, values, seconds, count) for values in zip(*steps)]


def cluster_lines(jobs, seconds):
    """GPUs allocated and busy, local and all cores of the cluster, by bucket."""
    allocated, busy, local, both = (numpy.zeros(BUCKETS) for _ in range(4))
    for job in jobs:
        running, speed, own, remote, _ = columns(job, seconds, BUCKETS)
        allocated += job["gpus"] * running
        busy += job["gpus"] * speed
        local += own
        both += own + remote
    return {"allocated": allocated, "busy": busy, "local": local, "both": both}


def area(values, top):
    """The path of a filled line over time, down to the axis."""
    step = (WIDTH - LEFT) / len(values)
    ends = "".join(f"V{HEIGHT * (1 - min(1, value / top)):.1f}H{LEFT + step * (i + 1):.1f}" for i, value in enumerate(values))
    return f"M{LEFT} {HEIGHT}{ends}V{HEIGHT}Z"


def ticks(seconds):
    """Places and texts under the axis: at most eleven, in the unit that gives small whole numbers."""
    unit, length = next((name, seconds / size) for name, size, most in (("s", 1, 180), ("min", 60, 10800), ("h", 3600, float("inf")))
                        if seconds < most)  # fmt: skip
    step = next(s for s in (base * 10**n for n in range(12) for base in (1, 2, 5)) if length / s <= 10)
    return [(LEFT + (WIDTH - LEFT) * i * step / length, f"{i * step} {unit}") for i in range(int(length / step) + 1)]


def strips(jobs, seconds):
    """The largest jobs, each with a rectangle for every bucket in which it runs."""
    largest = sorted(range(len(jobs)), key=lambda i: -jobs[i]["gpu_seconds"])[:MOST_JOBS]
    step = (WIDTH - LEFT) / JOB_BUCKETS
    for row, job in enumerate(jobs[i] for i in sorted(largest)):
        bottom = ROW * (row + 1) - 2
        bars = []
        for i, (running, *sums) in enumerate(zip(*columns(job, seconds, JOB_BUCKETS))):
            if running <= 1e-9:
                continue
            speed, local, remote, wanted = (value / running for value in sums)
            part = (local + remote) / wanted if wanted > 0 else 1
            height = (ROW - 3) * min(1, max(0.15, part))
            text = f"{100 * speed:.0f} % of full speed with {local:.1f} local and {remote:.1f} remote cores of {wanted:.1f} wanted"
            bars.append({"x": LEFT + step * i, "y": bottom - height, "width": step + 0.2, "height": height,
                         "hue": 120 * min(1, max(0, speed)), "text": text})  # fmt: skip
        yield {"name": job["name"], "gpus": job["gpus"], "bottom": bottom, "bars": bars}


def page(results):
    """The page as text, for the JSON of a run."""
    lines = [entry for entry in results["policies"] if "time_line" in entry]
    # All time lines have the same scale, so that they can be compared by eye.
    seconds = max((job["finish_seconds"] for entry in lines for job in entry["time_line"]["jobs"]), default=1)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(TEMPLATE.read_text()).render(
        results=results, lines=lines, seconds=seconds, policies=POLICIES, cluster_lines=cluster_lines, strips=strips, area=area,
        ticks=ticks(seconds), size={"left": LEFT, "width": WIDTH, "height": HEIGHT, "row": ROW})  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(page(json.loads(pathlib.Path(sys.argv[1]).read_text())))
