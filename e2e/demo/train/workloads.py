"""The input pipelines of the demo: plain PyTorch data sets and transforms, nothing of Sluice but the reader of tar shards.

vision  photographs in an ImageFolder; RandomResizedCrop(224), flip, ToTensor, Normalize
shards  the same of photographs in tar shards, in a store of objects
speech  spoken clips; random window, torch.stft, log-mel, SpecAugment
text    paragraphs; tokenised and padded to one length
"""

import collections
import dataclasses
import pathlib
import re
import wave
import zlib

import numpy
import torch
from torch.utils.data import Dataset


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """How long the emulated accelerator computes on one batch, and whose figure that is."""

    seconds: float
    batch: int
    source: str

    def slower(self, factor: float) -> "Accelerator":
        return self if factor == 1 else Accelerator(self.seconds * factor, self.batch, f"{self.source}, times {factor:g}")

    def seconds_for(self, samples: int) -> float:
        return self.seconds * samples / self.batch


RESNET = Accelerator(0.435, 400, "ResNet-50 on an A100: MLPerf Storage's emulation, 0.435 s per batch of 400")
ACCELERATORS = {
    "vision": RESNET,
    "shards": RESNET,
    "speech": Accelerator(0.050, 16, "assumed: 0.05 s per batch of 16 clips (no published figure)"),
    "text": Accelerator(0.968, 48, "BERT on a V100: MLPerf Storage's emulation, 0.968 s per batch of 48"),
}


class Speech(Dataset):
    """(log-mel [bands, frames], voice, index) of a random window of each clip, with SpecAugment's masks."""

    WINDOW, HOP, BANDS, SECONDS = 512, 160, 80, 2.0
    BAND_MASK, FRAME_MASK = 15, 40

    def __init__(self, root: str):
        with (pathlib.Path(root) / "transcripts.tsv").open(encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        voices = sorted({row[1] for row in rows})
        self.paths = [str(pathlib.Path(root) / row[0]) for row in rows]
        self.targets = [voices.index(row[1]) for row in rows]
        with wave.open(self.paths[0]) as clip:
            self.rate = clip.getframerate()
        self.window = torch.hann_window(self.WINDOW)
        self.mel = mel_bands(self.BANDS, self.WINDOW // 2 + 1, self.rate)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        samples = self._random_window(self.paths[index])
        spectrum = torch.stft(samples, self.WINDOW, self.HOP, window=self.window, return_complex=True).abs().square()
        features = torch.log(self.mel @ spectrum + 1e-6)
        mask(features, 0, self.BAND_MASK)
        mask(features, 1, self.FRAME_MASK)
        return features, self.targets[index], index

    def _random_window(self, path):
        wanted = int(self.SECONDS * self.rate)
        with wave.open(path) as clip:
            spare = max(0, clip.getnframes() - wanted)
            clip.setpos(int(torch.randint(spare + 1, ())))
            data = numpy.frombuffer(clip.readframes(wanted), dtype="<i2")
        samples = torch.zeros(wanted)
        samples[: len(data)] = torch.from_numpy(data.astype("float32") / 32768)
        return samples


def mask(features, dimension, widest):
    """SpecAugment (Park et al. 2019): one random stripe along `dimension` is silenced."""
    width = int(torch.randint(widest + 1, ()))
    start = int(torch.randint(features.shape[dimension] - width + 1, ()))
    features.narrow(dimension, start, width).zero_()


def mel_bands(bands, bins, rate):
    """Triangular filters, equally spaced on the mel scale 2595 log10(1 + f/700)."""
    highest = 2595 * numpy.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (numpy.linspace(0, highest, bands + 2) / 2595) - 1)
    frequencies = numpy.linspace(0, rate / 2, bins)
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    return torch.from_numpy(numpy.maximum(0, numpy.minimum(rising, falling)).astype("float32"))


class Text(Dataset):
    """(token ids [LENGTH], class of length, index) of each paragraph. Tokens are hashed, so there is no vocabulary file."""

    LENGTH, VOCABULARY = 256, 30522
    TOKEN = re.compile(r"\w+|[^\w\s]")

    def __init__(self, root: str):
        self.paragraphs = (pathlib.Path(root) / "paragraphs.txt").read_text(encoding="utf-8").splitlines()
        self.targets = [min(len(paragraph) // 200, 7) for paragraph in self.paragraphs]  # a class of lengths

    def __len__(self):
        return len(self.paragraphs)

    def __getitem__(self, index):
        tokens = self.TOKEN.findall(self.paragraphs[index].lower())[: self.LENGTH]
        ids = torch.zeros(self.LENGTH, dtype=torch.int64)
        ids[: len(tokens)] = torch.tensor([1 + zlib.crc32(token.encode()) % (self.VOCABULARY - 1) for token in tokens])
        return ids, self.targets[index], index


def training_recipe():
    from torchvision import transforms  # half a second of CPU that the other jobs need not spend

    return transforms.Compose(
        [
            transforms.RandomResizedCrop(224),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
        ]
    )


def photographs(root: str):
    from torchvision import datasets

    return datasets.ImageFolder(root, training_recipe())


def shards(urls: str):
    from sluice.shards import TarShards

    dataset = TarShards(urls, training_recipe())
    dataset.targets = list(range(len(dataset)))  # the class of a photograph is its number (store.py)
    return dataset


DATASETS = {"vision": photographs, "shards": shards, "speech": Speech, "text": Text}


class Census:
    """Were all samples of the epoch there, each once? By index where the data set gives it, by label otherwise."""

    def __init__(self, dataset):
        self._expected_labels = collections.Counter(dataset.targets)
        self._size = len(dataset)
        self._labels = collections.Counter()
        self._indices = collections.Counter()

    def add(self, batch):
        self._labels.update(batch[1].tolist())
        if len(batch) > 2:
            self._indices.update(batch[2].tolist())

    @property
    def samples(self):
        return self._labels.total()

    def complete(self):
        by_index = not self._indices or self._indices == collections.Counter(range(self._size))
        return by_index and self._labels == self._expected_labels
