#!/usr/bin/env python3
"""epoch_cost.py BUILD [RESULTS]: what an epoch of ImageNet costs in money, by the rule that places its preprocessing and the order that makes its samples.

The CPU of a sample is that of bench/results/order.json (`make bench-order`). The rest is Pecan's set-up (USENIX ATC'24, section 6), simulated by sluice-sim: a TPU v2-8 whose
host has 96 cores, workers of 7 cores, and their prices. The host's cores are part of the TPU's price, so preprocessing costs what data workers cost. As in Pecan, an epoch is
one at the end, when the number of workers is found. A rule's figures are means of a few trainings one after the other, as measurements have noise.
"""

import dataclasses
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/loaders"))
import machine  # noqa: E402

TPU_DOLLARS_PER_HOUR = 4.96
WORKER_DOLLARS_PER_HOUR, WORKER_CORES = 0.427319, 7  # what n2-standard-8 leaves to a worker
HOST_CORES = 96
EPOCH_IMAGES = 1_281_167
IMAGES_PER_SECOND = {"pecan-simclr: crop, flip, jitter, grey": 1560}  # of the trainer: SimCLR, and ResNet-50 for all others
RESNET_IMAGES_PER_SECOND, BATCH = 3230, 1024
EPOCHS, TRAININGS = 10, 3

# What the host's cores supply together. The first is the simulator's curve of a TPU host, by which 96 cores supply 15. Ten local workers of Pecan supplied 1912 images/s
# and a remote one 157, so its host supplied 66: the second.
NARROW_HOST = {"local_exponent": 0.8, "local_flatter_above_cores": 4, "local_flatter_exponent": 0.5}
PECANS_HOST = {"local_exponent": 0.917}

# CPU-seconds of a local core per 1,000 samples of Pecan's ResNet, in the user's order and in its own: a remote worker made 157 and 322 images/s, and a remote core is worth 0.77.
PUBLISHED = [{"pipeline": "Pecan's ResNet-50", "user": 0.77 * WORKER_CORES / 157 * 1000, "pecan": 0.77 * WORKER_CORES / 322 * 1000}]


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    policy: str  # of sluice-sim
    order: str  # of the measured figures


@dataclasses.dataclass(frozen=True)
class Table:
    """Pipelines whose samples are made by one means. Python makes no sample in another order than the user's by itself."""

    host: dict
    rules: tuple[Rule, ...]


def placements(order, pecans_order):
    """Of samples in the user's order, beside Pecan with its own."""
    return (
        Rule("Cachew", "cachew", order),
        Rule("Pecan", "pecan", pecans_order),
        Rule("Pecan's placement", "pecan", order),
        Rule("Sluice's placement", "sluice-cost", order),
        Rule("balanced placement", "sluice", order),
    )


TABLES = {
    "native": Table(NARROW_HOST, (
        Rule("Cachew", "cachew", "program"),
        Rule("Pecan", "pecan", "pecan"),
        Rule("Sluice, exact", "sluice-cost", "exact"),
        Rule("Sluice, relaxed", "sluice-cost", "relaxed"),
        Rule("balanced, exact", "sluice", "exact"),
    )),
    "torchvision": Table(NARROW_HOST, (*placements("torchvision", "torchvision_pecan"), Rule("Sluice, exact", "sluice-cost", "exact"))),
    "published": Table(PECANS_HOST, (*placements("user", "pecan"), Rule("Sluice, that order", "sluice-cost", "pecan"))),
}  # fmt: skip


def scenario(images_per_second, cpu_seconds_per_1000, remote_only, host=NARROW_HOST):
    """The same training several times, far enough apart to meet nothing of the one before."""
    knee = images_per_second * cpu_seconds_per_1000 / 1000
    seconds = EPOCHS * EPOCH_IMAGES / images_per_second
    job = {"gpus": 1, "ideal_seconds": seconds, "knee_cores_per_gpu": knee}
    if remote_only:
        job["local_cores"] = max(0.01, knee / 500)  # next to nothing, as no trainer may stand still for ever under any policy
    return {
        "name": "epoch-cost",
        "cluster": {
            "nodes": [{"name": "tpu", "gpus": 1, "cores": HOST_CORES}, {"name": "worker", "count": 40, "cores": WORKER_CORES}],
            "physics": {
                "gpu_price_per_hour": TPU_DOLLARS_PER_HOUR,
                "core_price_per_hour": WORKER_DOLLARS_PER_HOUR / WORKER_CORES,
                "gpu_price_includes_host": True,
                "batches_per_second_per_gpu": images_per_second / BATCH,
                **host,
            },
        },
        "jobs": [{**job, "arrival_seconds": 3 * i * seconds} for i in range(TRAININGS)],
    }


def simulated(build, policy, described):
    """The policy's entry in the report of sluice-sim, with the time lines of its jobs."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder, "scenario.yaml"), pathlib.Path(folder, "report.json")
        given.write_text(json.dumps(described))
        subprocess.run([pathlib.Path(build, "scheduler/simulator/sluice-sim"), "run", given, "--policy", policy, "--seeds", "1", "--json", made, "--time-lines",
                        "--catalogue", ROOT / "scheduler/simulator/catalogue"], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        report = json.loads(made.read_text())
    return next(each for each in report["policies"] if each["policy"] == policy)


def part_of(job, first, last):
    """Seconds, and core-seconds of data workers, in which the job goes from one moment of its training to another. Moments are seconds at full speed."""
    steps = job["steps"]
    seconds = cores = done = 0.0
    for (at, speed, _, remote, _), end in zip(steps, [step[0] for step in steps[1:]] + [job["finish_seconds"]], strict=True):
        here = max(0.0, min(last, done + speed * (end - at)) - max(first, done))
        if here > 0:
            seconds, cores = seconds + here / speed, cores + here / speed * remote
        done += speed * (end - at)
    return seconds, cores


def dollars(seconds, core_seconds):
    """Of the accelerator with its host, and of data workers."""
    return seconds / 3600 * TPU_DOLLARS_PER_HOUR, core_seconds / 3600 * WORKER_DOLLARS_PER_HOUR / WORKER_CORES


def costs(build, pipeline, policy, cpu_seconds_per_1000, host):
    images_per_second = IMAGES_PER_SECOND.get(pipeline, RESNET_IMAGES_PER_SECOND)
    epoch = EPOCH_IMAGES / images_per_second
    described = scenario(images_per_second, cpu_seconds_per_1000, policy == "cachew", host)
    jobs = simulated(build, policy, described)["time_line"]["jobs"]
    last = [dollars(*part_of(job, (EPOCHS - 1) * epoch, EPOCHS * epoch)) for job in jobs]
    whole = [sum(dollars(*part_of(job, 0, EPOCHS * epoch))) / EPOCHS for job in jobs]
    trainer, preprocessing = (round(statistics.mean(each), 4) for each in zip(*last, strict=True))
    return {"trainer": trainer, "preprocessing": preprocessing, "mean_of_all_epochs": round(statistics.mean(whole), 4)}


def cell(cost, before):
    """Trainer + preprocessing, and the change of the total and of preprocessing."""
    total, total_before = (each["trainer"] + each["preprocessing"] for each in (cost, before))
    text = f"{cost['trainer']:.3f} + {cost['preprocessing']:.3f}"
    if cost is before:
        return text
    return text + f" ({100 * (total / total_before - 1):.0f} %, {100 * (cost['preprocessing'] / before['preprocessing'] - 1):.0f} %)"


def made(build, name, measured):
    table = TABLES[name]
    print(f"\n| {name} | " + " | ".join(rule.name for rule in table.rules) + " |\n|" + " --- |" * (1 + len(table.rules)))
    rows = []
    for each in measured:
        row = {rule.name: costs(build, each["pipeline"], rule.policy, each[rule.order], table.host) for rule in table.rules}
        print(f"| {each['pipeline']} | " + " | ".join(cell(cost, row["Cachew"]) for cost in row.values()) + " |", flush=True)
        rows.append({"pipeline": each["pipeline"], **row})
    return rows


def main(build, results=None):
    order = json.loads((ROOT / "bench/results/order.json").read_text())
    print("Dollars an epoch: trainer + preprocessing (change of the total and of preprocessing against Cachew's rule)")
    found = {name: made(build, name, PUBLISHED if name == "published" else order["rows"]) for name in TABLES}
    if results:
        described = {"date": datetime.date.today().isoformat(), "machine": machine.described(), "cpu_of_samples": {key: order[key] for key in ("date", "machine", "versions")},
                     "unit": "dollars for an epoch of ImageNet"}  # fmt: skip
        pathlib.Path(results).write_text(json.dumps({**described, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
