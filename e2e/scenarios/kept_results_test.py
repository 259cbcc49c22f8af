"""Results of functions that a job marks: the next job of its namespace finds them in the node's cache, and the batches are the same."""

import json

import jobs
import pytest
from cache_daemons import counted, gained, switched_on
from conftest import NUMBERED
from machine import delete_jobs

TRAINER = """
import glob, hashlib, json, sys, time
import torch
from sluice import cached
from sluice.torch import DataLoader

@cached(version="1")
def features(path):
    time.sleep(0.02)  # As long as a feature of more than a file's bytes takes.
    with open(path, "rb") as file:
        return torch.bincount(torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).long(), minlength=256)

class Pictures(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths
    def __len__(self):
        return len(self.paths)
    def __getitem__(self, index):
        return features(self.paths[index])

loader = DataLoader(Pictures(sorted(glob.glob(sys.argv[1]))), batch_size=16, num_workers=2)
digests = []
for _ in range(int(sys.argv[2])):
    digest = hashlib.sha256()
    for batch in loader:
        digest.update(batch.numpy().tobytes())
    digests.append(digest.hexdigest())
kept = [line for line in loader.explain().splitlines() if "kept results" in line]
print(json.dumps({"event": "end", "samples": len(loader.dataset), "digests": digests, "kept": kept}), flush=True)
"""


# Until its executors stand the trainer makes the batches, and keeps nothing. On a busy machine that takes longer than an epoch.
EPOCHS = 3


@pytest.fixture(scope="module")
def cache(bed):
    delete_jobs(bed.cluster)
    with switched_on(bed) as made:
        yield made


def end_of_a_job(bed, epochs):
    """What its trainer says at the end."""
    delete_jobs(bed.cluster)
    text = jobs.manifest("vision", jobs.PHASES[2], bed.site, arguments=[f"/data/numbered-{NUMBERED}/*/image.jpg", str(epochs)])
    own = {
        'command: [python, /demo/train.py, vision, --batch-size, "64"]': f"command: {json.dumps(['python', '-c', TRAINER])}",
        # So short a job would not start an executor.
        "            env:\n": '            env:\n              - {name: SLUICE_STEP_ASIDE, value: "off"}\n',
    }
    for theirs, ours in own.items():
        assert text.count(theirs) == 1, theirs
        text = text.replace(theirs, ours)
    bed.cluster.apply(text)
    said = bed.result(200)
    assert said["event"] == "end" and said["samples"] == NUMBERED, said
    return said


def test_a_second_job_finds_the_results_of_the_first_one(bed, cache):
    before = counted(bed)
    first = end_of_a_job(bed, EPOCHS)
    middle = counted(bed)
    second = end_of_a_job(bed, EPOCHS)
    left, found = gained(bed, before), gained(bed, middle)
    # Both jobs together left each result once: what the first one had left, the second one found.
    assert 0.3 * NUMBERED <= left["records"] <= NUMBERED and left["refused"] == 0, (left, found, first)
    assert found["hits"] >= 10 and second["kept"], (left, found, second)
    assert len({*first["digests"], *second["digests"]}) == 1, (first, second)
