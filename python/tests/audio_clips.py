"""A data set of FLAC files as users write it, for executors that import it by name."""

from __future__ import annotations

import soundfile
import torch

from torchaudio_of_this_torch import functional, transforms

__all__ = ["Clips", "functional", "transforms", "write_clips"]


class Clips(torch.utils.data.Dataset):
    """Mel spectrograms in decibels, with masks, of as many samples as all clips have."""

    def __init__(self, paths, samples):
        self.paths, self.samples = paths, samples
        steps = [transforms.Resample(16000, 12000), transforms.MelSpectrogram(12000, n_mels=40), transforms.AmplitudeToDB(top_db=60)]
        self.transform = torch.nn.Sequential(*steps, transforms.FrequencyMasking(9), transforms.TimeMasking(9))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        samples, _ = soundfile.read(self.paths[index], dtype="float32")
        return self.transform(torch.from_numpy(samples[: self.samples])), index


def write_clips(folder, count, samples):
    """The files' names."""
    paths = []
    for number in range(count):
        noise = torch.randn(samples, generator=torch.Generator().manual_seed(number)).cumsum(0) / samples**0.5 / 4
        paths.append(str(folder / f"{number}.flac"))
        soundfile.write(paths[-1], noise.clamp(-1, 1).numpy(), 16000)
    return paths
