#!/usr/bin/env python3
"""A data set of N JPEG files made from real photographs, in torchvision's ImageFolder layout: CLASS/NUMBER.jpg.

The photographs come from Debian packages (photographs.txt, chosen by eye) and are never redistributed: their licences
are mixed, some share-alike. Every file is a random crop, scale and mirror image of one, with the fine noise of a camera. The noise also brings the
size of the files near that of ImageNet's (mean about 110 KB, 500 x 375, baseline 4:2:0). Deterministic: file number i depends on the seed and i
alone, not on N or on the number of processes.

    photographs.py [--count 4000]        prints the folder; made once, then taken from $SLUICE_CACHE/datasets
"""

import collections
import concurrent.futures
import dataclasses
import functools
import io
import pathlib
import signal

import numpy
from PIL import Image

import cache
import qt_resources

VERSION = 1  # to be raised with every change that changes the bytes
SEED = 20_26
PROCESSES = 2
CATALOGUE = pathlib.Path(__file__).with_name("photographs.txt")
SIZES = [(500, 375), (500, 375), (500, 375), (500, 333), (375, 500), (500, 400)]  # ImageNet's most frequent, by weight
AREA_SHARE = (0.35, 1.0)  # of the largest crop with the wanted proportions
NOISE_LEVELS = (2.0, 6.0)  # standard deviation of the luminance noise, of 255
QUALITIES = (92, 96)
LICENCES = {
    "gcompris-qt-data": "per picture: CC-BY, CC-BY-SA, CC0, public domain, GFDL, GPL-3+",
    "lomiri-wallpapers-16.04": "per file: CC-BY-4.0, CC-BY-SA-4.0, CC-BY-SA-3.0, CC0-1.0",
    "lomiri-wallpapers-20.04": "per file: CC-BY-SA-4.0 and others",
    "mate-backgrounds": "GPL-2+, CC-BY-SA-4.0",
    "opencv-doc": "BSD-3-Clause, Apache-2.0",
    "plasma-workspace-wallpapers": "GPL-2+",
}


@dataclasses.dataclass(frozen=True)
class Photograph:
    label: str
    package: str
    path: str  # in the package; behind '!' the path inside a Qt resource file

    def open(self, packages: pathlib.Path) -> Image.Image:
        file, _, inside = self.path.partition("!")
        path = packages / self.package / file
        return Image.open(io.BytesIO(_resources(path)[inside]) if inside else path).convert("RGB")


@functools.lru_cache(maxsize=2)
def _resources(path: pathlib.Path) -> dict[str, bytes]:
    return {resource.path: resource.data for resource in qt_resources.read(path.read_bytes())}


def catalogue() -> list[Photograph]:
    lines = CATALOGUE.read_text(encoding="utf-8").splitlines()
    return [Photograph(*line.split(" ", 2)) for line in lines if line and not line.startswith("#")]


def plan(photographs: list[Photograph], count: int) -> dict[Photograph, list[int]]:
    """Which photograph gives which file numbers: classes in turn, and within a class its photographs in turn."""
    labels = collections.defaultdict(list)
    for photograph in photographs:
        labels[photograph.label].append(photograph)
    names = sorted(labels)
    numbers = collections.defaultdict(list)
    for number in range(count):
        own = labels[names[number % len(names)]]
        numbers[own[number // len(names) % len(own)]].append(number)
    return dict(numbers)


def variation(photograph: Image.Image, number: int) -> Image.Image:
    """Crop, scale, mirror and noise of file `number`."""
    random = numpy.random.default_rng([SEED, number])
    width, height = SIZES[random.integers(len(SIZES))]
    scale = min(photograph.width / width, photograph.height / height) * random.uniform(*AREA_SHARE) ** 0.5
    left = random.uniform(0, photograph.width - width * scale)
    top = random.uniform(0, photograph.height - height * scale)
    box = (left, top, left + width * scale, top + height * scale)
    image = photograph.resize((width, height), Image.Resampling.LANCZOS, box=box, reducing_gap=2.0)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    noise = random.standard_normal((height, width, 1), dtype=numpy.float32) * random.uniform(*NOISE_LEVELS)
    return Image.fromarray(numpy.clip(numpy.asarray(image) + noise, 0, 255).astype(numpy.uint8))


def write_variations(packages: pathlib.Path, out: pathlib.Path, photograph: Photograph, numbers: list[int]) -> int:
    original = photograph.open(packages)  # decoded once for all its files
    for number in numbers:
        quality = QUALITIES[0] + number % (QUALITIES[1] - QUALITIES[0] + 1)
        path = out / photograph.label / f"{number:05d}.jpg"
        variation(original, number).save(path, quality=quality, subsampling="4:2:0", progressive=False, optimize=False)
    return len(numbers)


def fill(out: pathlib.Path, count: int) -> None:
    work = plan(catalogue(), count)
    used = sorted({photograph.package for photograph in work})
    cache.say(f"making {count} JPEG files from {len(work)} photographs of the Debian packages")
    for package in used:
        cache.say(f"  {package} ({LICENCES[package]}; see its usr/share/doc/{package}/copyright)")
    packages = cache.packages(used)
    for label in {photograph.label for photograph in work}:
        (out / label).mkdir()
    done, said = 0, 0
    # The children leave an interrupt from the keyboard to this process, which then ends them.
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        tasks = [pool.submit(write_variations, packages, out, photograph, numbers) for photograph, numbers in work.items()]
        try:
            for task in concurrent.futures.as_completed(tasks):
                done += task.result()
                if done * 4 // count > said:
                    said = done * 4 // count
                    cache.say(f"  {done} of {count} files")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


if __name__ == "__main__":
    cache.command(__doc__, "photographs", 4000, VERSION, fill)
