"""What the scripts of python/examples are started with, and data sets for them of any size."""

from __future__ import annotations

import io
import json
import random
import tarfile
import wave
from pathlib import Path

import numpy

# By script: its arguments, with the folder of the data in place of {data}.
_IMAGES = ["{data}/images"]
ARGUMENTS = {
    "plain_loop": _IMAGES,
    "lightning_images": _IMAGES,
    "lightning_datamodule": [],
    "accelerate_images": _IMAGES,
    "trainer_images": _IMAGES,
    "trainer_text": ["{data}/text/lines-0.jsonl"],
    "loader_factory": _IMAGES,
    "reference_recipe": _IMAGES,
    "speech_commands": ["{data}/words"],
    "webdataset_shards": ["{data}/shards/shard-{0..3}.tar"],
    "streamed_text": ["{data}/text"],
    "distributed": _IMAGES,
    "length_buckets": ["{data}/text/lines-0.jsonl"],
}


def arguments_of(script: str, data: Path) -> list[str]:
    return [argument.replace("{data}", str(data)) for argument in ARGUMENTS[script]]


def write_words(folder: Path, words: int = 14, samples: int = 1500) -> None:
    """Two tones with noise, each of a length of its own, `samples` at least."""
    generator = numpy.random.default_rng(3)
    for number in range(words):
        name = "yes" if number % 2 else "no"
        (folder / name).mkdir(parents=True, exist_ok=True)
        length = samples + 137 * (number % 14)
        tone = numpy.sin(numpy.arange(length) * (0.1 if number % 2 else 0.3)) + generator.normal(0, 0.1, length)
        with wave.open(str(folder / name / f"{number:04d}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes((8000 * tone).astype(numpy.int16).tobytes())


def write_shards(folder: Path, images: Path) -> None:
    folder.mkdir()
    files = sorted(images.rglob("*.jp*g"))
    for shard in range(4):
        with tarfile.open(folder / f"shard-{shard}.tar", "w") as tar:
            for number, file in enumerate(files[shard::4]):
                for extension, content in (("jpg", file.read_bytes()), ("cls", str(number % 2).encode())):
                    member = tarfile.TarInfo(f"{shard}-{number}.{extension}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def write_text(folder: Path, lines: int = 40) -> None:
    """Three files."""
    folder.mkdir()
    letters = random.Random(8)
    for number in range(3):
        texts = ["".join(letters.choices("etaoin shrdlu", k=letters.randint(6, 40))) for _ in range(lines)]
        (folder / f"lines-{number}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
