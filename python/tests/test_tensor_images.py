"""Dataset classes over torchvision's own decoders run natively, with the bytes of their own code."""

from __future__ import annotations

import pathlib
import struct
import warnings
import zlib

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data._utils.collate import default_collate
from torchvision.datasets import ImageFolder
from torchvision.io import decode_image
from torchvision.transforms import v2

from sluice.lowering.native_pipeline import lower
from sluice.shipping.failures import NotNative
from tensor_image_classes import NATIVE, OTHERS, TRAINING, ByText, Tutorial
from test_own_files import alike, epochs_of, loader_of, native_of


def noise(number, *shape):
    return Image.fromarray(numpy.random.default_rng(number).integers(0, 256, shape, dtype="u1"))


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photographs") / "all"
    folder.mkdir()
    for number in range(18):
        noise(number, 40 + number, 50, 3).save(folder / f"{number:02}.{('jpg', 'png', 'webp')[number % 3]}")
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("name", NATIVE)
def test_a_class_gives_the_same_batches_natively(any_feeder, monkeypatch, paths, name):
    dataset = NATIVE[name](paths)
    assert native_of(dataset) is not None
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_the_batches_are_torchs_own(any_feeder, paths):
    dataset = NATIVE["Divides"](paths)
    assert alike(list(loader_of(dataset)), list(torch.utils.data.DataLoader(dataset, batch_size=5)))


def test_a_folder_with_torchvisions_decoder(any_feeder, monkeypatch, paths):
    dataset = ImageFolder(pathlib.Path(paths[0]).parents[1], TRAINING, loader=decode_image)
    assert native_of(dataset) is not None
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


@pytest.mark.parametrize("kind", [kind for kind in NATIVE.values() if kind in (Tutorial, ByText)])
def test_files_of_any_mode_are_decoded_as_torchvision_does(any_feeder, monkeypatch, tmp_path, kind):
    """Without a mode, tensors of another number of channels are the class's own affair: its transform makes them, or its normalisation refuses them."""
    made = {
        "0.jpg": noise(0, 40, 50, 3), "1.png": noise(1, 40, 50, 4), "2.png": noise(2, 40, 50), "3.jpg": noise(3, 40, 50),
        "4.jpg": noise(4, 40, 50, 3).convert("CMYK"), "5.png": noise(5, 40, 50).convert("P"), "6.webp": noise(6, 40, 50, 4), "7.png": noise(7, 40, 50).convert("1")
    }  # fmt: skip
    for name, image in made.items():
        image.save(tmp_path / name)
    dataset = kind([str(tmp_path / name) for name in made])
    assert native_of(dataset) is not None
    if kind is ByText:
        assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))
        return
    for lowering in ("on", "off"):
        with pytest.raises(RuntimeError, match="channels|shape|size"):
            epochs_of(dataset, monkeypatch, lowering)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_code_stays_python(paths, kind):
    with pytest.raises(NotNative) as refused:
        lower(kind(paths), default_collate, True)
    assert OTHERS[kind] in str(refused.value)


def png_of_16_bits(width, height):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = numpy.random.default_rng(0).integers(0, 256, (height, 1 + 6 * width), dtype="u1")
    rows[:, 0] = 0  # No filter.
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", [ByText, Tutorial])
def test_files_of_16_bits_keep_them(any_feeder, monkeypatch, tmp_path, paths, kind):
    """Of which Pillow keeps 8."""
    deep = tmp_path / "deep.png"
    deep.write_bytes(png_of_16_bits(30, 20))
    dataset = kind([*paths[:7], str(deep), *paths[7:]], v2.Compose([v2.Resize((20, 30)), v2.ToDtype(torch.float32, scale=True)]))
    assert native_of(dataset) is not None
    assert alike(epochs_of(dataset, monkeypatch), epochs_of(dataset, monkeypatch, "off"))


def test_the_default_dtype_is_that_of_floats_and_random_numbers(any_feeder, monkeypatch, paths):
    monkeypatch.setattr(torch, "get_default_dtype", lambda: torch.float64)
    with pytest.raises(NotNative, match="the default dtype is torch.float64"):
        lower(Tutorial(paths), default_collate, True)


def test_a_warning_that_is_an_error_stays_one(paths):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        with pytest.raises(NotNative, match="makes errors of warnings"):
            lower(Tutorial(paths), default_collate, True)


def test_a_file_that_is_cut_short_is_torchvisions_error(any_feeder, tmp_path, paths):
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(open(paths[0], "rb").read()[:900])
    with pytest.raises(RuntimeError, match="decode_jpeg"):
        list(loader_of(ByText([*paths, str(cut)])))
