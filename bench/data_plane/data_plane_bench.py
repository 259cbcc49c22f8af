#!/usr/bin/env python3
"""CPU-seconds per 1,000 images: the native pipeline alone, and Sluice's DataLoader as a whole, beside torch's.

usage: bench/data_plane/data_plane_bench.py BUILD FOLDER SPEECH [--images N] [--repetitions R] [--output FILE]

The pipeline runs on one thread and drops its samples; the loader is what a user has: client, feeder, shared
memory, batches in the training loop's hands. torch's loader runs PIL and torchvision in two worker processes.

The work is the usual training recipe: decode, RandomResizedCrop(224), horizontal flip, float32, normalise. An own
Dataset class says the same in a `__getitem__`. On Sluice's side its code is read and runs natively, and it runs in Python, lazily and eagerly: all must give
the same bytes. SPEECH holds spoken clips, read as FLAC files by a class that uses soundfile and torchaudio, natively on one side (speech_data.py). Tar shards hold the same files as the folder, and PNG and WebP files some of its photographs. Two more recipes are those of torchvision's own
training scripts and of SimCLR; CIFAR10 and MNIST have noise for pictures (memory_bench.py); cheap text is lines of bytes, beside torch's loader without workers and with them (training_data.py). A data worker
beside the feeder shows what gRPC costs on both ends together. Executors start at once, but for the text. Both sides
run over the same files in the same run, in turns, so that other load on the machine falls on both; each figure is the
smallest of its repetitions. A loader's figure is the CPU time of the whole process tree between two batches in the middle
of an epoch: start and end of the workers are not counted.
Prints a table and writes it as JSON. Most rows are beside a peer in the same run: torch's loader, or libjpeg-turbo's decoding of the whole
files on one thread. The ratio says how often Sluice does the work while the peer does it once. Some rows are other figures than CPU-seconds per 1,000 images, as
their names say: how two data workers serve beside one (worker_scaling.py), and what a GB of tensors costs on the way from a worker to the feeder
(link_costs.py) and into the training loop's hands (hand_over.py). Where there is no peer the median counts. Goals, the least ratio or the largest value: bench/data_plane/goals.json.
"""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from hand_over import hand_over_seconds_per_gb
from link_costs import link_seconds_per_gb, link_seconds_per_gb_with_tls
from loader_costs import cpu_and_wall_seconds_per_1000, loader_seconds_per_1000
from memory_bench import cifar, mnist
from PIL import Image
from process_trees import adopt_orphans
from remote_batches import remote_seconds_per_1000
from speech_data import SOUNDFILE, TORCHAUDIO, Speech, clips, padded
from training_data import RECIPES, OwnDataset, TextLines, copies_of, photographs, shards_of, training_recipe
from worker_scaling import wall_seconds_per_1000

import sluice.torch
from sluice.media import native_audio

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64
WORKERS = 2


def costs(loader_class, dataset):
    return loader_seconds_per_1000(loader_class, dataset, WORKERS, BATCH)


def costs_of_speech(loader_class, speech):
    """Of loaders that pad the clips of a batch to the longest."""
    return costs(lambda dataset, **options: loader_class(dataset, collate_fn=padded, **options), speech)


def native_seconds_per_1000(build, files):
    program = pathlib.Path(build, "bench/data_plane/sluice-pipeline-bench")
    lines = "".join(name + "\n" for name in files)
    output = subprocess.run([program, "1"], input=lines, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
    return json.loads(output.stdout)


def transcoded_seconds_per_1000(build, files):
    """Of a second epoch from a cache's transcoded form, of the first one, which makes it, and without a cache: float32 samples on one thread."""
    program = pathlib.Path(build, "bench/data_plane/sluice-cache-bench")
    lines = "".join(name + "\n" for name in files)

    def epochs(mode):
        with tempfile.TemporaryDirectory() as folder:
            output = subprocess.run([program, mode, folder], input=lines, check=True, stdout=subprocess.PIPE, text=True, timeout=600)
        return [json.loads(line) for line in output.stdout.splitlines()]

    plain, transcoded = epochs("plain"), epochs("transcoded")
    assert len({epoch["sum_of_bytes"] for epoch in plain + transcoded}) == 1, "the transcoded form changes bytes"
    seconds = [epoch["cpu_seconds"] * 1000 / len(files) for epoch in transcoded]
    return {
        "transcoded": min(seconds[1:]),
        "transcoded_first": seconds[0],
        "not_transcoded": min(epoch["cpu_seconds"] for epoch in plain[1:]) * 1000 / len(files),
        "transcoded_size": transcoded[-1]["bytes_on_disk"] / sum(os.path.getsize(name) for name in files),
    }


def with_setting(name, value, work):
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        return work()
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def with_native_audio(work):
    """Behind it, torchaudio and soundfile are as they were: the setting counts for the process, hence for a peer's workers, too."""
    try:
        return with_setting("SLUICE_NATIVE_AUDIO", "on", work)
    finally:
        native_audio.remove()


def check_bytes(files):
    """Neither lazy images nor native executors change a byte of an epoch of an own class. Raises AssertionError."""

    def batches():
        torch.manual_seed(0)
        return list(sluice.torch.DataLoader(OwnDataset(files[: 8 * BATCH]), batch_size=BATCH, num_workers=WORKERS))

    read = batches()
    lazy, eager = (with_setting("SLUICE_LOWERING", "off", lambda switch=switch: with_setting("SLUICE_LAZY_IMAGES", switch, batches)) for switch in ("on", "off"))
    for (native, _), (found, _), (expected, _) in zip(read, lazy, eager, strict=True):
        assert found.numpy().tobytes() == expected.numpy().tobytes(), "lazy images change bytes"
        assert native.numpy().tobytes() == expected.numpy().tobytes(), "native executors change bytes"


def measure(options, folder, directory):
    """`directory`: for tar shards."""
    dataset, files = photographs(folder, options.images, training_recipe())
    speech = Speech(clips(options.speech, options.images, directory))
    own, lines, shards = OwnDataset(files), TextLines(50_000), shards_of(files, directory)
    in_memory = {"cifar": cifar(), "mnist": mnist()}
    copies = {extension: copies_of(files, extension, directory, len(files)) for extension in ("png", "webp")}
    for paths in (files, *(paths for _, paths in copies.values())):
        check_bytes(paths)
    repetitions = []
    for number in range(options.repetitions):
        figures = native_seconds_per_1000(options.build, files)
        figures |= transcoded_seconds_per_1000(options.build, files)
        figures["loader"] = costs(sluice.torch.DataLoader, dataset)
        figures["shards"] = costs(sluice.torch.DataLoader, shards)
        figures["torch"] = costs(torch.utils.data.DataLoader, dataset)
        for extension, (copied, paths) in copies.items():
            for name, data, lowering in [(extension, copied, "on"), (f"own_{extension}", OwnDataset(paths), "off")]:
                figures[name] = with_setting("SLUICE_LOWERING", lowering, lambda data=data: costs(sluice.torch.DataLoader, data))
                figures[f"{name}_torch"] = costs(torch.utils.data.DataLoader, data)
        figures["own_read"] = costs(sluice.torch.DataLoader, own)
        for name, switch in [("own", "on"), ("own_eager", "off")]:
            lazy = lambda switch=switch: with_setting("SLUICE_LAZY_IMAGES", switch, lambda: costs(sluice.torch.DataLoader, own))  # noqa: E731
            figures[name] = with_setting("SLUICE_LOWERING", "off", lazy)
        figures["own_torch"] = costs(torch.utils.data.DataLoader, own)
        for name, recipe in RECIPES.items():
            augmented, _ = photographs(folder, options.images, recipe())
            figures[name] = costs(sluice.torch.DataLoader, augmented)
            figures[f"{name}_torch"] = costs(torch.utils.data.DataLoader, augmented)
        figures["speech"] = with_native_audio(lambda: costs_of_speech(sluice.torch.DataLoader, speech))
        figures["speech_torch"] = costs_of_speech(torch.utils.data.DataLoader, speech)
        for name, data in in_memory.items():
            figures[name] = costs(sluice.torch.DataLoader, data)
            figures[f"{name}_torch"] = costs(torch.utils.data.DataLoader, data)
        for name, loader, workers in [("text", sluice.torch.DataLoader, WORKERS), ("text_torch", torch.utils.data.DataLoader, 0),
                                      ("text_workers", torch.utils.data.DataLoader, WORKERS)]:  # fmt: skip
            made = with_setting("SLUICE_STEP_ASIDE", "on", lambda loader=loader, workers=workers: cpu_and_wall_seconds_per_1000(loader, lines, workers, BATCH))
            figures[name], figures[f"{name}_wall"] = made
        # The feeder's own costs just before it, as the speed of a shared machine changes within a repetition.
        figures["beside_remote"] = costs(sluice.torch.DataLoader, dataset)
        figures["remote"] = remote_seconds_per_1000(options.build, dataset, BATCH, figures["beside_remote"])
        figures["hand_over"] = hand_over_seconds_per_gb(dataset, BATCH)
        figures["link"], figures["link_tls"] = link_seconds_per_gb(options.build), link_seconds_per_gb_with_tls(options.build)
        for workers, name in enumerate(("one_worker", "two_workers"), 1):
            figures[name] = wall_seconds_per_1000(options.build, dataset, BATCH, workers)
        repetitions.append(figures)
        print(f"repetition {number}: " + ", ".join(f"{name} {value:.3f}" for name, value in figures.items()), file=sys.stderr)
    return repetitions


def row_of(goal, repetitions):
    values = [repetition[goal["measure"]] for repetition in repetitions]
    row = {"name": goal["name"], "value": round(min(values), 3), "peer": None, "ratio": None}
    if "at_most" in goal:  # Without a peer that meets the same load, the least would flatter.
        row |= {"value": round(statistics.median(values), 3), "goal": goal["at_most"]}
        return {**row, "verdict": "ok" if row["value"] <= row["goal"] else "falls short"}
    peers = [repetition[goal["peer"]] for repetition in repetitions]
    # Within one repetition both sides met the same load; the median of the ratios is the fair one.
    ratio = round(statistics.median_high(peer / value for peer, value in zip(peers, values, strict=True)), 2)
    row |= {"peer": round(min(peers), 3), "ratio": ratio, "goal": goal["least_ratio"]}
    return {**row, "verdict": "ok" if ratio >= row["goal"] else "falls short"}


def line_of(row):
    peer, ratio = ("" if row[name] is None else f"{row[name]:.{digits}f}" for name, digits in (("peer", 3), ("ratio", 2)))
    return f"{row['name']:62} {row['value']:7.3f} {peer:>7} {ratio:>6} {row['goal']:6.2f}  {row['verdict']}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("folder")
    parser.add_argument("speech")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--output", default=str(HERE.parent / "results/data-plane.json"))
    options = parser.parse_args()
    os.environ["SLUICE_FEEDER_BINARY"] = str(pathlib.Path(options.build, "worker-image/sluice-feeder").resolve())
    os.environ["SLUICE_STEP_ASIDE"] = "off"
    adopt_orphans()  # The feeder's time counts.
    with tempfile.TemporaryDirectory() as directory:
        repetitions = measure(options, options.folder, pathlib.Path(directory))
    rows = [row_of(goal, repetitions) for goal in json.loads((HERE / "goals.json").read_text())]

    print(f"{'CPU-seconds per 1,000 images, or what the name says':62} {'value':>7} {'peer':>7} {'ratio':>6} {'goal':>6}")
    for row in rows:
        print(line_of(row))
    result = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "peer": f"torch {torch.__version__} DataLoader, {WORKERS} workers, PIL {Image.__version__}, torchvision v1, torchaudio {TORCHAUDIO}, soundfile {SOUNDFILE}",
        "load_average": os.getloadavg()[0],
        "rows": rows,
        "repetitions": repetitions,
    }
    output = pathlib.Path(options.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["verdict"] == "ok" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
