"""What `explain` says after batches have been made: who has made them, what they have cost, and every obstacle."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import Dataset, Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from iterable_datasets import Split
from sluice.explain.explanation import Explanation, Report
from sluice.makers.accounting import Totals
from sluice.makers.measured import LOCAL, Measured
from sluice.torch import DataLoader, explain
from test_run import PACKAGE, run

STEPS = [transforms.RandomResizedCrop(16), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)]


class Squares(Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int):
        return torch.full((256,), float(index * index)), index


def keep(batch):
    return batch


def table(report: Report) -> list[list[str]]:
    """Its cells."""
    lines = report.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    operation"))
    cells = [[cell.strip() for cell in line.strip().split("  ") if cell.strip()] for line in lines[first:]]
    return [line for line in cells if len(line) == len(cells[0])]


def native_loader(root) -> DataLoader:
    return DataLoader(ImageFolder(root, transforms.Compose(STEPS)), batch_size=4, num_workers=2)


def test_before_the_first_batch_nothing_is_measured(image_root, make_fake):
    make_fake()
    for loader in (native_loader(image_root), DataLoader(Squares(), num_workers=1)):
        assert loader.explain().splitlines()[-1].startswith("not measured yet; feeder: at ")


def test_native_operations_are_shown_with_their_costs(image_root, make_fake):
    make_fake()
    loader = native_loader(image_root)
    batches = list(loader)
    report = loader.explain()
    assert "measured: 6 batches of 23 samples, 6 by executors of the feeder" in report and len(batches) == 6
    size = 16 * 16 * 3
    assert table(report) == [
        ["operation", "by", "CPU", "us/sample", "KiB/sample", "out/in", "random"],
        ["read the file", "native", "10.0 %", "1000.0", "1.0", "-", "no"],
        ["decode (decode_rgb)", "native", "40.0 %", "4000.0", "4.9", "5.00", "no"],
        ["resample (random_resized_crop, random_horizontal_flip)", "native", "20.0 %", "2000.0", "2.0", "0.40", "yes"],
        ["make the tensor (to_tensor, normalize)", "native", "10.0 %", "1000.0", "7.8", f"{8000 / size:.2f}", "no"],
        ["everything else", "native", "20.0 %", "2000.0", "-", "-", "-"],
    ]
    assert "no advice yet" in report and report.splitlines()[-1].startswith("feeder: at ")
    list(loader)
    assert "measured: 12 batches of 46 samples" in loader.explain()


def test_python_batches_are_counted_wherever_they_are_made(any_feeder):
    loader = DataLoader(Squares(), batch_size=4, num_workers=2)
    list(loader)
    report = loader.explain()
    assert "measured: 3 batches of 10 samples, 3 by executors of the feeder" in report
    assert [line[0] for line in table(report)] == ["operation", "Squares, its samples", "default_collate, their batch", "everything else"]
    assert "native operations would save at most these" in report


def test_the_real_feeder_tells_the_costs_of_native_operations(image_root, real_feeder):
    loader = native_loader(image_root)
    list(loader)
    report = loader.explain()
    assert "measured: 6 batches of 23 samples, 6 by executors of the feeder" in report
    cells = {line[0].split(" (")[0]: line for line in table(report)}
    assert list(cells)[1:] == ["read the file", "decode", "resample", "make the tensor", "everything else"]
    files = sum(file.stat().st_size for file in image_root.rglob("*.*"))
    assert cells["read the file"][4] == f"{files / 23 / 1024:.1f}" and cells["resample"][4] == "0.8" and cells["make the tensor"][4:6] == ["3.0", "4.00"]


def test_batches_of_this_process_and_of_streams_count(make_fake, monkeypatch):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    loader = DataLoader(Squares(), batch_size=4, num_workers=2)
    list(loader)
    assert "3 batches of 10 samples, 3 by this process" in loader.explain()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    streams = DataLoader(Split(), batch_size=2, num_workers=2)
    batches = len(list(streams))
    assert f"measured: {batches} batches" in streams.explain() and "Split, its samples" in streams.explain()
    assert "native operations would" not in streams.explain()


def test_a_changed_pipeline_is_measured_anew(image_root, make_fake):
    make_fake()
    loader = native_loader(image_root)
    list(loader)
    loader.dataset.transform = transforms.Compose(STEPS[:-1])
    assert "measured: 6 batches" in loader.explain(), "as it was at the last iterator"
    list(loader)
    assert "measured: 6 batches of 23" in loader.explain()


def test_an_older_feeder_says_less(make_fake, monkeypatch):
    make_fake(tells_costs=False)
    loader = DataLoader(Squares(), batch_size=4, num_workers=2)
    list(loader)
    assert [line[0] for line in table(loader.explain())] == ["operation", "everything else"]


def test_kept_functions_are_told_with_what_they_have_saved():
    """Also where a newer feeder says more of a function than this client knows."""
    measured, account = Measured(), SimpleNamespace(totals=Totals)
    for _ in range(2):
        measured.add(LOCAL, "python", 4, [], account, 0.1, 0.0, [["m.mel", 4, 3, 0.5, 1_500_000, "more"], ["m.text", 4, 0, 0.0, 0]])
    lines = [line.strip() for line in Explanation(["head"], "tail", measured).report().splitlines()]
    assert "kept results of m.mel: 6 of 8 calls found, 1 s of them saved, 3 MB read" in lines
    assert "kept results of m.text: 0 of 8 calls found, 0 s of them saved, 0 MB read" in lines


def test_all_obstacles_are_named_also_behind_settings(image_root, make_fake, monkeypatch):
    make_fake()
    folder = ImageFolder(image_root, transforms.Compose([transforms.Resize(8), transforms.ToTensor()]))
    folder.samples[2] = (folder.samples[2][0] + ".bmp", 0)
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", -1)
    monkeypatch.setenv("SLUICE_LOWERING", "off")
    report = DataLoader(Subset(folder, ["x"]), collate_fn=keep, num_workers=1).explain()
    told = report.splitlines()[2:-1]
    for part in ("SLUICE_LOWERING is off", "collate_fn is ", "a Subset's indices are not integers", "one size", "MAX_IMAGE_PIXELS is -1", "not a JPEG, PNG or WebP file"):
        assert sum(part in line for line in told) == 1, (part, report)
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    assert "because SLUICE_RANDOMNESS is torch\n  not native either because\n" in DataLoader(folder, collate_fn=keep, num_workers=1).explain()
    refused = DataLoader(Split(), num_workers=1, persistent_workers=True, multiprocessing_context="spawn").explain()
    assert "persistent workers keep" in refused and "multiprocessing_context asks" in refused


def test_a_report_is_a_text_and_a_table(make_fake):
    make_fake()
    loader = DataLoader(Squares(), batch_size=4, num_workers=1)
    before = loader.explain()
    list(loader)
    report = explain(loader)
    assert isinstance(report, str) and str(report) == report and report in {str(report)} and pickle.loads(pickle.dumps(report)) == report
    assert before._repr_html_().startswith("<pre>executor: python") and "<table>" in report._repr_html_()
    assert report._repr_html_().count("<tr>") == 4 and "&quot;" not in report._repr_html_() and "<Squares" not in report._repr_html_()
    assert Report("a < b")._repr_html_() == "<pre>a &lt; b</pre>"
    assert pickle.loads(pickle.dumps(report))._repr_html_() == report._repr_html_()


PROGRAM = """
import os, signal
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 10
    def __getitem__(self, index):
        return index * index

loader = DataLoader(Squares(), batch_size=4, num_workers=2)
for epoch in range(3):
    print([batch.tolist() for batch in DataLoader(Squares(), batch_size=5, num_workers=1)], flush=True)
for batch in loader:
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("words", [["explain"], ["explain", "--"]])
def test_a_program_that_nobody_edits_is_explained(tmp_path, make_fake, words):
    make_fake()
    (tmp_path / "train.py").write_text(PROGRAM)
    plain = run(["train.py"], cwd=tmp_path)
    status, out, err = run(["-m", "sluice", *words, "train.py"], cwd=tmp_path, PYTHONPATH=str(PACKAGE))
    assert (status, out) == plain[:2] and status == -2, "an interrupt, and what was printed before"
    told = err[err.index("sluice: "):]
    assert "DataLoader of Squares, batch_size 5, num_workers 1: served in Python" in told and "(3 iterators)" in told
    assert "measured: 6 batches of 30 samples" in told and "measured: 1 batches of 4 samples" in told
    assert "sluice: " not in plain[2]


def test_a_loader_that_is_left_to_torch_is_explained(tmp_path, make_fake):
    make_fake()
    (tmp_path / "train.py").write_text(PROGRAM.replace("num_workers=1", "num_workers=0"))
    _, _, err = run(["-m", "sluice", "explain", "train.py"], cwd=tmp_path, PYTHONPATH=str(PACKAGE))
    assert "  executor: torch's own (num_workers is 0" in err


def test_a_loader_of_torchs_class_is_explained(make_fake):
    make_fake()
    from sluice import attached

    loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2)
    assert "not measured yet" in explain(loader)
    list(attached.iterator(loader, lambda loader: None))
    assert "measured: 3 batches of 10 samples" in explain(loader)
    assert sys.modules["sluice.attached"] is attached
