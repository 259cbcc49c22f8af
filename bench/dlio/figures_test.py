"""What DLIO writes is read, and judged as it should be."""

import json
from dataclasses import replace

import figures
import mlperf_storage
import pytest
from figures import ATTACHED, OURS, OWN, NotAsAsked

SMALL = replace(mlperf_storage.WORKLOADS["unet3d"], files=7, batch_size=3, epochs=2)  # two steps an epoch, and a file too many


def write_output(folder, steps=(2, 2)):
    """As DLIO's for a training with checkpoints: steps come in blocks."""
    epochs = {str(number): {"proc": {"block1": [0.2] * (count - 1), "block2": [0.1]}} for number, count in enumerate(steps, 1)}
    (folder / "0_output.json").write_text(json.dumps({"hostname": "node", **epochs}))
    metric = {"train_au_mean_percentage": 91.5, "train_throughput_mean_samples_per_second": 120.25, "train_au_percentage": [90, 93]}
    (folder / "summary.json").write_text(json.dumps({"metric": metric, "epochs": 2}))


def test_figures_are_dlios(tmp_path):
    write_output(tmp_path)
    assert figures.of_run(tmp_path, SMALL) == {"au_percent": 91.5, "samples_per_second": 120.25, "samples": 12}


@pytest.mark.parametrize("steps", [(2, 1), (2,), (3, 2)])
def test_a_run_with_other_steps_is_refused(tmp_path, steps):
    write_output(tmp_path, steps)
    with pytest.raises(NotAsAsked, match=r"steps instead of 2 in each of 2 epochs"):
        figures.of_run(tmp_path, SMALL)


def test_what_workers_read_is_found_by_worker(tmp_path):
    (tmp_path / "samples-1").write_text("4\n0\n")
    (tmp_path / "samples-0").write_text("12\n")
    (tmp_path / "log").write_text("5")
    assert figures.recorded(tmp_path) == {"samples-0": [12], "samples-1": [4, 0]}


READ = {"samples-0": [5, 0, 2, 1, 3, 4], "samples-1": [1, 3, 4, 0, 5, 2]}


@pytest.mark.parametrize("ours, problem", [
    (READ, ""),
    ({**READ, "samples-1": [3, 1, 4, 0, 5, 2]}, r"samples-1 are \[3, 1"),
    ({"samples-0": READ["samples-0"]}, r"samples-1 are \[\]"),
    ({"samples-0": READ["samples-1"], "samples-1": READ["samples-0"]}, "samples-0"),
    ({**READ, "samples-2": [1]}, "samples-2"),
])  # fmt: skip
def test_workers_read_the_same_with_either_loader(ours, problem):
    if not problem:
        figures.check_samples(READ, ours, SMALL)
        return
    with pytest.raises(NotAsAsked, match=problem):
        figures.check_samples(READ, ours, SMALL)


@pytest.mark.parametrize("read", [{}, {"samples-0": [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 4]}, {"samples-0": [0, 1, 2, 3, 4, 5]}])
def test_a_loader_that_leaves_samples_out_is_refused_even_if_both_do(read):
    with pytest.raises(NotAsAsked, match="instead of each of 6 in each of 2 epochs"):
        figures.check_samples(read, read, SMALL)


@pytest.mark.parametrize("log, problem", [
    ("[INFO] x\nsluice: DataLoader of TorchDataset, batch_size 7: served in Python: y (1 iterator)\n", ""),
    ("sluice: DataLoader of A: served natively (5 iterators)\nsluice: DataLoader of B: left to torch: z (1 iterator)\n", "left to torch: z"),
    ("[INFO] served in Python\n", "nothing of a loader"),
])  # fmt: skip
def test_that_sluice_has_made_the_batches_is_seen(log, problem):
    if not problem:
        figures.check_served(log)
        return
    with pytest.raises(NotAsAsked, match=problem):
        figures.check_served(log)


def run(samples_per_second, cpu_seconds):
    return {"au_percent": samples_per_second / 2, "samples_per_second": samples_per_second, "cpu_seconds": cpu_seconds, "samples": 1200}


RUNS = [(0, "unet3d", ATTACHED, run(90, 10)), (0, "unet3d", OWN, run(100, 10)), (0, "unet3d", OURS, run(110, 8)),
        (1, "unet3d", OURS, run(60, 10)), (1, "unet3d", OWN, run(50, 20)), (1, "unet3d", ATTACHED, run(48, 20)),
        (2, "unet3d", OWN, run(100, 10)), (2, "unet3d", OURS, run(99, 10))]  # fmt: skip


def test_ratios_are_those_of_one_round():
    own, ours, attached = figures.summarised(RUNS)
    assert [own["loader"], ours["loader"], attached["loader"]] == [OWN, OURS, ATTACHED]
    assert own["faster"] == {"median": 1, "smallest": 1, "largest": 1}
    assert ours["faster"] == {"median": 1.1, "smallest": 0.99, "largest": 1.2} and ours["less_cpu"]["median"] == 1.25 and ours["rounds"] == 3
    assert attached["faster"]["median"] == pytest.approx(0.93) and attached["au_percent"]["smallest"] == 24


def test_a_loader_that_is_slower_falls_short():
    assert [row["loader"] for row in figures.behind(figures.summarised(RUNS))] == [ATTACHED]


def test_the_table_has_a_row_for_each_loader():
    lines = figures.markdown(figures.summarised(RUNS), {"unet3d": "volumes"}).splitlines()
    assert lines[0] == "**unet3d**: volumes"
    assert lines[4:] == ["| DLIO's own | 50.0 | 100 | 1.00 [1.00-1.00] | 10.0 | 1.00 | 1,200 |",
                         "| Sluice | 49.5 | 99 | 1.10 [0.99-1.20] | 10.0 | 1.25 | 1,200 |",
                         "| DLIO's own, `sluice run` | 34.5 | 69 | 0.93 [0.90-0.96] | 15.0 | 1.00 | 1,200 |"]  # fmt: skip
