"""speech.py: length, format, and that a clip is always the same."""

import wave

import numpy
import pytest

import cache
import speech


def test_clips_have_the_promised_format_and_length(tmp_path):
    made = cache.make(tmp_path, "clips", lambda out: speech.fill(out, 8))
    clips = sorted(made.glob("*.wav"))
    assert len(clips) == 8
    for clip in clips:
        with wave.open(str(clip)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
            assert 2.0 <= file.getnframes() / 16_000 <= 10.0
            assert numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2").std() > 100  # it is speech, not silence
    lines = (made / "transcripts.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [clip.name for clip in clips]
    assert len({line.split("\t")[1] for line in lines}) == len(speech.VOICES)


def test_a_clip_is_the_same_every_time(tmp_path):
    one = cache.make(tmp_path, "one", lambda out: speech.fill(out, 3))
    two = cache.make(tmp_path, "two", lambda out: speech.fill(out, 2))
    for name in ("0000.wav", "0001.wav"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


@pytest.mark.parametrize("frequency", [200, 1000, 5000])
def test_resampling_keeps_a_tone(frequency):
    seconds = 0.5
    before = 10_000 * numpy.sin(2 * numpy.pi * frequency * numpy.arange(int(22_050 * seconds)) / 22_050)
    after = speech.resample(before, 22_050, 16_000)
    wanted = 10_000 * numpy.sin(2 * numpy.pi * frequency * numpy.arange(len(after)) / 16_000)
    assert len(after) == 8_000
    assert abs(after[500:-500] - wanted[500:-500]).max() < 150


def test_without_espeak_the_way_out_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="way out: toolchain/install.sh"):
        speech.fill(tmp_path, 1)
