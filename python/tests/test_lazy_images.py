"""Lazy images against Pillow's own: the same bytes, and the same errors at the same calls."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import random
import re
import threading

import numpy
import pytest
from PIL import Image, ImageEnhance, ImageFile, ImageFilter, ImageOps
from PIL.JpegImagePlugin import JpegImageFile

from conftest import NO_REAL_FEEDER, REAL_BINARY
from lazy_pictures import CUT_OFF, DAMAGED, FILES, jpeg
from sluice.media import lazy_images
from sluice.media.image_library import ImageLibrary

pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


@pytest.fixture(autouse=True)
def installed(native_libraries):
    assert lazy_images.install()


@pytest.fixture
def native_calls(monkeypatch):
    """The plans that the library has run."""
    plans = []

    def noted(work):
        def call(file, plan):
            made = work(lazy_images._library, file, plan)
            plans.append((plan, made is not None))
            return made

        return call

    for work in (ImageLibrary.pixels, ImageLibrary.decoded):
        monkeypatch.setattr(lazy_images._library, work.__name__, noted(work), raising=False)
    return plans


@contextlib.contextmanager
def pillow_alone():
    lazy_images.remove()
    try:
        yield
    finally:
        lazy_images.install()


def facts(value):
    """What can be compared of an operation's result."""
    if isinstance(value, Image.Image):
        return value.mode, value.size, value.format, dict(value.info), value.tobytes(), value.readonly
    if isinstance(value, numpy.ndarray):
        return value.shape, value.dtype, value.tobytes(), value.flags.writeable
    return value


def outcome(file: bytes, work):
    """What `work` makes of the opened file, or the error that it raises."""
    try:
        with Image.open(io.BytesIO(file)) as image:
            return facts(work(image))
    except Exception as error:
        # Some messages name the opened file by its address.
        return type(error), re.sub("0x[0-9a-f]+", "", str(error).replace("_sluice", ""))


def same(file: bytes, work):
    with pillow_alone():
        expected = outcome(file, work)
    found = outcome(file, work)
    assert found == expected
    return expected


def rgb(image):
    return image.convert("RGB")


def set_pixel(image):
    mutable = rgb(image)
    mutable.putpixel((0, 0), (1, 2, 3))
    return mutable


def write_by_access(image):
    image.load()[0, 0] = image.load()[image.width - 1, 0]
    return image


def saved(image):
    file = io.BytesIO()
    rgb(image).crop((3, 4, 20, 21)).save(file, "PNG")
    return file.getvalue()


def thumbnail(image):
    image.thumbnail((20, 20))
    return image


def drafted(image):
    return image.draft("RGB", (image.width // 2, image.height // 2)), rgb(image).tobytes()


def verified(image):
    image.verify()
    return image.size


def pasted(image):
    target = Image.new("RGB", (50, 50))
    target.paste(rgb(image), (5, 5))
    return target


WORKS = {
    "as opened": lambda i: i,
    "convert": rgb,
    "convert twice": lambda i: rgb(rgb(i)),
    "crop": lambda i: rgb(i).crop((3, 4, 20, 21)),
    "crop by a list": lambda i: rgb(i).crop([3, 4, 20, 21]),
    "crop of the file": lambda i: i.crop((3, 4, 20, 21)),
    "crop of a crop": lambda i: rgb(i).crop((3, 4, 30, 31)).crop((2, 1, 20, 19)),
    "crop of everything": lambda i: rgb(i).crop((0, 0, *i.size)),
    "crop without a box": lambda i: rgb(i).crop(),
    "crop outside": lambda i: rgb(i).crop((-3, -4, 20, 400)),
    "crop by halves": lambda i: rgb(i).crop((2.5, 3.5, 20.4, 21.5)),
    "crop of nothing": lambda i: rgb(i).crop((5, 5, 5, 20)),
    "crop the wrong way": lambda i: rgb(i).crop((20, 4, 3, 21)),
    "crop by words": lambda i: rgb(i).crop(("a", 1, 2, 3)),
    "crop by three numbers": lambda i: rgb(i).crop((1, 2, 3)),
    "bilinear": lambda i: rgb(i).resize((31, 17), Image.Resampling.BILINEAR),
    "bicubic by default": lambda i: rgb(i).resize((31, 17)),
    "larger": lambda i: rgb(i).resize((131, 90), 2),
    "of one axis": lambda i: rgb(i).resize((i.width, 9), 2),
    "of the other axis": lambda i: rgb(i).resize([9, i.height], 2),
    "to its own size": lambda i: rgb(i).resize(i.size, 2),
    "to nothing": lambda i: rgb(i).resize((0, 9), 2),
    "to less than nothing": lambda i: rgb(i).resize((-4, 9), 2),
    "by a filter that there is not": lambda i: rgb(i).resize((9, 9), 77),
    "nearest": lambda i: rgb(i).resize((31, 17), Image.Resampling.NEAREST),
    "lanczos": lambda i: rgb(i).resize((31, 17), Image.Resampling.LANCZOS),
    "of a box": lambda i: rgb(i).resize((31, 17), 2, box=(1, 1, 20.5, 20)),
    "with a gap": lambda i: rgb(i).resize((9, 7), 2, reducing_gap=2.0),
    "crop, resize, mirror": lambda i: rgb(i).crop((3, 4, 30, 31)).resize((22, 22), 2).transpose(Image.FLIP_LEFT_RIGHT),
    "mirror, crop": lambda i: rgb(i).transpose(0).crop((3, 4, 30, 31)),
    "mirror, resize": lambda i: rgb(i).transpose(0).resize((22, 23), 2),
    "mirror twice, resize": lambda i: rgb(i).transpose(0).transpose(0).resize((22, 23), 2),
    "resize, mirror, crop": lambda i: rgb(i).resize((40, 41), 3).transpose(0).crop((1, 2, 30, 30)),
    "resize, crop": lambda i: rgb(i).resize((40, 41), 2).crop((5, 6, 29, 30)),
    "two resizes": lambda i: rgb(i).resize((40, 41), 2).resize((20, 21), 3),
    "upside down": lambda i: rgb(i).transpose(Image.FLIP_TOP_BOTTOM),
    "rotated": lambda i: rgb(i).rotate(30),
    "to grey": lambda i: i.convert("L"),
    "to grey by way of RGB": lambda i: rgb(i).crop((3, 4, 20, 21)).convert("L"),
    "to a palette": lambda i: rgb(i).convert("P"),
    "to an unknown mode": lambda i: i.convert("XYZ"),
    "with a matrix": lambda i: rgb(i).convert("L", (0.2, 0.5, 0.3, 0)),
    "as an array": lambda i: numpy.asarray(i),
    "as an array of RGB": lambda i: numpy.array(rgb(i)),
    "as an array, then an image": lambda i: (numpy.asarray(rgb(i)), i)[1],
    "as an array, then cropped": lambda i: (j := rgb(i), numpy.asarray(j), j.crop((3, 4, 20, 21)))[2],
    "load": lambda i: (i.load(), i)[1],
    "load, then convert": lambda i: (i.load(), rgb(i).crop((1, 1, 9, 9)))[1],
    "pixel by access": lambda i: rgb(i).load()[0, 0],
    "write by access": write_by_access,
    "getpixel": lambda i: rgb(i).getpixel((0, 0)),
    "putpixel": set_pixel,
    "tobytes": lambda i: rgb(i).tobytes(),
    "tobytes in another order": lambda i: rgb(i).tobytes("raw", "BGR"),
    "pickled": lambda i: pickle.loads(pickle.dumps(rgb(i).crop((1, 2, 9, 9)))),
    "pickled as opened": lambda i: pickle.loads(pickle.dumps(i)),
    "copy.copy": lambda i: copy.copy(rgb(i)),
    "copy.deepcopy": lambda i: copy.deepcopy(rgb(i).crop((1, 2, 9, 9))),
    "copy": lambda i: i.copy(),
    "thumbnail": thumbnail,
    "draft": drafted,
    "verify": verified,
    "verify, then pixels": lambda i: (verified(i), rgb(i))[1],
    "closed": lambda i: (i.close(), rgb(i))[1],
    "converted, then closed": lambda i: (j := rgb(i), i.close(), j)[2],
    "seek": lambda i: (i.seek(0), i.tell(), rgb(i))[2],
    "seek too far": lambda i: i.seek(1),
    "exif_transpose": lambda i: ImageOps.exif_transpose(i),
    "getexif": lambda i: dict(rgb(i).getexif()) | dict(i.getexif()),
    "brighter": lambda i: ImageEnhance.Brightness(rgb(i).crop((3, 4, 20, 21))).enhance(1.3),
    "blurred": lambda i: rgb(i).filter(ImageFilter.GaussianBlur(2)),
    "fit": lambda i: ImageOps.fit(rgb(i), (16, 16)),
    "split": lambda i: rgb(i).split()[1],
    "merged": lambda i: Image.merge("RGB", rgb(i).split()[::-1]),
    "histogram": lambda i: rgb(i).histogram(),
    "saved": saved,
    "pasted": pasted,
    "reduced": lambda i: rgb(i).reduce(2),
    "alpha": lambda i: (j := rgb(i), j.putalpha(7), j)[2],
    "equal": lambda i: (rgb(i) == rgb(i), i == i, rgb(i) == i, rgb(i) != rgb(i).crop((0, 0, 5, 5))),
    "not hashed": lambda i: hash(rgb(i)),
    "bands": lambda i: (i.getbands(), rgb(i).getbands(), rgb(i).getextrema()),
    "of the class": lambda i: (isinstance(i, JpegImageFile), isinstance(rgb(i), JpegImageFile), type(rgb(i)).__name__, type(i).__name__),
    "attributes": lambda i: (i.filename, i.width, i.height, i.mode, sorted(map(str, i.info)), rgb(i).info == i.info, rgb(i).palette),
    "with a transparent colour": lambda i: (i.info.update(transparency=(1, 2, 3)), rgb(i))[1],
}


@pytest.mark.parametrize("work", WORKS)
def test_the_same_as_pillow(work):
    for name, file in FILES.items():
        try:
            same(file, WORKS[work])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("lenient", [False, True])
def test_damaged_files_fail_as_with_pillow(name, lenient, monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", lenient)
    for work in ("as opened", "convert", "crop", "crop, resize, mirror", "resize, crop", "load", "as an array of RGB", "to grey"):
        same(DAMAGED[name], WORKS[work])


@pytest.mark.parametrize("name", CUT_OFF)
def test_a_file_that_is_cut_off_fails_at_the_call_that_reads_it(name):
    with pytest.raises(OSError, match="truncated|Truncated|unrecognized|failed to read"):
        Image.open(io.BytesIO(DAMAGED[name])).convert("RGB")


def random_step(chance: random.Random):
    """One operation, as a function of an image."""
    box = tuple(chance.randint(-2, 40) for _ in range(2))
    box += (box[0] + chance.randint(0, 40), box[1] + chance.randint(0, 40))
    size = (chance.randint(1, 60), chance.randint(1, 60))
    return chance.choice(
        [
            lambda i: i.convert("RGB"),
            lambda i: i.convert("RGB"),
            lambda i: i.crop(box),
            lambda i: i.crop(box),
            lambda i: i.crop((0, 0, max(1, i.width // 2), max(1, i.height - 1))),
            lambda i: i.crop((i.width // 3, i.height // 4, i.width, i.height)),
            lambda i: i.resize(size, 2),
            lambda i: i.resize(size, 3),
            lambda i: i.resize(size, chance.choice([0, 1, 2, 3, 4, 5])),
            lambda i: i.resize((size[0], i.height), 2),
            lambda i: i.transpose(0),
            lambda i: i.transpose(0),
            lambda i: i.transpose(chance.randint(0, 6)),
            lambda i: i.copy(),
            lambda i: i.convert("L"),
            lambda i: (i.load(), i)[1],
            lambda i: (numpy.asarray(i), i)[1],
            lambda i: (i.putpixel((0, 0), i.getpixel((i.width - 1, i.height - 1))), i)[1],
            lambda i: pickle.loads(pickle.dumps(i)),
            lambda i: i.rotate(90, expand=True),
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_random_operations_in_any_order(seed, native_calls):
    """All images on the way are compared at the end: what is done to one must not show in another."""
    chance = random.Random(seed)
    files = [file for name, file in FILES.items() if name not in ("GIF", "16 bits")]
    for number in range(150):
        file, choice = chance.choice(files), chance.random()

        def work(image, choice=choice):
            inner = random.Random(choice)
            images = [image]
            for _ in range(inner.randint(1, 7)):
                images.append(random_step(inner)(inner.choice(images[-2:])))
            return [facts(image) for image in images]

        with pillow_alone():
            expected = outcome(file, work)
        assert outcome(file, work) == expected, f"{seed}, {number}"
    assert sum(made for _, made in native_calls) > 50


@pytest.mark.parametrize("name", ["large", "large PNG"])
def test_the_recipe_of_training_runs_natively_and_decodes_once(native_calls, name):
    image = Image.open(io.BytesIO(FILES[name])).convert("RGB").crop((10, 20, 200, 180)).resize((64, 64), 2).transpose(0)
    assert native_calls == []
    array = numpy.array(image)
    assert len(native_calls) == 1 and native_calls[0][1] and array.shape == (64, 64, 3)
    assert image.getpixel((0, 0)) == tuple(array[0, 0])
    assert len(native_calls) == 1 and type(image) is Image.Image


def test_an_image_becomes_pillows_own_with_its_pixels():
    opened = Image.open(io.BytesIO(FILES["large"]))
    assert type(opened) is not JpegImageFile and isinstance(opened, JpegImageFile)
    opened.getpixel((0, 0))
    assert type(opened) is JpegImageFile and "_sluice" not in vars(opened)


def test_an_array_of_an_image_cannot_change_it():
    image = Image.open(io.BytesIO(FILES["large"])).convert("RGB")
    with pytest.raises(ValueError, match="read-only"):
        numpy.asarray(image)[0, 0] = 0
    array = numpy.array(image)
    before = image.tobytes()
    array[:] = 0
    assert image.tobytes() == before


def test_an_image_of_several_pictures_stays_pillows():
    file = io.BytesIO()
    pictures = [Image.new("RGB", (40, 30), color) for color in ("red", "blue")]
    pictures[0].save(file, "MPO", save_all=True, append_images=pictures[1:])
    with pillow_alone():
        expected = type(Image.open(io.BytesIO(file.getvalue())))
    assert type(Image.open(io.BytesIO(file.getvalue()))) is expected


@pytest.mark.parametrize("name", ["large", "large PNG", "rubbish behind a PNG", "interlaced PNG", "large WebP", "WebP with alpha", "animated WebP"])
@pytest.mark.parametrize("work", [rgb, lambda image: image.load(), lambda image: image.size, lambda image: image.crop((0, 0, 9, 9))])
def test_files_are_closed_where_pillow_closes_them(work, name, tmp_path):
    path = tmp_path / "picture"
    path.write_bytes(FILES[name])

    def closed():
        image = Image.open(path)
        file = image.fp
        work(image)
        given = open(path, "rb")
        work(Image.open(given))
        found = file.closed, image.fp is None, given.closed, given.tell()
        image.close()
        given.close()
        return found

    with pillow_alone():
        expected = closed()
    assert closed() == expected


def test_a_file_that_vanishes_after_open_is_still_read(tmp_path):
    path = tmp_path / "picture.jpg"
    path.write_bytes(FILES["large"])
    with pillow_alone():
        expected = Image.open(path).convert("RGB").tobytes()
    image = Image.open(path)
    path.unlink()
    assert image.convert("RGB").tobytes() == expected
    with pytest.raises(FileNotFoundError):
        Image.open(path)


def test_a_file_object_may_be_closed_or_changed_after_convert(tmp_path):
    memory = io.BytesIO(FILES["large"])
    with pillow_alone():
        expected = Image.open(io.BytesIO(FILES["large"])).convert("RGB").tobytes()
    image = Image.open(memory).convert("RGB")
    memory.seek(0)
    memory.write(bytes(5000))
    assert image.tobytes() == expected


def test_images_above_pillows_limit_are_left_to_pillow(monkeypatch, native_calls):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 40000)
    with pytest.warns(Image.DecompressionBombWarning):
        Image.open(io.BytesIO(FILES["large"])).convert("RGB").tobytes()
    assert native_calls == []


def test_many_threads_use_one_image_and_many():
    with pillow_alone():
        shared_expected = Image.open(io.BytesIO(FILES["large"])).convert("RGB").tobytes()
        own_expected = Image.open(io.BytesIO(FILES["large"])).convert("RGB").crop((5, 5, 105, 99)).resize((50, 50), 2).tobytes()
    shared = Image.open(io.BytesIO(FILES["large"])).convert("RGB")
    wrong = []

    def work():
        for _ in range(20):
            own = Image.open(io.BytesIO(FILES["large"])).convert("RGB").crop((5, 5, 105, 99)).resize((50, 50), 2)
            if own.tobytes() != own_expected or shared.crop((0, 0, *shared.size)).tobytes() != shared_expected:
                wrong.append("crop")
            if shared.getpixel((0, 0)) != tuple(shared_expected[:3]):
                wrong.append("pixel")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
