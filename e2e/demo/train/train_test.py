"""The training script, run as users run it, on small data made here."""

import json
import os
import pathlib
import subprocess
import sys
import wave

import numpy
import pytest
import store
import torch
import train
import workloads
from PIL import Image
from train import Digest, StepClock

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root, random = tmp_path_factory.mktemp("data"), numpy.random.default_rng(1)
    for number in range(40):
        folder = root / "photographs" / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (40, 60, 3), dtype="uint8")).save(folder / f"{number}.jpg")
    (root / "speech").mkdir()
    lines = []
    for number in range(20):
        with wave.open(str(root / "speech" / f"{number}.wav"), "wb") as clip:
            clip.setnchannels(1)
            clip.setsampwidth(2)
            clip.setframerate(16000)
            clip.writeframes(random.integers(-9000, 9000, 8000 * (1 + number % 8), dtype="int16").tobytes())
        lines.append(f"{number}.wav\tvoice{number % 2}\tsome words\n")
    (root / "speech/transcripts.tsv").write_text("".join(lines))
    (root / "text").mkdir()
    (root / "text/paragraphs.txt").write_text("\n".join(f"Paragraph {number}, " + "word " * number for number in range(50)) + "\n")
    return root


@pytest.fixture
def run(data, warm_python):
    """run(job, arguments...): the events that the script prints, on the data made here."""

    def events(job, *arguments, **environment):
        folder = {"vision": "photographs"}.get(job, job)
        command = [HERE / "train.py", job, "--data", data / folder, "--workers", "0", *arguments]
        status, out, errors = warm_python.run(command, cwd=data, imports=("torchvision",), **environment)
        assert status == 0, errors
        return [json.loads(line) for line in out.splitlines()]

    return events


@pytest.mark.parametrize("job, size, batch", [("vision", 40, 64), ("speech", 20, 16), ("text", 50, 48)])
def test_every_job_sees_every_sample_of_every_epoch_once(run, job, size, batch):
    events = run(job, "--epochs", "2", "--batch-size", str(batch))
    result = events[-1]
    assert [event["event"] for event in events if event["event"] != "progress"] == ["start", "epoch", "epoch", "result"]
    assert result["complete"] and result["samples"] == 2 * size
    assert [epoch["samples"] for epoch in result["epochs"]] == [size, size]
    assert result["epochs"][0]["digest"] != result["epochs"][1]["digest"]
    assert 0 < result["utilisation_percent"] <= 100


def test_the_same_seed_gives_the_same_batches_and_another_seed_others(run):
    digests = [[epoch["digest"] for epoch in run("speech", "--seed", seed, DIGEST="full")[-1]["epochs"]] for seed in "112"]
    assert digests[0] == digests[1] != digests[2]


def test_a_part_of_a_data_set_is_still_a_plain_image_folder(data):
    dataset = train.shorten(workloads.photographs(str(data / "photographs")), "vision", 7)
    assert type(dataset).__name__ == "ImageFolder" and len(dataset) == len(dataset.targets) == 7
    assert [label for _, label in dataset.samples] == dataset.targets


def test_photographs_in_shards_are_counted_one_by_one(run, data, tmp_path):
    files = sorted((data / "photographs").glob("*/*.jpg"))
    (tmp_path / "photographs.tar").write_bytes(store.shard(range(len(files)), files))
    result = run("shards", "--data", tmp_path / "photographs.tar", PYTHONPATH=str(HERE.parents[2] / "python"))[-1]
    assert result["complete"] and result["samples"] == len(files)


@pytest.mark.parametrize("name, batches, complete", [
    ("each once", [[0, 1], [2]], True),
    ("one missing", [[0, 1]], False),
    ("one twice", [[0, 1], [2, 2]], False),
    ("one replaced by another of the same label", [[0, 2], [2]], False),
])  # fmt: skip
def test_census(name, batches, complete):
    class Three:
        targets = [5, 6, 5]

        def __len__(self):
            return 3

    census = workloads.Census(Three())
    for indices in batches:
        census.add([None, torch.tensor([Three.targets[index] for index in indices]), torch.tensor(indices)])
    assert census.complete() is complete


def test_step_clock_leaves_only_the_first_wait_out():
    now = iter([0, 0, 10, 10, 11, 11, 11, 13, 13, 14, 14])  # creation, start, then pairs
    clock = StepClock(8, lambda: next(now))
    clock.start()
    clock.got_batch(4)  # waited 10: the first
    clock.computed()  # 1
    clock.start()
    clock.got_batch(4)  # waited 2
    clock.computed()  # 1
    summary = clock.summary()
    assert (summary["first_wait_seconds"], summary["wait_seconds"], summary["compute_seconds"]) == (10, 2, 2)
    assert summary["utilisation_percent"] == 50 and summary["samples_per_second"] == 2


@pytest.mark.parametrize("name, waits, percent", [
    ("starved at first, then fed", [9, 9, 0, 0], 100),
    ("fed at first, then starved", [0, 0, 1, 3], 33.3),
    ("the batch that reaches the half belongs to the first half", [9, 9, 9, 1, 1], 50),
    ("nothing comes after the half", [9], None),
])  # fmt: skip
def test_second_half_of_the_samples(name, waits, percent):
    time = [0.0]
    clock = StepClock(4 * len(waits), lambda: time[0])
    for wait in waits:
        clock.start()
        time[0] += wait
        clock.got_batch(4)
        time[0] += 1
        clock.computed()
    assert clock.summary()["second_half_percent"] == percent


@pytest.mark.parametrize("how", ["sampled", "full"])
def test_digest_depends_on_bytes_and_order(how):
    def digest(*batches):
        made = Digest(how)
        for batch in batches:
            made.add(batch)
        return made.text()

    first, second = [torch.ones(2, 3), torch.tensor([1])], [torch.zeros(2, 3), torch.tensor([2])]
    assert digest(first, second) == digest(first, second)
    assert digest(first, second) != digest(second, first)
    assert Digest("off").text() == ""


def test_mel_bands_cover_every_frequency_between_the_edges():
    bands = workloads.mel_bands(80, 257, 16000)
    assert bands.shape == (80, 257) and bool((bands >= 0).all()) and bool((bands.sum(0)[3:-3] > 0).all())


def test_spec_augment_masks_a_stripe_of_bounded_width():
    torch.manual_seed(3)
    for _ in range(20):
        features = torch.ones(80, 200)
        workloads.mask(features, 0, 15)
        silent = int((features.sum(1) == 0).sum())
        assert silent <= 15 and bool((features.sum(1) % 200 == 0).all())


def test_a_slower_accelerator_computes_longer(run):
    usual, slower = (run("vision", *arguments)[-1]["compute_seconds"] for arguments in ([], ["--step-factor", "20"]))
    assert slower > 5 * usual


def test_the_second_trainer_tells_how_long_its_steps_take():
    done = subprocess.run([sys.executable, HERE / "neighbour.py", "0.3"], capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(done.stdout)
    assert result["steps"] > 0 and 0 < result["seconds_per_step"] < 10
    assert 0 < result["machine_busy_share"] <= 1


def test_the_second_trainer_tells_what_it_waits_for_cores():
    core = {min(os.sched_getaffinity(0))}
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, core))
    try:
        done = subprocess.run(
            [sys.executable, HERE / "neighbour.py", "2"], capture_output=True, text=True, timeout=60, check=True, preexec_fn=lambda: os.sched_setaffinity(0, core)
        )
    finally:
        busy.kill()
        busy.wait()
    share = json.loads(done.stdout)["waiting_share"]
    assert share is None or 0.05 < share < 1
