"""What `explain` says to "should I cache?"."""

import json

import pytest
import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder

from sluice.explain.cache_table import MIN_SAMPLES, should_i_cache
from sluice.lowering.lowered import ImageForm
from sluice.lowering.native_pipeline import NativePipeline
from sluice.makers.measured import Cost, Work
from sluice.torch import DataLoader

SAMPLES = 100_000


class Files:
    count = SAMPLES

    def __init__(self, **formats):
        self._formats = formats

    def formats(self):
        return self._formats


def pipeline(*ops, **formats):
    names = [op if isinstance(op, dict) else {"op": op} for op in ("decode_rgb", *ops, "to_tensor", "normalize")]
    return NativePipeline(json.dumps({"ops": names}).encode(), Files(**(formats or {"JPEG": SAMPLES})), (ImageForm(224, 224),))


RESIZE = {"op": "resize", "size": [256]}
TRAINING = pipeline("random_resized_crop", "random_horizontal_flip")
VALIDATION = pipeline(RESIZE, "center_crop")
RANDOM_CROP = pipeline(RESIZE, "random_crop")


def work(blocked_seconds=0.0, samples=1000):
    """Of photographs of 100 KB that take a millisecond each."""
    costs = {"read": (0.02, 100_000), "decode": (0.6, 0), "resample": (0.2, 0), "finish": (0.1, 0)}
    ops = {op: Cost(1e-3 * seconds * samples, size * samples) for op, (seconds, size) in costs.items()}
    return Work(10, samples, 1e-3 * samples, ops, None if blocked_seconds is None else blocked_seconds * samples)


def rows(lines):
    """By the form: what it needs and saves."""
    cells = [[cell.strip() for cell in line.strip().split("  ") if cell.strip()] for line in lines[2:-1]]
    return {form: rest for form, *rest in cells}


@pytest.mark.parametrize(
    ("native", "blocked_seconds", "expected"),
    [
        (TRAINING, 0.0, {"source bytes": ["10 GB", "0 s", "0 s", "measured"], "transcoded JPEG": ["20 GB", "30 s", "0 s", "estimated"]}),
        (TRAINING, 0.01, {"source bytes": ["10 GB", "0 s", "1e+03 s", "measured"], "transcoded JPEG": ["20 GB", "30 s", "1e+03 s", "estimated"]}),
        (
            VALIDATION,
            0.0,
            {
                "source bytes": ["10 GB", "0 s", "0 s", "measured"],
                "transcoded JPEG": ["20 GB", "30 s", "0 s", "estimated"],
                "prefix": ["15.1 GB", "80 s", "0 s", "output of center_crop"],
            },
        ),
        (
            RANDOM_CROP,
            0.0,
            {
                "source bytes": ["10 GB", "0 s", "0 s", "measured"],
                "transcoded JPEG": ["20 GB", "30 s", "0 s", "estimated"],
                "prefix": ["26.2 GB", "80 s", "0 s", "output of resize"],
            },
        ),
        (pipeline("random_resized_crop", PNG=SAMPLES), 0.01, {"source bytes": ["10 GB", "0 s", "1e+03 s", "measured"]}),
        (
            pipeline("random_resized_crop", JPEG=SAMPLES // 2, PNG=SAMPLES // 2),
            0.0,
            {"source bytes": ["10 GB", "0 s", "0 s", "measured"], "transcoded JPEG": ["15 GB", "15 s", "0 s", "estimated"]},
        ),
    ],
)
def test_each_form_has_what_it_needs_and_saves(native, blocked_seconds, expected):
    lines = should_i_cache(work(blocked_seconds), native)
    assert rows(lines) == expected
    seconds = (1e-3 + blocked_seconds) * SAMPLES
    assert lines[0] == f"should I cache? an epoch of 100000 samples takes {seconds:.3g} seconds of executors' threads; estimated for a cache:"


def test_the_last_line_says_what_to_set():
    assert should_i_cache(work(), VALIDATION)[-1] == (
        "  to have it: SLUICE_CACHE_DIR=FOLDER SLUICE_CACHE_BYTES=20000000000; it tries the forms and keeps the one that pays most"
    )


def test_what_has_nothing_to_gain_is_not_to_be_cached():
    files = pipeline("random_resized_crop", PNG=SAMPLES)
    assert should_i_cache(work(), files) == ["should I cache? no: the files are read as fast as a local disk reads, and another form would save little"]
    fast = 1e-3 + 2e-9 * 100_000
    assert len(should_i_cache(work(fast), files)) == 1 and len(should_i_cache(work(1.01 * fast), files)) > 1


def test_what_is_not_measured_is_not_told():
    few = f"should I cache? not measured yet: {MIN_SAMPLES} samples are needed, and there are {MIN_SAMPLES - 1}"
    assert should_i_cache(work(samples=MIN_SAMPLES - 1), TRAINING) == [few]
    assert should_i_cache(Work(10, 1000, 1.0), TRAINING)[0].startswith("should I cache? not measured yet")
    assert "; how long reads wait is not known; estimated" in should_i_cache(work(None), TRAINING)[0]


def test_explain_shows_it_for_native_pipelines_without_a_cache(image_root, make_fake, monkeypatch):
    make_fake()
    steps = [transforms.RandomResizedCrop(16), transforms.ToTensor()]
    loader = DataLoader(ImageFolder(image_root, transforms.Compose(steps)), batch_size=4, num_workers=2)
    assert "should I cache?" not in loader.explain()
    for _ in range(5):
        list(loader)
    report = loader.explain()
    assert "should I cache? an epoch of 23 samples takes 0.23 seconds" in report and "transcoded JPEG" in report
    assert "should I cache?" in report._repr_html_()
    monkeypatch.setenv("SLUICE_CACHE_DIR", "/none")
    monkeypatch.setenv("SLUICE_CACHE_BYTES", "1000")
    assert "should I cache?" not in loader.explain()
