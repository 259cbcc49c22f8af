#!/usr/bin/env python3
"""A data set of spoken English: N WAV files (16 kHz, mono, 16 bit, 2 to 10 s) by espeak-ng, and what is said in them.

    speech.py [--count 400]              prints the folder: 0000.wav ..., and transcripts.tsv with file, voice, text

The text is Debian's copies of the free licences, which every Debian machine has. Deterministic: clip i depends on the
seed and i alone.
"""

import concurrent.futures
import pathlib
import random
import re
import shutil
import subprocess
import sys
import wave

import numpy

import cache

VERSION = 1
SEED = 20_26
RATE_HERTZ = 16_000
SECONDS = (2.0, 10.0)
PROCESSES = 2
TEXTS = pathlib.Path("/usr/share/common-licenses")
LICENCES = ("Apache-2.0", "Artistic", "BSD", "GFDL-1.3", "GPL-2", "GPL-3", "LGPL-3", "MPL-2.0")
VOICES = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-029", "en-us+f3", "en-gb+f2")
WORDS_PER_MINUTE = (140, 190)
WORDS = (6, 22)  # about 2.5 to 9 s
ATTEMPTS = 20


def words() -> list[str]:
    text = " ".join((TEXTS / name).read_text(encoding="utf-8", errors="ignore") for name in LICENCES)
    return [word for word in text.split() if re.fullmatch(r"[A-Za-z][a-z]*[,.;]?", word)]


def resample(samples: numpy.ndarray, rate_from: int, rate_to: int) -> numpy.ndarray:
    """Band-limited, by cutting (or padding) the spectrum. A clip is short enough to be transformed whole."""
    length = len(samples) * rate_to // rate_from
    spectrum = numpy.fft.rfft(samples.astype(numpy.float64))[: length // 2 + 1]
    result = numpy.fft.irfft(spectrum, n=length) * (length / len(samples))
    return numpy.clip(numpy.rint(result), -32768, 32767).astype("<i2")


def speak(text: str, voice: str, words_per_minute: int, path: pathlib.Path) -> numpy.ndarray:
    command = ["espeak-ng", "-v", voice, "-s", str(words_per_minute), "-w", path, "--", text]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    with wave.open(str(path)) as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2")
        return resample(samples, file.getframerate(), RATE_HERTZ)


def write_clip(out: pathlib.Path, number: int, vocabulary: list[str]) -> str:
    """Writes clip `number`; returns its line of transcripts.tsv."""
    choose = random.Random(f"{SEED} {number}")
    path = out / f"{number:04d}.wav"
    voice = VOICES[number % len(VOICES)]
    for _ in range(ATTEMPTS):  # a text of long or short words may miss the limits
        begin, length = choose.randrange(len(vocabulary) - WORDS[1]), choose.randint(*WORDS)
        text = " ".join(vocabulary[begin : begin + length])
        samples = speak(text, voice, choose.randint(*WORDS_PER_MINUTE), path)
        if SECONDS[0] <= len(samples) / RATE_HERTZ <= SECONDS[1]:
            break
    else:
        raise RuntimeError(f"no text of {SECONDS} s for clip {number} in {ATTEMPTS} attempts")
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HERTZ)
        file.writeframes(samples.tobytes())
    return f"{path.name}\t{voice}\t{text}\n"


def fill(out: pathlib.Path, count: int) -> None:
    if not shutil.which("espeak-ng"):
        sys.exit("speech.py: no espeak-ng on this machine\n  way out: toolchain/install.sh cluster (Debian package espeak-ng)")
    cache.say(f"making {count} spoken clips with espeak-ng (GPL-3+), text from {TEXTS}")
    vocabulary = words()
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:  # the work is in espeak-ng's own processes
        lines = list(pool.map(lambda number: write_clip(out, number, vocabulary), range(count)))
    (out / "transcripts.tsv").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    cache.command(__doc__, "speech", 400, VERSION, fill)
