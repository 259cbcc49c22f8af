"""photographs.py: what the files are like, that they are always the same, and that a broken attempt leaves nothing."""

import hashlib
import pathlib

import numpy
import pytest
from PIL import Image

import cache
import photographs

COUNT = 39  # three of each of the 13 classes


def contents(folder: pathlib.Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> pathlib.Path:
    return cache.make(tmp_path_factory.mktemp("datasets"), "small", lambda out: photographs.fill(out, COUNT))


def test_the_layout_is_that_of_image_folder_and_the_classes_are_balanced(made):
    labels = [path.name for path in sorted(made.iterdir())]
    assert len(labels) == 13
    assert [len(list((made / label).iterdir())) for label in labels] == [3] * 13


def test_every_file_is_a_baseline_jpeg_with_halved_chroma_of_photographic_size(made):
    sizes = []
    for path in made.rglob("*.jpg"):
        with Image.open(path) as image:
            assert (image.mode, image.info.get("progressive")) == ("RGB", None)
            assert image.layer[0][1:3] == (2, 2) and image.layer[1][1:3] == (1, 1)
            assert image.size in photographs.SIZES
        sizes.append(path.stat().st_size)
    assert 60_000 < numpy.mean(sizes) < 130_000


def test_the_same_number_gives_the_same_bytes_whatever_the_count(made, tmp_path):
    again = cache.make(tmp_path, "fewer", lambda out: photographs.fill(out, 13))
    assert contents(again).items() <= contents(made).items()


def test_the_catalogue_names_known_packages_and_no_photograph_twice():
    photos = photographs.catalogue()
    assert len(photos) == len(set(photos)) > 150
    assert {photo.package for photo in photos} == set(photographs.LICENCES)


def test_the_plan_gives_every_number_once():
    work = photographs.plan(photographs.catalogue(), 1000)
    assert sorted(number for numbers in work.values() for number in numbers) == list(range(1000))


def test_a_variation_stays_inside_a_photograph_smaller_than_the_wanted_size():
    tiny = Image.fromarray(numpy.full((90, 120, 3), 128, dtype=numpy.uint8))
    for number in range(20):
        image = numpy.asarray(photographs.variation(tiny, number)).astype(int)
        assert image.shape[:2][::-1] in photographs.SIZES
        assert abs(image.mean() - 128) < 1  # nothing from outside, where it would be black
