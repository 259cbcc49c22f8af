"""Native and Python executors give the same batches: lowering is invisible."""

from __future__ import annotations

import dataclasses

import numpy
import pytest
import torch
from PIL import Image
from torch.utils.data import Subset
from torchvision import transforms
from torchvision.datasets import ImageFolder

from sluice.torch import DataLoader
from test_loader import equal
from test_lowering import NATIVE


def batches_of(root, case, monkeypatch, lowering, subset=None):
    monkeypatch.setenv("SLUICE_LOWERING", "on" if lowering else "off")
    folder = ImageFolder(root, transforms.Compose(NATIVE[case][0]))
    dataset = folder if subset is None else Subset(folder, subset)
    loader = DataLoader(dataset, batch_size=5, shuffle=True, num_workers=2)
    assert loader.explain().startswith("executor: native" if lowering else "executor: python")
    torch.manual_seed(17)
    return [batch for _ in range(2) for batch in loader]


@pytest.mark.parametrize("case", NATIVE)
def test_same_bytes_from_the_fake_feeder(make_fake, image_root, case, monkeypatch):
    fake = make_fake()
    assert equal(batches_of(image_root, case, monkeypatch, False), batches_of(image_root, case, monkeypatch, True))
    assert fake.ask()["pipelines"] == ["python", "native"]


@pytest.mark.parametrize("case", NATIVE)
def test_same_bytes_from_the_real_feeder(real_feeder, make_fake, image_root, case, monkeypatch):
    native = batches_of(image_root, case, monkeypatch, True)
    make_fake()  # From here on: torchvision itself.
    python = batches_of(image_root, case, monkeypatch, False)
    for (images, labels), (native_images, native_labels) in zip(python, native, strict=True):
        assert torch.equal(labels, native_labels)
        assert images.dtype is native_images.dtype and images.shape == native_images.shape
        difference = (images.double() - native_images.double()).abs().max().item()
        assert difference == 0, f"the images differ by up to {difference}"


def test_subsets(any_feeder, image_root, monkeypatch):
    case, subset = "training on ImageNet", [3, 22, 7, -5, 1, 1]
    python, native = (batches_of(image_root, case, monkeypatch, lowering, subset) for lowering in (False, True))
    assert equal(python, native)


def save_grey(path, number):
    """With 16 bits, which only Pillow decodes."""
    Image.fromarray(numpy.random.default_rng(number).integers(0, 60000, (40, 50), dtype=numpy.uint16)).save(path)


def epochs_of(folder, monkeypatch, lowering):
    monkeypatch.setenv("SLUICE_LOWERING", "on" if lowering else "off")
    loader = DataLoader(ImageFolder(folder, transforms.Compose(NATIVE["training on ImageNet"][0])), batch_size=2, shuffle=True, num_workers=2)
    torch.manual_seed(17)
    return [batch for _ in range(2) for batch in loader], loader.explain()


def test_a_mixed_folder_is_native_file_by_file(real_feeder, make_fake, image_root, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "mixed" / "cat"
    folder.mkdir(parents=True)
    for number, path in enumerate(sorted(image_root.rglob("*.jpg"))):
        mode, extension = (("RGB", "png"), ("RGBA", "webp"), ("P", "png"), ("RGB", "webp"), ("1", "png"), ("RGB", "jpg"))[number % 6]
        Image.open(path).convert(mode).save(folder / f"{number}.{extension}")
    save_grey(folder / "odd.png", 1)
    frames = [Image.new("RGB", (50, 40), colour) for colour in ("red", "green")]
    frames[0].save(folder / "odd.webp", save_all=True, append_images=frames[1:])
    native, words = epochs_of(folder.parent, monkeypatch, True)
    assert "\n  3 JPEG, 12 PNG and 8 WebP files -> images" in words and "4 by this process" in words and caplog.text == ""
    make_fake()
    assert equal(epochs_of(folder.parent, monkeypatch, False)[0], native)


def test_many_files_that_only_pillow_decodes_are_left_to_python_executors(real_feeder, make_fake, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "grey" / "cat"
    folder.mkdir(parents=True)
    for number in range(60):
        save_grey(folder / f"{number:02d}.png", number)
    native, words = epochs_of(folder.parent, monkeypatch, True)
    assert caplog.text.count("8 of 8 batches failed natively") == 2 and "16 bits of grey" in caplog.text, "once in each epoch"
    assert " python " in words
    make_fake()
    assert equal(epochs_of(folder.parent, monkeypatch, False)[0], native)


@pytest.mark.parametrize("fault", [dict(refuse_native=True), dict(fail_native=True)])
def test_a_feeder_without_the_native_executor_changes_nothing(make_fake, image_root, monkeypatch, fault):
    case = "training on ImageNet"
    fake = make_fake()
    expected = [[tensor.clone() for tensor in batch] for batch in batches_of(image_root, case, monkeypatch, True)]
    fake.stop()
    make_fake(**fault)
    assert equal(expected, batches_of(image_root, case, monkeypatch, True))


BROKEN = {
    "no JPEG": (lambda whole: b"not a JPEG at all", "UnidentifiedImageError"),
    "empty": (lambda whole: b"", "UnidentifiedImageError"),
    "cut off": (lambda whole: whole[:-100], "OSError: image file is truncated"),
    "only its header": (lambda whole: whole[:30], "Error"),
    "gone": (lambda whole: None, "FileNotFoundError"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_raises_what_the_original_raises(any_feeder, tmp_path, image_root, case):
    read_past_a_broken_file(tmp_path, image_root, case)


def test_the_log_names_the_file_and_index_of_a_broken_sample(real_feeder, tmp_path, image_root, caplog):
    read_past_a_broken_file(tmp_path, image_root, "cut off")
    assert [line for line in caplog.messages if line.startswith("a sample fails: ")] == [
        f"a sample fails: sample 0 of the batch, index 1: {tmp_path}/images/cat/1.jpg: the file is truncated"]


def read_past_a_broken_file(tmp_path, image_root, case):
    damage, error = BROKEN[case]
    folder = tmp_path / "images" / "cat"
    folder.mkdir(parents=True)
    whole = next(image_root.rglob("*.jpg")).read_bytes()
    for name in ("0.jpg", "1.jpg", "2.jpg"):
        (folder / name).write_bytes(whole)
    dataset = ImageFolder(tmp_path / "images", transforms.Compose(NATIVE["training on ImageNet"][0]))
    broken = damage(whole)
    (folder / "1.jpg").unlink() if broken is None else (folder / "1.jpg").write_bytes(broken)
    batches = iter(DataLoader(dataset, batch_size=1, num_workers=2))
    next(batches)
    with pytest.raises(Exception) as caught:
        next(batches)
    assert error in str(caught.value)
    assert next(batches)[1].item() == 0
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("key, found", [(-1, True), (23, False)])
def test_keys_outside_the_folder_are_judged_by_the_folder(any_feeder, image_root, key, found):
    dataset = ImageFolder(image_root, transforms.Compose(NATIVE["evaluation on ImageNet"][0]))
    batches = iter(DataLoader(dataset, batch_size=1, num_workers=1, sampler=[0, key, 1]))
    next(batches)
    if found:
        assert next(batches)[1].item() == 1
    else:
        with pytest.raises(IndexError):
            next(batches)
    assert next(batches)[1].item() == 0


def test_a_specification_that_the_real_feeder_does_not_know(real_feeder, image_root, monkeypatch, caplog):
    """As after an update of the client alone."""
    from sluice.loader import pipeline

    def from_the_future(*arguments, **options):
        native = lower(*arguments, **options)
        return dataclasses.replace(native, header=native.header.replace(b"decode_rgb", b"decode_lab"))

    lower = pipeline.lower
    monkeypatch.setattr(pipeline, "lower", from_the_future)
    dataset = ImageFolder(image_root, transforms.Compose(NATIVE["evaluation on ImageNet"][0]))
    batches = list(DataLoader(dataset, batch_size=5, num_workers=2))
    assert [len(images) for images, _ in batches] == [5, 5, 5, 5, 3]
    assert "the feeder does not accept it" in caplog.text and "decode_lab" in caplog.text


@pytest.mark.parametrize("pixels_max, outcome", [(1_000, "DecompressionBombError"), (3_000, "DecompressionBombWarning")])
def test_an_image_with_too_many_pixels_is_pillows_affair(real_feeder, image_root, monkeypatch, pixels_max, outcome):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pixels_max)
    folder = ImageFolder(image_root, transforms.Compose(NATIVE["training on ImageNet"][0]))
    loader = DataLoader(folder, batch_size=5, num_workers=2)
    assert loader.explain().startswith("executor: native")
    if outcome == "DecompressionBombError":
        with pytest.raises(Exception, match=outcome):
            list(loader)
    else:
        with pytest.warns(Image.DecompressionBombWarning):
            assert len(list(loader)) == 5
