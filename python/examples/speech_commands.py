"""Words from WAV files: random crops, log-mel spectrograms, a collate_fn that pads: python speech_commands.py FOLDER_OF_WAVES"""

import random
import sys
import wave
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

RATE, FFT, MELS = 8000, 256, 20


def mel_filters():
    points = torch.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), MELS + 2)
    bins = (700 * (10 ** (points / 2595) - 1)) / RATE * FFT
    steps = torch.arange(FFT // 2 + 1)
    rising = (steps[None] - bins[:-2, None]) / (bins[1:-1] - bins[:-2])[:, None]
    falling = (bins[2:, None] - steps[None]) / (bins[2:] - bins[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


class Words(Dataset):
    def __init__(self, root, noise=0.01):
        self.files = sorted(Path(root).glob("*/*.wav"))
        self.names = sorted({file.parent.name for file in self.files})
        self.filters = mel_filters()
        self.window = torch.hann_window(FFT)
        self.noise = noise

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        with wave.open(str(self.files[index])) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), dtype=np.int16).astype(np.float32) / 32768
        begin = random.randint(0, len(samples) // 4)
        samples = samples[begin:] + np.random.normal(0, self.noise, len(samples) - begin).astype(np.float32)
        spectrum = torch.stft(torch.from_numpy(samples), FFT, hop_length=128, window=self.window, return_complex=True).abs() ** 2
        return torch.log(self.filters @ spectrum + 1e-6).T, self.names.index(self.files[index].parent.name)


def collate(batch):
    spectrograms, labels = zip(*batch)
    lengths = torch.tensor([len(spectrogram) for spectrogram in spectrograms])
    return pad_sequence(spectrograms, batch_first=True), lengths, torch.tensor(labels)


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


if __name__ == "__main__":
    generator = torch.Generator()
    generator.manual_seed(0)
    torch.manual_seed(0)
    words = Words(sys.argv[1])
    sampler = WeightedRandomSampler([1 + number % 3 for number in range(len(words))], num_samples=24, generator=generator)
    loader = DataLoader(words, batch_size=4, sampler=sampler, num_workers=2, collate_fn=collate, worker_init_fn=seed_worker, generator=generator)
    model, head = nn.GRU(MELS, 8, batch_first=True), nn.Linear(8, len(words.names))
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=1e-2)
    for epoch in range(2):
        for step, (spectrograms, lengths, labels) in enumerate(loader):
            outputs, _ = model(spectrograms)
            loss = nn.functional.cross_entropy(head(outputs[torch.arange(len(lengths)), lengths - 1]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item()}")
