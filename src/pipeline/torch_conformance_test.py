"""The native pipeline against torchvision's transforms on PIL images, draw for draw and byte for byte.

Runs the program `sluice-pipeline-probe` of the build tree in SLUICE_BUILD. Photographs come from the folder in
SLUICE_PHOTOGRAPHS, or the data set in the cache if it has been made; the images made here cover what photographs do not
(odd sizes, subsamplings, progressive, restart markers, grey, CMYK).
"""

import functools
import io
import json
import os
import pathlib
import random
import subprocess
import sys
from types import SimpleNamespace

import numpy
import PIL
import pytest
import torch
import torchvision.transforms as transforms
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.functional import pil_to_tensor

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "src/pipeline/testing")]
from client_lowering import ops_of  # noqa: E402
from sluice.lowering.file_table import FileTable  # noqa: E402

BUILD = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
PROBE = str(BUILD / "src/pipeline/sluice-pipeline-probe")
CACHE = pathlib.Path(os.environ.get("SLUICE_CACHE", "/var/cache/sluice"))

torch.set_num_threads(1)  # As in executors. More wait for each other, and compute meanwhile.
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SCALE, RATIO = [0.08, 1.0], [3 / 4, 4 / 3]


def probe(*arguments, lines):
    text = "".join(" ".join(str(word) for word in line) + "\n" for line in lines)
    result = subprocess.run([PROBE, *arguments], input=text.encode(), capture_output=True, timeout=600)
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout


def log_ratio(ratio):
    return torch.log(torch.tensor(ratio)).tolist()


# --- images ---------------------------------------------------------------------------------------------------------


def picture(width, height, seed):
    """A gradient, some hard edges and noise: smooth enough to be a picture, rough enough to show any difference."""
    generator = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float64)
    planes = []
    for _ in range(3):
        a, b, phase = generator.uniform(0.01, 0.2, 3)
        plane = 128 + 90 * numpy.sin(a * x + phase) * numpy.cos(b * y) + 60 * ((x // 17 + y // 23) % 2)
        planes.append(plane + generator.normal(0, 12, (height, width)))
    return Image.fromarray(numpy.clip(numpy.stack(planes, 2), 0, 255).astype(numpy.uint8))


def write_images(folder):
    names = []

    def save(name, image, **options):
        image.save(folder / name, "JPEG", **options)
        names.append(name)

    sizes = [(500, 375), (333, 251), (64, 48), (17, 23), (1024, 700), (225, 224), (8, 9), (1, 1), (3, 200), (131, 97)]
    for number, (width, height) in enumerate(sizes):
        image = picture(width, height, number)
        for subsampling in (0, 1, 2):
            save(f"{width}x{height}-s{subsampling}.jpg", image, quality=92, subsampling=subsampling)
        save(f"{width}x{height}-prog.jpg", image, quality=80, progressive=True)
        save(f"{width}x{height}-restart.jpg", image, quality=90, restart_marker_blocks=3)
        save(f"{width}x{height}-grey.jpg", image.convert("L"), quality=90)
        save(f"{width}x{height}-cmyk.jpg", image.convert("CMYK"), quality=90)
        save(f"{width}x{height}-rgb.jpg", image, quality=90, keep_rgb=True)
        save(f"{width}x{height}-low.jpg", image, quality=10, subsampling=2)
        rotated = Image.Exif()
        rotated[0x0112] = 6
        save(f"{width}x{height}-exif.jpg", image, exif=rotated)
    return names


@pytest.fixture(scope="session")
def image_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    return folder, write_images(folder)


def photographs():
    made = sorted(CACHE.glob("datasets/photographs-*"))
    folder = os.environ.get("SLUICE_PHOTOGRAPHS") or (made[-1] if made else None)
    if folder is None:
        return None, []
    names = sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*.jp*g"))
    random.Random(0).shuffle(names)
    return pathlib.Path(folder), names[: int(os.environ.get("SLUICE_PHOTOGRAPH_COUNT", "60"))]


# --- comparison -----------------------------------------------------------------------------------------------------


def native_samples(tmp_path, folder, names, ops, seeds, mode="samples"):
    return probe(mode, write_specification(tmp_path, folder, names, ops), lines=enumerate(seeds))


def write_specification(tmp_path, folder, names, ops):
    table = FileTable(SimpleNamespace(root=str(folder), samples=[(str(folder / name), 0) for name in names]), None)
    source = {"kind": "image_files", "root": table.root, "files": table.count}
    spec = {"version": 2, "pillow": int(PIL.__version__.split(".")[0]), "source": source, "ops": ops}
    path = tmp_path / "specification"
    path.write_bytes(json.dumps(spec).encode() + b"\n" + table.blob)
    return str(path)


# torch.manual_seed also keeps the stack, for the generators of accelerators: half a millisecond of a CPU.
seed_torch = torch.default_generator.manual_seed


@functools.lru_cache(maxsize=120)  # The images that most tests here are about.
def decoded(path):
    return Image.open(path).convert("RGB")


def torch_sample(path, transform, seed):
    image = decoded(path).copy()
    seed_torch(seed)
    return transform(image).numpy()


def compare(tmp_path, folder, names, ops, transform, first_seed=1000):
    seeds = [first_seed + index for index in range(len(names))]
    data = native_samples(tmp_path, folder, names, ops, seeds)
    expected = [torch_sample(folder / name, transform, seed) for name, seed in zip(names, seeds)]
    array = numpy.frombuffer(data, dtype=expected[0].dtype).reshape((len(names),) + expected[0].shape)
    different = {}
    for name, native, wanted in zip(names, array, expected):
        if native.tobytes() != wanted.tobytes():
            gap = numpy.abs(native.astype(numpy.float64) - wanted.astype(numpy.float64))
            different[name] = (gap.max(), (gap == 0).mean())
    worst = max((gap for gap, _ in different.values()), default=0)
    print(f"{len(names)} images, {len(different)} differ, largest difference {worst}")
    assert not different


def failures(folder, names, ops, seeds=1, fails=True):
    """What the native pipeline says of files of which it makes nothing. `fails`: whether it has to; None: it may."""
    result = subprocess.run(
        [PROBE, "samples", write_specification(folder, folder, names, ops)],
        input="".join(f"{index} {seed}\n" for index in range(len(names)) for seed in range(seeds)).encode(),
        capture_output=True,
        timeout=60,
    )
    assert fails is None or (result.returncode == 1 and result.stdout == b"")
    return result.stderr.decode().splitlines()


def assert_left_to_pillow(path, file, error):
    """The native pipeline makes nothing of these bytes. Pillow says `error` of them, or reads them if it is None."""
    path.write_bytes(file)
    if error is None:
        Image.open(io.BytesIO(file)).convert("RGB")
    else:
        with pytest.raises(Exception, match=error):
            Image.open(io.BytesIO(file)).convert("RGB")
    assert len(failures(path.parent, [path.name], [{"op": "decode_rgb"}, {"op": "center_crop", "size": [8]}])) == 1


CROP = {"op": "random_resized_crop", "size": [224, 224], "scale": SCALE, "ratio": RATIO, "log_ratio": log_ratio(RATIO)}
FLIP = {"op": "random_horizontal_flip", "p": 0.5}
NORMALIZE = {"op": "normalize", "mean": MEAN, "std": STD}
PIPELINES = {
    "train": (
        [{"op": "decode_rgb"}, CROP, FLIP, {"op": "to_tensor"}, NORMALIZE],
        transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        ),
    ),
    "train-bytes": (
        [{"op": "decode_rgb"}, CROP, FLIP],
        transforms.Compose(
            [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
        ),
    ),
    "train-bicubic": (
        [{"op": "decode_rgb"}, dict(CROP, interpolation="bicubic", size=[160, 192]), FLIP],
        transforms.Compose(
            [
                transforms.RandomResizedCrop((160, 192), interpolation=transforms.InterpolationMode.BICUBIC),
                transforms.RandomHorizontalFlip(),
                transforms.PILToTensor(),
            ]
        ),
    ),
    "evaluate": (
        [
            {"op": "decode_rgb"},
            {"op": "resize", "size": [256]},
            {"op": "center_crop", "size": [224, 224]},
            {"op": "to_tensor"},
            NORMALIZE,
        ],
        transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        ),
    ),
    "stretch": (
        [{"op": "decode_rgb"}, {"op": "resize", "size": [97, 131]}, FLIP, {"op": "to_tensor"}],
        transforms.Compose([transforms.Resize((97, 131)), transforms.RandomHorizontalFlip(), transforms.ToTensor()]),
    ),
}


# Each operation alone, behind something that brings the images to one size, or before it. The client lowers them.
TO_SQUARE, FLIP_AFTER = transforms.Resize((64, 51)), transforms.RandomHorizontalFlip()
JITTER = {"brightness": (0.2, 1.8), "contrast": (0.2, 1.8), "saturation": (0.2, 1.8), "hue": (-0.5, 0.5)}
NEAREST, BILINEAR, BICUBIC = (getattr(transforms.InterpolationMode, name) for name in ("NEAREST", "BILINEAR", "BICUBIC"))
OPERATIONS = {
    "nearest": [transforms.Resize((97, 131), NEAREST)],
    "nearest-crop": [transforms.RandomResizedCrop((33, 48), interpolation=NEAREST), FLIP_AFTER],
    "bicubic": [transforms.Resize((97, 131), BICUBIC)],
    "vertical-flip": [transforms.RandomHorizontalFlip(), transforms.RandomVerticalFlip(), TO_SQUARE],
    "flips-after": [TO_SQUARE, transforms.RandomVerticalFlip(), FLIP_AFTER, transforms.CenterCrop((40, 33))],
    "pad": [transforms.Pad((3, 4, 5, 6), fill=(9, 200, 77)), TO_SQUARE],
    **{f"pad-{mode}": [TO_SQUARE, transforms.Pad((7, 70, 130, 1), padding_mode=mode)] for mode in ("edge", "reflect", "symmetric")},
    "random-crop": [TO_SQUARE, transforms.RandomCrop((64, 51), padding=4), FLIP_AFTER],
    "random-crop-padded": [transforms.RandomCrop((200, 131), pad_if_needed=True), FLIP_AFTER],
    "random-crop-reflected": [transforms.RandomCrop((90, 91), 3, True, padding_mode="reflect"), FLIP_AFTER],
    "random-crop-v2": [v2.RandomCrop((200, 131), pad_if_needed=True), FLIP_AFTER],
    "random-crop-v2-padded": [v2.RandomCrop((200, 131), padding=[1, 2, 3, 4], pad_if_needed=True, fill=5), FLIP_AFTER],
    "centre-crop-padded": [transforms.CenterCrop((100, 101))],
    "grayscale": [transforms.Grayscale(3), TO_SQUARE],
    "random-grayscale": [TO_SQUARE, transforms.RandomGrayscale(0.5)],
    **{f"jitter-{name}": [TO_SQUARE, transforms.ColorJitter(**{name: JITTER[name]}), FLIP_AFTER] for name in JITTER},
    "jitter": [TO_SQUARE, transforms.ColorJitter(0.8, 0.8, 0.8, 0.5), FLIP_AFTER],
    "jitter-v2": [TO_SQUARE, v2.ColorJitter(0.8, 0.8, 0.8, 0.5), v2.RandomGrayscale(0.3)],
    "apply": [TO_SQUARE, transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.RandomVerticalFlip()], 0.8), FLIP_AFTER],
    "apply-v2": [TO_SQUARE, v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomRotation(9)], 0.3), FLIP_AFTER],
    "rotation": [TO_SQUARE, transforms.RandomRotation(180), FLIP_AFTER],
    "rotation-bilinear": [TO_SQUARE, v2.RandomRotation((-20, 300), BILINEAR, fill=[3, 200, 100]), FLIP_AFTER],
    **{f"rotation-{degrees}": [transforms.CenterCrop(61), transforms.RandomRotation((degrees, degrees), fill=9)] for degrees in (0, 90, 180, 270, -360)},
    # What changes pixels waits behind what only moves them (docs/designs/ordering.md).
    "jitter-before": [transforms.ColorJitter(0.8, 0.8, 0.8, 0.5), transforms.RandomResizedCrop((64, 51)), FLIP_AFTER],
    "jitter-before-crop": [transforms.Resize(70), v2.ColorJitter(0.4, 0, 0.4, 0.1), transforms.RandomGrayscale(0.3), transforms.RandomCrop((64, 51)), FLIP_AFTER],
    "jitter-before-nearest": [transforms.ColorJitter(0.8, 0.8, 0.8, 0.5), FLIP_AFTER, transforms.Resize((33, 48), NEAREST)],
    "rotation-before": [transforms.RandomRotation(180, fill=9), transforms.RandomResizedCrop((64, 51)), FLIP_AFTER],
    "rotation-before-bilinear": [v2.RandomRotation(30, BILINEAR), transforms.RandomVerticalFlip(), transforms.CenterCrop((70, 51)), FLIP_AFTER],
    "sharpness-before": [transforms.RandomAdjustSharpness(1.7, 0.7), transforms.RandomResizedCrop((64, 51)), transforms.RandomEqualize(0.7), transforms.CenterCrop(40)],
    "invert": [TO_SQUARE, transforms.RandomInvert(0.5), FLIP_AFTER],
    "posterize": [TO_SQUARE, transforms.RandomPosterize(3, 0.7), v2.RandomPosterize(5, 0.3), FLIP_AFTER],
    "solarize": [TO_SQUARE, transforms.RandomSolarize(99.5, 0.7), v2.RandomSolarize(180, 0.3), FLIP_AFTER],
    "sharpness": [TO_SQUARE, transforms.RandomAdjustSharpness(1.7, 0.7), v2.RandomAdjustSharpness(0.25, 0.5), FLIP_AFTER],
    "autocontrast": [TO_SQUARE, transforms.RandomAutocontrast(0.7), v2.RandomAutocontrast(0.3), FLIP_AFTER],
    "equalize": [TO_SQUARE, transforms.RandomEqualize(0.7), v2.RandomEqualize(0.3), FLIP_AFTER],
    "equalize-small": [transforms.CenterCrop((2, 300)), transforms.RandomEqualize(1), transforms.RandomAdjustSharpness(3, 1), FLIP_AFTER],
    "two-resizes": [transforms.Resize(60), transforms.CenterCrop(50), TO_SQUARE],
    "largest-side": [transforms.Resize(60, max_size=80), transforms.CenterCrop(80)],
    "erasing": [TO_SQUARE, transforms.ToTensor(), transforms.Normalize(MEAN, STD), transforms.RandomErasing(0.8)],
    "erasing-before": [TO_SQUARE, transforms.ToTensor(), v2.RandomErasing(0.8, value=[0.3, 0.7, 2]), v2.Normalize(MEAN, STD)],
    "v2": [v2.RandomResizedCrop((64, 51)), v2.RandomHorizontalFlip(), v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)],
    "v2-bytes": [v2.Resize(70, interpolation=BICUBIC), v2.CenterCrop(65), v2.PILToTensor(), v2.RandomVerticalFlip(), v2.CenterCrop(80)],
}

# Each of these draws which operation it is, so several seeds for each image.
SQUARE, WIDE = transforms.Resize((65, 65)), transforms.Resize((51, 64))
AUGMENTATIONS = {
    "trivial": [SQUARE, transforms.TrivialAugmentWide(), FLIP_AFTER],
    "trivial-bilinear": [WIDE, transforms.TrivialAugmentWide(20, BILINEAR, [1, 2, 250]), FLIP_AFTER],
    "trivial-v2": [WIDE, v2.TrivialAugmentWide(fill=77), FLIP_AFTER],
    "trivial-before": [transforms.TrivialAugmentWide(), transforms.RandomResizedCrop((64, 51)), FLIP_AFTER],
    "rand-before": [WIDE, transforms.RandAugment(3, 15), FLIP_AFTER, transforms.CenterCrop((40, 51))],
    "auto-before": [SQUARE, v2.AutoAugment(interpolation=BILINEAR, fill=3), transforms.RandomCrop(48), FLIP_AFTER],
    "rand": [WIDE, transforms.RandAugment(), FLIP_AFTER],
    "rand-strong": [SQUARE, transforms.RandAugment(3, 27, 31, BILINEAR, 5.5), FLIP_AFTER],
    "rand-v2": [WIDE, v2.RandAugment(4, 30, interpolation=BILINEAR), FLIP_AFTER],
    **{f"auto-{policy.value}": [WIDE, transforms.AutoAugment(policy), FLIP_AFTER] for policy in transforms.AutoAugmentPolicy},
    **{f"auto-v2-{policy.value}": [WIDE, v2.AutoAugment(policy, BILINEAR, (9, 8, 7)), FLIP_AFTER] for policy in v2.AutoAugmentPolicy},
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_are_the_same_bytes(tmp_path, image_folder, name):
    folder, names = image_folder
    transform, obstacles = transforms.Compose([*AUGMENTATIONS[name], transforms.PILToTensor()]), []
    ops = ops_of(transform, obstacles)
    assert not obstacles
    compare(tmp_path, folder, names * int(os.environ.get("SLUICE_AUGMENTATION_ROUNDS", "3")), ops, transform)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_the_same_bytes(tmp_path, image_folder, name):
    folder, names = image_folder
    steps = OPERATIONS[name]
    if not any(type(step).__name__ in ("ToTensor", "ToImage", "PILToTensor") for step in steps):
        steps = [*steps, transforms.PILToTensor()]
    transform, obstacles = transforms.Compose(steps), []
    ops = ops_of(transform, obstacles)
    assert not obstacles
    compare(tmp_path, folder, names, ops, transform)


@pytest.mark.parametrize("name", PIPELINES)
def test_made_images_are_the_same_bytes(tmp_path, image_folder, name):
    folder, names = image_folder
    ops, transform = PIPELINES[name]
    for first_seed in (1000, 2000):
        compare(tmp_path, folder, names, ops, transform, first_seed)


@pytest.mark.parametrize("name", PIPELINES)
def test_photographs_are_the_same_bytes(tmp_path, name):
    folder, names = photographs()
    if not names:
        pytest.skip("no photographs: SLUICE_PHOTOGRAPHS names no folder and the cache has none")
    compare(tmp_path, folder, names, *PIPELINES[name])


def test_a_centre_crop_alone_decodes_only_its_part(tmp_path, image_folder):
    folder, names = image_folder
    large = [name for name in names if name.startswith(("500x", "1024x", "333x", "131x"))]
    for side in (96, 33):
        ops = [{"op": "decode_rgb"}, {"op": "center_crop", "size": [side]}, FLIP]
        transform = transforms.Compose(
            [transforms.CenterCrop(side), transforms.RandomHorizontalFlip(), transforms.PILToTensor()]
        )
        compare(tmp_path, folder, large, ops, transform)


# --- random numbers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "scale, ratio, probability",
    [(SCALE, RATIO, 0.5), ([0.2, 1.0], RATIO, 0.1), ([0.9, 1.0], [0.3, 3.0], 0.7), ([1.0, 1.0], [2.0, 2.0], 1.0)],
)
def test_crops_and_flips_are_torchs_own(scale, ratio, probability):
    shapes = random.Random(7)
    cases = [(shapes.randint(1, 900), shapes.randint(1, 900), seed) for seed in range(10_000)]
    lines = [(*case, *scale, *ratio, *log_ratio(ratio), probability) for case in cases]
    native = [tuple(int(word) for word in line.split()) for line in probe("crops", lines=lines).decode().splitlines()]
    wanted = []
    for height, width, seed in cases:
        seed_torch(seed)
        box = transforms.RandomResizedCrop.get_params(torch.empty(3, height, width, device="meta"), scale, ratio)
        flip = int(bool(torch.rand(1) < probability))
        wanted.append((*box, flip))
    different = [(case, got, want) for case, got, want in zip(cases, native, wanted) if got != want]
    print(f"{len(cases)} draws, {len(different)} differ: {different[:3]}")
    assert not different


def test_sample_seeds_are_the_contracts():
    def seed(base_seed, epoch, position):
        mask = 2**64 - 1
        z = (base_seed + 0x9E3779B97F4A7C15 * (epoch * 2**40 + position + 1)) & mask
        z ^= z >> 30
        z = z * 0xBF58476D1CE4E5B9 & mask
        z ^= z >> 27
        z = z * 0x94D049BB133111EB & mask
        z ^= z >> 31
        return z & 0xFFFFFFFF

    cases = [(0, 0, 0), (2**64 - 1, 3, 7), (1234567, 2**23, 2**39 + 5), (42, 1, 2**40 - 1)]
    assert [int(line) for line in probe("seeds", lines=cases).split()] == [seed(*case) for case in cases]


# --- what torchvision refuses -----------------------------------------------------------------------------------------


def test_every_truncated_file_is_refused_as_pil_refuses_it(tmp_path):
    whole = io.BytesIO()
    picture(300, 200, 1).save(whole, "JPEG", quality=90)
    whole = whole.getvalue()
    names = []
    for cut in (1, 2, 10, 500, len(whole) // 2, len(whole) - 40):
        names.append(f"cut-{cut}.jpg")
        (tmp_path / names[-1]).write_bytes(whole[:-cut])
        with pytest.raises(OSError):
            Image.open(tmp_path / names[-1]).convert("RGB")
    lines = failures(tmp_path, names, [{"op": "decode_rgb"}, CROP], seeds=20)
    assert len(lines) == 20 * len(names)
    assert all(line.startswith("DataLoss: ") and ".jpg: " in line for line in lines)
