"""Functions of a library that the program has replaced, and formats that it has registered, count for every batch."""

from __future__ import annotations

import functools
import importlib
import io
import json.decoder

import numpy
import pytest
import torch
import torchvision
from PIL import Image, ImageOps
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate_fn_map
from torchvision import transforms
from torchvision.transforms.v2 import functional

from own_image_classes import Plain
from sluice.shipping.replaced import replaced_function
from sluice.torch import DataLoader
from test_own_files import native_of
from test_own_files import paths as paths  # noqa: PLC0414
from test_surroundings import in_executor


def mine(*arguments, **named):
    return torch.full((3, 4, 4), 7.0)


class Mine:
    def __call__(self, *arguments):
        return mine()


REPLACED = {
    "PIL.Image.open": (Image, "open", mine),
    "PIL.Image.Image.resize": (Image.Image, "resize", mine),
    "PIL.ImageOps.autocontrast": (ImageOps, "autocontrast", Mine()),
    "PIL.Image.Image.halved": (Image.Image, "halved", property(mine)),
    "torchvision.transforms.functional.to_tensor": (transforms.functional, "to_tensor", mine),
    "torchvision.transforms.transforms.RandomCrop.get_params": (transforms.RandomCrop, "get_params", staticmethod(mine)),
    "torchvision.transforms.v2.functional.resize": (functional, "resize", lambda image: image),
    "torchvision.io.read_image": (torchvision.io, "read_image", mine),
    "torch.load": (torch, "load", functools.partial(torch.load, weights_only=False)),
    "numpy.load": (numpy, "load", lambda *arguments: mine()),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_a_program_replaces_is_found(monkeypatch, name):
    assert replaced_function() is None
    monkeypatch.setattr(*REPLACED[name], raising=False)
    assert replaced_function() == name
    assert replaced_function(natively=True) == (name if name.startswith(("PIL.", "torchvision.transforms.")) else None)


def test_a_format_that_the_program_opens_itself_is_found(monkeypatch):
    monkeypatch.setitem(Image.OPEN, "OURS", (mine, None))
    assert replaced_function(natively=True) == replaced_function() == "PIL.Image.OPEN['OURS']"


def test_a_collation_of_the_program_is_found(monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, float, mine)
    assert "default_collate_fn_map[<class 'float'>]" in replaced_function()


class Loads(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.load("nowhere"), index


def test_batches_are_made_with_the_programs_function(any_feeder, monkeypatch, caplog):
    monkeypatch.setattr(torch, "load", mine)
    loader = DataLoader(Loads(), batch_size=8, num_workers=2)
    assert all(torch.equal(made, mine().expand(8, 3, 4, 4)) for made, _ in loader)
    assert "the program has put torch.load in the place of the library's" in caplog.text


def test_native_executors_have_the_librarys_alone(any_feeder, monkeypatch, paths):
    dataset = Plain(paths)
    assert native_of(dataset) is not None
    monkeypatch.setattr(transforms.functional, "to_tensor", mine)
    assert native_of(dataset) is None
    images = [images for images, _ in DataLoader(dataset, batch_size=8, num_workers=2)]
    assert all(torch.equal(made, mine().expand(8, 3, 4, 4)) for made in images)


FORMAT = """
from PIL import Image, ImageFile

def accept(prefix): return prefix.startswith(b"OURS")

class File(ImageFile.ImageFile):
    def _open(self): self._size, self._mode, self.tile = (2, 3), "L", [ImageFile._Tile("raw", (0, 0, 2, 3), 4, ("L", 0, 1))]

def register(): Image.register_open("OURS", File, accept)
"""


def ask_for_an_image():
    with Image.open(io.BytesIO(b"OURS\7\7\7\7\7\7")) as image:
        return image.size, image.getpixel((0, 0))


def test_a_format_that_a_package_has_registered(real_feeder, tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "ours_of_a_package.py").write_text(FORMAT)
    monkeypatch.syspath_prepend(package)
    Image.preinit()
    monkeypatch.setattr(Image, "OPEN", dict(Image.OPEN))
    monkeypatch.setattr(Image, "ID", list(Image.ID))
    importlib.import_module("ours_of_a_package").register()
    assert in_executor(ask_for_an_image) == ((2, 3), 7)


class LooksUp(Dataset):
    """In a list of a library's, as nltk.data.path is one; at one place it fails everywhere."""

    def __init__(self, bad=None):
        self.bad = bad

    def __len__(self):
        return 80

    def __getitem__(self, index):
        if index == self.bad:
            raise KeyError(f"no sample {index}")
        return json.decoder.PLACES[0] if self.bad is None else 0, index


def test_a_sample_that_fails_in_an_executor_alone_stops_no_loop(real_feeder, monkeypatch, caplog):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    monkeypatch.setattr(json.decoder, "PLACES", [7], raising=False)
    batches = list(DataLoader(LooksUp(), batch_size=8, num_workers=2))
    assert [(places.tolist(), numbers.tolist()) for places, numbers in batches] == [([7] * 8, list(range(first, first + 8))) for first in range(0, 80, 8)]
    assert "a sample fails there and not here: module 'json.decoder' has no attribute 'PLACES'" in caplog.text


def test_a_sample_that_fails_everywhere_is_the_executors_error(real_feeder, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    with pytest.raises(KeyError, match="(?s)Caught KeyError in DataLoader worker process.*no sample 44"):
        list(DataLoader(LooksUp(bad=44), batch_size=8, num_workers=2))
