"""torchaudio's work, natively: within the tolerance that the documents state, or torchaudio's own, to the bit."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from conftest import NO_REAL_FEEDER, REAL_BINARY
from sluice.media import native_audio
from sluice.media.audio_library import AudioLibrary
from sluice.torch import DataLoader

clips = pytest.importorskip("audio_clips", reason="needs torchaudio and soundfile, which this environment lacks")
functional, transforms = clips.functional, clips.transforms

pytestmark = [pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER), pytest.mark.usefixtures("native_libraries", "one_torch_thread")]

# Of the largest number of a frame, or of all samples of a waveform (docs/designs/audio.md).
TOLERANCE = 1e-5
DECIBELS = 1e-4
METHODS = ("spectrogram", "decibels", "resample")


@pytest.fixture
def done(monkeypatch):
    """What the library has done, by the names of its functions."""
    names = []
    for name in METHODS:

        def counted(library, *arguments, name=name, call=getattr(AudioLibrary, name)):
            answer = call(library, *arguments)
            names.extend([name] * answer)
            return answer

        monkeypatch.setattr(AudioLibrary, name, counted)
    return names


def waveform(*shape, seed=0, dtype=torch.float32):
    """A voice's spectrum falls, and it has pauses."""
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    noise = noise.cumsum(-1) - noise.cumsum(-1).mean(-1, keepdim=True)
    noise[..., shape[-1] // 3 : shape[-1] // 2] = 0
    return (noise / noise.abs().max().clamp(min=1e-9)).to(dtype)


def both_ways(work):
    """torchaudio's result, then the native one."""
    native_audio.remove()
    expected = work()
    assert native_audio.install()
    return expected, work()


def layout(tensor):
    """The strides of dimensions of one element mean nothing."""
    return tensor.shape, tensor.dtype, [stride for stride, length in zip(tensor.stride(), tensor.shape, strict=True) if length > 1]


def assert_as_stated(found, expected, dimension=-2):
    """Type and layout to the letter; numbers within the tolerance."""
    assert layout(found) == layout(expected)
    largest = expected.abs().amax(dimension, keepdim=True)
    assert bool(((found - expected).abs() <= TOLERANCE * largest).all()), ((found - expected).abs() / largest).max()


SPECTROGRAMS = {
    "of speech": ({"n_fft": 512, "hop_length": 160}, (1, 20000)),
    "by default": ({}, (1, 8000)),
    "of a plain waveform": ({"n_fft": 256}, (5000,)),
    "of channels and batches": ({"n_fft": 320, "hop_length": 100}, (2, 3, 3000)),
    "with a short window": ({"n_fft": 512, "win_length": 400, "hop_length": 160}, (1, 9000)),
    "with an odd short window": ({"n_fft": 512, "win_length": 401, "hop_length": 160}, (1, 9000)),
    "of an odd length": ({"n_fft": 225, "hop_length": 75}, (1, 4000)),
    "of an odd length of a prime": ({"n_fft": 31, "hop_length": 7}, (1, 400)),
    "of music": ({"n_fft": 2048, "hop_length": 512}, (2, 44100)),
    "of 20 ms at 44,100": ({"n_fft": 882, "hop_length": 441}, (1, 10000)),
    "of magnitudes": ({"n_fft": 400, "power": 1.0}, (1, 7000)),
    "from the first sample on": ({"n_fft": 400, "center": False}, (1, 7000)),
    "in silence": ({"n_fft": 400, "pad_mode": "constant"}, (1, 7000)),
    "by the window's energy": ({"n_fft": 400, "normalized": True}, (1, 7000)),
    "by the frame's length": ({"n_fft": 400, "normalized": "frame_length"}, (1, 7000)),
    "through a Hamming window": ({"n_fft": 400, "window_fn": torch.hamming_window}, (1, 7000)),
    "of one frame": ({"n_fft": 400, "hop_length": 400, "center": False}, (1, 400)),
    "of few samples": ({"n_fft": 400}, (1, 201)),
    "with a hop above the transform": ({"n_fft": 64, "hop_length": 200}, (1, 7000)),
    "with a hop of one": ({"n_fft": 16, "hop_length": 1}, (1, 500)),
}


@pytest.mark.parametrize("name", SPECTROGRAMS)
@pytest.mark.parametrize("loudness", [1.0, 32768.0, 1e-6])
def test_a_spectrogram_is_within_the_tolerance(name, loudness, done):
    options, shape = SPECTROGRAMS[name]
    transform, samples = transforms.Spectrogram(**options), waveform(*shape) * loudness
    assert_as_stated(*reversed(both_ways(lambda: transform(samples))))
    assert done == ["spectrogram"]


MELS = {
    "of speech": {"n_fft": 512, "hop_length": 160, "n_mels": 80},
    "by default": {},
    "as Slaney has them": {"n_fft": 1024, "norm": "slaney", "mel_scale": "slaney"},
    "of a part of the spectrum": {"f_min": 80.0, "f_max": 4000.0, "n_mels": 40},
    "of magnitudes": {"power": 1.0, "n_mels": 64},
    "more than there are bins": {"n_fft": 128, "n_mels": 200},
    "one": {"n_mels": 1},
}


@pytest.mark.filterwarnings("ignore:At least one mel filterbank")
@pytest.mark.parametrize("name", MELS)
def test_a_mel_spectrogram_is_within_the_tolerance(name, done):
    transform, samples = transforms.MelSpectrogram(16000, **MELS[name]), waveform(2, 16001)
    assert_as_stated(*reversed(both_ways(lambda: transform(samples))))
    assert done == ["spectrogram"]


def test_cepstral_coefficients_are_made_of_native_spectrograms_and_decibels(done):
    transform, samples = transforms.MFCC(16000, n_mfcc=20, melkwargs={"n_mels": 64}), waveform(1, 16000)
    expected, found = both_ways(lambda: transform(samples))
    assert torch.allclose(found, expected, atol=0.01)
    assert done == ["spectrogram", "decibels"]


@pytest.mark.parametrize("shape", [(80, 101), (1, 80, 101), (2, 3, 5, 7), (7,), ()])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("stype", "top_db"), [("power", None), ("power", 80.0), ("magnitude", 20)])
def test_decibels_are_within_the_tolerance(shape, transposed, stype, top_db, done):
    values = torch.rand(shape, generator=torch.Generator().manual_seed(1)).pow(8) * 100
    values = values.transpose(-1, -2) if transposed and values.ndim > 1 else values
    transform = transforms.AmplitudeToDB(stype, top_db)
    if top_db is not None and values.ndim < 2:
        return  # torchaudio refuses them.
    expected, found = both_ways(lambda: transform(values))
    assert layout(found) == layout(expected)
    assert bool(((found - expected).abs() <= DECIBELS).all())
    assert done == ([] if top_db is not None and values.ndim > 3 else ["decibels"])


RATES = [(44100, 16000), (48000, 16000), (16000, 8000), (8000, 16000), (16000, 22050)]
KAISER = {"lowpass_filter_width": 64, "rolloff": 0.9475937167399596, "resampling_method": "sinc_interp_kaiser", "beta": 14.769656459379492}


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("options", [{}, KAISER])
def test_a_resampled_waveform_is_within_the_tolerance(rates, options, done):
    samples = waveform(2, 5001)
    transform = transforms.Resample(*rates, **options)
    for work in (lambda: transform(samples), lambda: functional.resample(samples, *rates, **options)):
        assert_as_stated(*reversed(both_ways(work)), dimension=-1)
        native_audio.remove()
    assert done == ["resample"] * 2


@pytest.mark.parametrize("samples", [1, 2, 100, 441, 442, 4410])
def test_short_waveforms_have_torchaudios_number_of_samples(samples):
    transform = transforms.Resample(44100, 16000)
    assert_as_stated(*reversed(both_ways(lambda: transform(waveform(1, samples)))), dimension=-1)


@pytest.mark.parametrize("shape", [(1, 80, 300), (80, 300), (2, 80, 300), (1, 3, 5), (2, 2, 80, 300)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("make", [lambda: transforms.FrequencyMasking(27), lambda: transforms.TimeMasking(100), lambda: transforms.TimeMasking(100, p=0.2),
                                  lambda: transforms.TimeMasking(30, iid_masks=True), lambda: transforms.FrequencyMasking(1)])  # fmt: skip
def test_masks_are_torchaudios_to_the_bit(shape, transposed, make):
    values = torch.rand(shape, generator=torch.Generator().manual_seed(2))
    values = values.transpose(-1, -2).contiguous().transpose(-1, -2) if transposed else values
    transform = make()
    if transform.iid_masks and values.ndim < 3:
        return  # torchaudio refuses them.

    def work():
        torch.manual_seed(3)
        return [transform(values, mask_value) for mask_value in (0.0, -1.5) for _ in range(10)], torch.rand(1)

    (expected, drawn), (found, drawn_too) = both_ways(work)
    assert torch.equal(drawn, drawn_too)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other) and layout(one) == layout(other)


def with_numbers(*numbers):
    samples = waveform(1, 4000)
    samples[0, 1000 : 1000 + len(numbers)] = torch.tensor(numbers)
    return samples


UNUSUAL = {
    "complex bins": ({"power": None}, waveform(1, 4000)),
    "another power": ({"power": 3.0}, waveform(1, 4000)),
    "float64": ({"wkwargs": {"dtype": torch.float64}}, waveform(1, 4000, dtype=torch.float64)),
    "gradients": ({}, waveform(1, 4000).requires_grad_()),
    "a border that goes on": ({"pad_mode": "replicate"}, waveform(1, 4000)),
    "silence around": ({"pad": 100}, waveform(1, 4000)),
    "both halves": ({"onesided": False}, waveform(1, 4000)),
    "a length of a large prime": ({"n_fft": 2 * 211}, waveform(1, 4000)),
    "a number that is none": ({}, with_numbers(float("nan"))),
    "an infinite number": ({}, with_numbers(float("inf"))),
    "squares that overflow": ({}, with_numbers(1e30)),
    "almost silence": ({}, waveform(1, 4000) * 1e-20),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_not_usual_is_torchaudios_to_the_bit(name, done):
    options, samples = UNUSUAL[name]
    makers = [transforms.Spectrogram] if {"power", "onesided", "wkwargs"} & options.keys() else [transforms.Spectrogram, transforms.MelSpectrogram]
    for make in makers:
        transform = make(**options)
        expected, found = both_ways(lambda transform=transform: transform(samples).detach())
        assert torch.equal(torch.view_as_real(found) if found.is_complex() else found.nan_to_num(7), torch.view_as_real(expected) if found.is_complex() else expected.nan_to_num(7))
    assert done == []


ERRORS = {
    "too short to reflect": lambda: transforms.Spectrogram(n_fft=400)(waveform(1, 200)),
    "no samples": lambda: transforms.MelSpectrogram()(torch.zeros(1, 0)),
    "integers": lambda: transforms.Spectrogram()(torch.zeros(1, 4000, dtype=torch.int16)),
    "a window of another length": lambda: functional.spectrogram(waveform(1, 4000), 0, torch.ones(300), 400, 200, 400, 2.0, False),
    "an unknown norm": lambda: functional.spectrogram(waveform(1, 4000), 0, torch.ones(400), 400, 200, 400, 2.0, "energy"),
    "integers to resample": lambda: functional.resample(torch.zeros(1, 4000, dtype=torch.int16), 2, 1),
    "one dimension to mask": lambda: functional.mask_along_axis(torch.zeros(5), 2, 0.0, 0),
    "another dimension to mask": lambda: functional.mask_along_axis(torch.zeros(2, 5, 5), 2, 0.0, 0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_torchaudios(name):
    def work():
        with pytest.raises(Exception) as raised:
            ERRORS[name]()
        return type(raised.value), str(raised.value)

    expected, found = both_ways(work)
    assert found == expected


def test_hooks_and_subclasses_are_called(done):
    class Own(transforms.MelSpectrogram):
        def forward(self, waveform):
            return super().forward(waveform) * 2

    samples, seen = waveform(1, 4000), []
    hooked = transforms.MelSpectrogram()
    hooked.mel_scale.register_forward_hook(lambda *arguments: seen.append("mel_scale"))
    for transform in (Own(), hooked):
        assert_as_stated(*reversed(both_ways(lambda transform=transform: transform(samples))))
    assert seen == ["mel_scale"] * 2
    assert done == ["spectrogram"] * 2  # Of bins, which torchaudio's own call asks for.


def test_classes_pickles_and_torchscript_are_torchaudios():
    transform, samples = transforms.MelSpectrogram(n_mels=40), waveform(1, 4000)
    before = type(transform), pickle.dumps(transform)
    expected = transform(samples)
    assert native_audio.install()
    assert (type(transform), pickle.dumps(transform)) == before
    assert isinstance(pickle.loads(pickle.dumps(transform)), transforms.MelSpectrogram)
    assert_as_stated(copy.deepcopy(transform)(samples), expected)
    for scripted in (torch.jit.script(transform), torch.jit.trace(transform, samples), torch.jit.script(transforms.Resample(3, 2))):
        scripted(samples)
    assert torch.equal(torch.jit.script(transform)(samples), expected)


def test_what_was_taken_is_given_back():
    names = ("spectrogram", "amplitude_to_DB", "mask_along_axis", "_apply_sinc_resample_kernel")
    before = [getattr(functional.functional, name) for name in names]
    assert native_audio.install() and native_audio.install() and native_audio.is_installed()
    assert all(getattr(functional.functional, name) is not function for name, function in zip(names, before, strict=True))
    native_audio.remove()
    assert [getattr(functional.functional, name) for name in names] == before and not native_audio.is_installed()
    assert "__call__" not in vars(transforms.MelSpectrogram)


def test_without_a_library_torchaudio_stays(monkeypatch):
    monkeypatch.setattr(native_audio, "find_audio_library", lambda: None)
    assert not native_audio.install()
    assert "__call__" not in vars(transforms.MelSpectrogram)


def batches(dataset, monkeypatch, native, num_workers=1):
    monkeypatch.setenv("SLUICE_NATIVE_AUDIO", native)
    torch.manual_seed(5)
    loader = DataLoader(dataset, batch_size=3, num_workers=num_workers)
    found = [features for features, _ in loader]
    return found, loader.explain()


def test_executors_do_so_where_the_user_asks_for_it(real_feeder, tmp_path, monkeypatch):
    dataset = clips.Clips(clips.write_clips(tmp_path, 6, 9000), 8000)
    off, words_of_off = batches(dataset, monkeypatch, "off")
    on, words_of_on = batches(dataset, monkeypatch, "on")
    assert "computed natively" in words_of_on and "computed natively" not in words_of_off
    for found, expected in zip(on, off, strict=True):
        assert not torch.equal(found, expected)  # Else nothing was native.
        assert bool(((found == 0) == (expected == 0)).all())  # The same masks.
        assert bool(((found - expected).abs() <= 0.05).all())
    again, _ = batches(dataset, monkeypatch, "off")
    assert all(map(torch.equal, again, off))


def test_a_batch_is_the_same_whoever_makes_it(real_feeder, tmp_path, monkeypatch):
    dataset = clips.Clips(clips.write_clips(tmp_path, 6, 9000), 8000)
    by_executors, _ = batches(dataset, monkeypatch, "on")
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    by_this_process, _ = batches(dataset, monkeypatch, "on")
    assert all(map(torch.equal, by_this_process, by_executors))


def test_torchs_compiler_sees_torchaudios_code(monkeypatch, done):
    samples, transforms_of = waveform(1, 4000), (transforms.Spectrogram(), transforms.MelSpectrogram(n_mels=40), transforms.Resample(3, 2))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    for transform in transforms_of:
        expected, found = both_ways(lambda transform=transform: transform(samples))
        assert torch.equal(found, expected)
    assert done == []
