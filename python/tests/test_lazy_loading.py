"""Where images are lazy: in processes that make batches for a loop, never in the loop's own, and only where the library can be used."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys

import numpy
import pytest
import torch
import torchvision.transforms as v1
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile
from torch.utils.data import Dataset

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import FILES, jpeg
from sluice.executor.computation import BatchRequest, ForkComputation, PythonPipeline
from sluice.feeder import choice as feeder
from sluice.makers.forks import Forks
from sluice.media import lazy_images, native_library
from sluice.media.image_library import find_image_library
from sluice.torch import DataLoader

pytestmark = [pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER), pytest.mark.usefixtures("native_libraries")]


def test_no_library_no_lazy_images(monkeypatch, tmp_path):
    monkeypatch.setattr(lazy_images, "_library", None)
    monkeypatch.setattr(native_library, "_PACKAGE", tmp_path / "python" / "sluice")
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", str(tmp_path / "sluice-feeder"))
    assert not lazy_images.install()
    (tmp_path / "libsluice_images.so").write_bytes(b"no library")
    assert find_image_library() is None
    assert type(Image.open(io.BytesIO(FILES["large"]))) is JpegImageFile


def test_the_library_works_beside_a_libjpeg_of_the_same_name_without_its_functions(tmp_path):
    # As torchvision 0.17's. A process of its own: libjpeg stays loaded in this one.
    subprocess.run(["gcc", "-shared", "-o", "libjpeg.so.62", "-Wl,-soname,libjpeg.so.62", "-x", "c", "/dev/null"], cwd=tmp_path, check=True)
    program = """import ctypes, sys
other = ctypes.CDLL(sys.argv[1])
from sluice.media.image_library import find_image_library
assert find_image_library() is not None"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "libjpeg.so.62"], check=True)


def test_another_programs_way_to_open_jpegs_stays(monkeypatch):
    monkeypatch.setitem(Image.OPEN, "JPEG", (lambda *arguments: JpegImageFile(*arguments), Image.OPEN["JPEG"][1]))
    assert not lazy_images.install()
    assert type(Image.open(io.BytesIO(FILES["large"]))) is JpegImageFile


class Photographs(Dataset):
    """Users' code: an image of a file, and what class PIL has given it."""

    def __init__(self, folder) -> None:
        self.paths = sorted(str(path) for path in folder.glob("*.jpg"))
        normalize = v1.Normalize([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])
        self.transform = v1.Compose([v1.RandomResizedCrop(32), v1.RandomHorizontalFlip(), v1.ToTensor(), normalize])

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        opened = Image.open(self.paths[index])
        is_lazy = type(opened) is not JpegImageFile
        return self.transform(opened.convert("RGB")), torch.tensor(is_lazy), index


@pytest.fixture
def photographs(tmp_path):
    folder = tmp_path / "photographs"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.jpg").write_bytes(jpeg(50 + number, 70 - number, ("RGB", "L", "CMYK")[number % 3]))
    return Photographs(folder)


def batches_of(dataset, monkeypatch, **settings):
    """All batches of a feeder of this process, and whether each image of them was lazy."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    torch.manual_seed(5)
    loader = DataLoader(dataset, batch_size=4, num_workers=2)
    batches = list(loader)
    feeder.disconnect_all()
    return torch.cat([images for images, _, _ in batches]), {bool(flag) for _, flags, _ in batches for flag in flags}, loader.explain()


@pytest.mark.parametrize("step_aside", ["off", "on"])
def test_executors_open_images_lazily_unless_told_not_to(photographs, monkeypatch, step_aside):
    """With stepping aside, PIL stays as it is in the loop's own process, which makes some of the batches."""
    lazy, how_lazy, lazy_words = batches_of(photographs, monkeypatch, SLUICE_STEP_ASIDE=step_aside)
    plain, how_plain, plain_words = batches_of(photographs, monkeypatch, SLUICE_STEP_ASIDE=step_aside, SLUICE_LAZY_IMAGES="0")
    assert torch.equal(lazy, plain)
    assert how_plain == {False} and (how_lazy == {True} or step_aside == "on")
    assert "JPEGs, PNGs and WebPs that PIL opens are decoded late" in lazy_words and "decoded late" not in plain_words
    assert not {opener for _, opener in lazy_images._OPENERS} & {factory for factory, _ in Image.OPEN.values()}


def test_forked_workers_open_images_lazily(photographs, monkeypatch):
    found = {}
    for setting in ("on", "off"):
        monkeypatch.setenv("SLUICE_LAZY_IMAGES", setting)
        forks = Forks(ForkComputation(PythonPipeline(photographs, None, True)), num_workers=1, prefetch_factor=2, in_order=True)
        forks.give(BatchRequest(0, 7, 0, 0, list(range(12)), 0, 1))
        found[setting] = forks.take().open(0)
        forks.close()
    assert torch.equal(found["on"][0], found["off"][0])
    assert found["on"][1].all() and not found["off"][1].any()


def test_ten_thousand_images_leave_no_memory_and_no_file_behind(tmp_path):
    assert lazy_images.install()
    path = tmp_path / "picture.jpg"
    path.write_bytes(jpeg(64, 48))

    def use(count: int) -> None:
        for number in range(count):
            image = Image.open(path).convert("RGB").crop((3, 3, 40, 40)).resize((32, 32), 2)
            numpy.array(image) if number % 2 else image.getpixel((0, 0))

    def resident_bytes() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    use(500)
    gc.collect()
    files, before = len(os.listdir("/proc/self/fd")), resident_bytes()
    use(10_000)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= files  # What an earlier test has left may be closed meanwhile.
    assert resident_bytes() - before < 8 << 20  # A kilobyte kept of each image would be 10 MB.
