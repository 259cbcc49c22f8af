"""The order that Pecan would have, of transforms as they act on images."""

import pytest
from order_bench import PIPELINES, pecan_order
from PIL import Image
from torchvision import transforms as t

IMAGES = [Image.new("RGB", (500, 375)), Image.new("RGB", (375, 500))]
FLIP, JITTER, PAD, CROP, RESIZE = t.RandomHorizontalFlip(), t.ColorJitter(0.4), t.Pad(20), t.RandomCrop(100), t.Resize(256)


@pytest.mark.parametrize(
    ("steps", "want"),
    [
        pytest.param([JITTER, FLIP, CROP], [CROP, JITTER, FLIP], id="what makes images smaller goes first"),
        pytest.param([PAD, JITTER, FLIP], [JITTER, FLIP, PAD], id="what enlarges them goes last"),
        pytest.param([RESIZE, JITTER, CROP], [RESIZE, CROP, JITTER], id="ties keep the program's order"),
        pytest.param([CROP, JITTER, RESIZE], [CROP, JITTER, RESIZE], id="by the sizes where it stands"),
    ],
)
def test_inflation_decides(steps, want):
    assert pecan_order(steps, IMAGES) == want


def test_pecans_own_resnet_resizes_before_it_rotates_and_its_simclr_stays():
    resnet, simclr = (next(steps for name, steps in PIPELINES.items() if name.startswith(start)) for start in ("pecan-resnet", "pecan-simclr"))
    assert [type(step).__name__ for step in pecan_order(resnet, IMAGES)] == ["RandomCrop", "Resize", "RandomHorizontalFlip", "RandomRotation"]
    assert pecan_order(simclr, IMAGES) == simclr
