"""soundfile.read of FLAC files, natively: soundfile's own numbers, and its own answers to all that is not a flawless file."""

from __future__ import annotations

import io
import os
import pathlib
import shutil

import numpy
import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY
from sluice.media import native_audio
from sluice.media.audio_library import AudioLibrary

soundfile = pytest.importorskip("soundfile", reason="needs soundfile, which this environment lacks")
pytestmark = [pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER), pytest.mark.usefixtures("native_libraries")]


@pytest.fixture
def decoded(monkeypatch):
    """The kinds of samples that the library has decoded."""
    kinds, call = [], AudioLibrary.flac_samples

    def counted(library, file, kind, *arguments):
        done = call(library, file, kind, *arguments)
        kinds.extend([kind] * done)
        return done

    monkeypatch.setattr(AudioLibrary, "flac_samples", counted)
    return kinds


def sound(kind, frames, channels):
    random = numpy.random.default_rng(frames)
    at = numpy.arange(frames)[:, None] + numpy.arange(channels)
    return {
        "noise": random.uniform(-1, 1, (frames, channels)),
        "voice": 0.5 * numpy.sin(at * 0.05) + 0.01 * random.standard_normal((frames, channels)),
        "silence": numpy.zeros((frames, channels)),
        "clicks": numpy.sign(random.standard_normal((frames, channels))),
        "few bits": numpy.round(random.uniform(-1, 1, (frames, channels)) * 16) / 17,
        "half silent": numpy.where(at > frames // 2, 0.0, numpy.sin(at * 0.3)),
    }[kind]


def both(path, **options):
    """soundfile's own answer, then the native one: numbers and rate, or an exception."""

    def answer():
        try:
            samples, rate = soundfile.read(path, **options)
            return samples.dtype, samples.shape, samples.flags.c_contiguous, samples.flags.writeable, samples.tobytes(), rate
        except Exception as error:
            return type(error), str(error)

    native_audio.remove()
    expected = answer()
    assert native_audio.install()
    return expected, answer()


@pytest.mark.parametrize("kind", ["noise", "voice", "silence", "clicks", "few bits", "half silent"])
@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24"])
def test_every_number_is_soundfiles(kind, subtype, tmp_path, decoded):
    path, files = tmp_path / "clip.flac", 0
    for channels, frames, rate, level in [(1, 9001, 16000, 0.0), (2, 5000, 44100, 0.5), (1, 4096, 8000, 1.0), (2, 17, 12345, 0.6), (8, 600, 96000, 0.8), (1, 1, 48000, 0.5)]:
        soundfile.write(path, sound(kind, frames, channels).clip(-1, 1), rate, subtype=subtype, compression_level=level)
        for dtype in ("float32", "float64", "int16"):
            expected, found = both(str(path), dtype=dtype, always_2d=dtype == "float64")
            assert found == expected
        files += 1
    assert decoded == ["float32", "float64", *["int16"] * (subtype == "PCM_16")] * files


def test_what_is_not_a_whole_flac_file_is_soundfiles(tmp_path, decoded):
    path = str(tmp_path / "clip.flac")
    soundfile.write(path, sound("voice", 9000, 2), 16000)
    for options in ({"start": 100}, {"frames": 50}, {"stop": -7}, {"dtype": "int32"}, {"dtype": "float16"}, {"fill_value": 0.0}, {"always_2d": True, "frames": 10**6}):
        expected, found = both(path, **options)
        assert found == expected
    for name, options in (("clip.wav", {}), ("small.flac", {"subtype": "PCM_S8"}), ("ogg.flac", {"format": "OGG", "subtype": "VORBIS"})):
        soundfile.write(tmp_path / name, sound("voice", 9000, 1), 16000, **options)
        expected, found = both(str(tmp_path / name))
        assert found == expected
    assert decoded == []
    assert native_audio.install()
    with open(path, "rb") as file:
        soundfile.read(file)
        soundfile.read(io.BytesIO(pathlib.Path(path).read_bytes()))
    assert decoded == []
    soundfile.read(pathlib.Path(path))
    shutil.copy(path, tmp_path / "CLIP.FLAC")
    soundfile.read(str(tmp_path / "CLIP.FLAC"))
    assert decoded == ["float64"] * 2


def test_damaged_and_missing_files_are_soundfiles(tmp_path, decoded):
    path, broken = tmp_path / "clip.flac", tmp_path / "broken.flac"
    soundfile.write(path, sound("voice", 9000, 1), 16000)
    whole = path.read_bytes()
    middle = len(whole) // 2
    cases = [b"", whole[:3], whole[:30], whole[:middle], whole[:-1], whole[:middle] + b"\xff" + whole[middle + 1 :], b"ID3" + whole, whole[:21] + bytes(5) + whole[26:]]
    for content in cases:
        broken.write_bytes(content)
        expected, found = both(str(broken), dtype="float32")
        assert found == expected
    for path in (str(tmp_path / "none.flac"), str(tmp_path), os.devnull):
        expected, found = both(path)
        assert found == expected
    (tmp_path / "folder.flac").mkdir()
    expected, found = both(str(tmp_path / "folder.flac"))
    assert found == expected
    assert decoded == []


def test_a_pipe_is_not_waited_for(tmp_path, decoded):
    path = str(tmp_path / "pipe.flac")
    os.mkfifo(path)
    library = native_audio.find_audio_library()
    assert library is not None
    assert native_audio.flac_files._samples(library, path, "float32", False) is None


def test_another_soundfile_is_left_alone(monkeypatch):
    def read(file, dtype="float32"):
        return file

    monkeypatch.setattr(soundfile, "read", read)
    native_audio.install()
    assert soundfile.read is read
