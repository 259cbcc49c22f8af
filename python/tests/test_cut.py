"""What `explain` says of the cut between data workers and this host."""

import json
from types import SimpleNamespace

import pytest
import torch

from sluice.explain.cut import cut_in_words, cuts
from sluice.explain.explanation import Explanation
from sluice.lowering.lowered import ImageForm
from sluice.lowering.native_pipeline import NativePipeline
from sluice.makers.accounting import Totals
from sluice.makers.measured import LOCAL, REMOTE, Cost, Measured, Work

KIB = 1024


def pipeline(*ops: str, dtype=torch.float32) -> NativePipeline:
    return NativePipeline(json.dumps({"ops": [{"op": op} for op in ops]}).encode(), SimpleNamespace(count=4, reads_files=True), (ImageForm(224, 224, dtype),))


TRAINING = pipeline("decode_rgb", "random_resized_crop", "to_tensor", "normalize")


def work(file_bytes: int) -> Work:
    return Work(1, 10, 10e-3, {"read": Cost(0.0, 10 * file_bytes), "decode": Cost(8e-3), "finish": Cost(1e-3)})


@pytest.mark.parametrize(
    ("native", "pixels", "tensor"),
    [
        (TRAINING, 147 * KIB, 588 * KIB),
        (pipeline("decode_rgb", "center_crop", dtype=torch.uint8), 147 * KIB, 147 * KIB),
        (pipeline("decode_rgb", "center_crop", "to_tensor", "random_erasing"), 147 * KIB + 8, 588 * KIB),
    ],
)
def test_a_cut_costs_the_bytes_before_it_and_the_cpu_behind_it(native, pixels, tensor):
    assert [(cut.link_bytes, round(1e6 * cut.local_seconds)) for cut in cuts(work(80 * KIB), native)] == [(80 * KIB, 1000), (pixels, 100), (tensor, 0)]


def test_the_cut_that_is_carried_out_is_priced_beside_the_others():
    lines = cut_in_words(work(200 * KIB), TRAINING)
    assert lines == ["cut: data workers send 147.0 KiB for a sample, its pixels (its file 200.0, its tensor 588.0), and spare this host 90 % of its CPU"]


def test_files_that_are_less_than_their_pixels_are_told():
    assert "`placement: Local` takes 54 % of those bytes" in cut_in_words(work(80 * KIB), TRAINING)[1]


@pytest.mark.parametrize(("maker", "is_told"), [(REMOTE, True), (LOCAL, False)])
def test_it_is_told_where_data_workers_make_batches(maker, is_told):
    measured = Measured()
    measured.add(maker, "native", 10, [["read", 0.0, 800 * KIB], ["decode", 8e-3, 9], ["finish", 1e-3, 9]], SimpleNamespace(totals=Totals), 10e-3)
    native = pipeline("decode_rgb", "random_resized_crop", "to_tensor", "normalize")
    assert ("cut: data workers send" in Explanation(["head"], "tail", measured, native=native).report()) is is_told
