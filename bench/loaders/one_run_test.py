"""What is counted of a loop over batches, with loaders that are a few lines."""

import dataclasses
import subprocess
import sys
import time
import types

import numpy
import one_run
import pytest
from workloads import WORKLOADS, Workload

SAMPLES = 4
LOOP = Workload("photographs", "a test", warm_batches=2, measured_batches=2, spare_batches=1, waiting_seconds=0)
SPIN = "import time\nwhile time.process_time() < {}: pass"


def spin(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def images(samples=SAMPLES, element=numpy.uint8):
    return numpy.zeros((samples, 3, 224, 224), element)


def test_the_time_of_a_loaders_processes_counts_between_the_marks_alone():
    def batches():
        for seconds in (0.5, 0.1, 0.15, 0.15, 0.5):
            subprocess.run([sys.executable, "-S", "-c", SPIN.format(seconds)], check=True)
            yield images(), None

    figures = one_run.measured(batches, LOOP, SAMPLES)
    # The interpreter's own start is in it, too.
    assert 0.29 < figures["cpu_seconds_per_1000"] * 2 * SAMPLES / 1000 < 0.6
    assert figures["samples_per_second"] < 2 * SAMPLES / 0.3
    assert figures["first_batch_seconds"] > 0.5
    assert figures["pss_mib"] > 1


def test_batches_that_lay_ready_are_counted_by_the_work_of_their_successors(monkeypatch):
    clock = types.SimpleNamespace(seconds=0.0, cpu_seconds=0.0)
    monkeypatch.setattr(one_run, "time", types.SimpleNamespace(monotonic=lambda: clock.seconds))
    monkeypatch.setattr(one_run, "tree_cpu_seconds", lambda: clock.cpu_seconds)

    def batches():
        for number in range(1, 12):
            if number == 1 or number > 6:  # The first six are made ahead, and one is ready at the loop's later end.
                clock.seconds += 0 if number == 10 else 0.25
                clock.cpu_seconds += 6 if number == 1 else 2 if number == 9 else 0 if number == 10 else 1
            yield images(), None

    figures = one_run.measured(batches, dataclasses.replace(LOOP, waiting_seconds=0.2, measured_batches=3), SAMPLES)
    # From the 7th, the first that was waited for, to the 11th, as the 10th was ready: 4 batches.
    assert figures["cpu_seconds_per_1000"] * 4 * SAMPLES / 1000 == 4
    assert figures["samples_per_second"] * 0.75 == 4 * SAMPLES


def test_what_a_loader_delivers_is_described():
    for field, words in [(images(), "uint8 CHW"), (numpy.zeros((4, 224, 224, 3), numpy.float32), "float32 HWC"), (numpy.zeros((4, 128), int), "int64 tokens")]:
        assert one_run.described(field) == (words, 4)
    with pytest.raises(RuntimeError, match="shape"):
        one_run.described(numpy.zeros((4, 3, 225, 224)))


def test_bytes_of_two_loaders_are_told_apart():
    other = images()
    other[0, 0, 0, 0] = 1
    assert one_run.checksum(images()) == one_run.checksum(images()) != one_run.checksum(other)


@pytest.mark.parametrize("batches, reason", [([images()] * 3, "3 batches were too few"), ([images(SAMPLES - 1)] * 5, "3 samples instead of 4")])
def test_a_loader_that_delivers_less_has_no_figures(batches, reason):
    with pytest.raises(RuntimeError, match=reason):
        one_run.measured(lambda: batches, LOOP, SAMPLES)


def test_every_peer_has_a_name_of_its_own_and_known_workloads():
    from peers import MODULES, importlib, registry

    peers = [peer for module in MODULES for peer in importlib.import_module(f"peers.{module}").PEERS]
    assert len(registry()) == len(peers)
    for peer in peers:
        assert set(peer.batches) <= set(WORKLOADS), peer.name
        assert not peer.environment or all("==" in package or package == "pydantic" for package in peer.packages), peer.name
