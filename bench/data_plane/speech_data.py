"""Spoken clips as FLAC files, and what users make of them: decibels of mel spectrograms, with SpecAugment's masks."""

import pathlib
import sys

import soundfile
import torch
from torch.nn.utils.rnn import pad_sequence

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python/tests"))
from torchaudio_of_this_torch import torchaudio, transforms  # noqa: E402

MELS = {"n_fft": 400, "hop_length": 160, "n_mels": 80}
RATE_HERTZ = 16_000
TORCHAUDIO, SOUNDFILE = torchaudio.__version__, soundfile.__version__


class Speech(torch.utils.data.Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.transform = torch.nn.Sequential(
            transforms.MelSpectrogram(RATE_HERTZ, **MELS),
            transforms.AmplitudeToDB(top_db=80),
            transforms.FrequencyMasking(27),
            transforms.TimeMasking(100),
        )

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        samples, _ = soundfile.read(self.paths[index], dtype="float32")
        return self.transform(torch.from_numpy(samples)).T, index


def padded(batch):
    features, labels = zip(*batch, strict=True)
    return pad_sequence(features, batch_first=True), torch.tensor([len(one) for one in features]), torch.tensor(labels)


def clips(folder, most, directory):
    """FLAC copies of the WAV files of a folder, at most so many; and their paths."""
    paths = []
    for source in sorted(pathlib.Path(folder).glob("*.wav"))[:most]:
        samples, rate = soundfile.read(source, dtype="int16")
        paths.append(str(directory / f"{source.stem}.flac"))
        soundfile.write(paths[-1], samples, rate)
    return paths
