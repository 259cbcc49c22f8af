"""A library's factory makes the loaders: uint8 batches, normalised a batch behind in a wrapper, one iterator for all epochs:
python loader_factory.py FOLDER_OF_JPEGS"""

import random
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info
from torchvision import transforms


class Pictures(Dataset):
    """The factory sets the transform. What is no picture is replaced by the next file."""

    transform = None

    def __init__(self, folder):
        self.files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        self.names = sorted({path.parent.name for path in self.files})
        self.unreadable = 0

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        for path in self.files[index:] + self.files[:index]:
            try:
                with Image.open(path) as picture:
                    return self.transform(picture.convert("RGB")), self.names.index(path.parent.name)
            except UnidentifiedImageError:
                self.unreadable += 1
        raise RuntimeError("no picture can be read")


def channels_first(picture):
    return np.asarray(picture, dtype=np.uint8).transpose(2, 0, 1)


def stack_bytes(samples):
    pictures, labels = zip(*samples)
    return torch.from_numpy(np.stack(pictures)), torch.tensor(labels)


def seed_worker(worker, generators):
    seed = get_worker_info().seed
    for seed_generator in generators:
        seed_generator(seed % 2**32)


class Endless:
    """Batches of one epoch after the other."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        while True:
            yield from self.batches


class OneIteratorLoader(DataLoader):
    """Keeps its workers and what they have made ahead from one epoch to the next."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.batches_of_an_epoch = len(self.batch_sampler)
        object.__setattr__(self, "batch_sampler", Endless(self.batch_sampler))
        self.only_iterator = super().__iter__()

    def __len__(self):
        return self.batches_of_an_epoch

    def __iter__(self):
        return (next(self.only_iterator) for _ in range(self.batches_of_an_epoch))


class Normalized:
    """The batches of a loader as floats. Asks for the next one before it hands one out, as a copy to a GPU would."""

    def __init__(self, loader, mean, deviation):
        self.loader = loader
        self.mean, self.deviation = (torch.tensor(values).mul(255).view(1, -1, 1, 1) for values in (mean, deviation))

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        waiting = []
        for pictures, labels in self.loader:
            waiting.append(((pictures.float() - self.mean) / self.deviation, labels))
            if len(waiting) > 1:
                yield waiting.pop(0)
        yield from waiting


def make_loader(dataset, pixels, batch_size, trains=False, workers=2, one_iterator=False):
    random_steps = [transforms.RandomResizedCrop(pixels), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.3, 0.3)]
    dataset.transform = transforms.Compose([*(random_steps if trains else [transforms.Resize(pixels + 8), transforms.CenterCrop(pixels)]), channels_first])
    loader_class = OneIteratorLoader if one_iterator else DataLoader
    loader = loader_class(dataset, batch_size, shuffle=trains, num_workers=workers, collate_fn=stack_bytes, drop_last=trains, persistent_workers=True,
                          worker_init_fn=partial(seed_worker, generators=[random.seed, np.random.seed, torch.manual_seed]))  # fmt: skip
    return Normalized(loader, mean=(0.485, 0.456, 0.406), deviation=(0.229, 0.224, 0.225))


def main():
    torch.manual_seed(42)
    train_loader = make_loader(Pictures(sys.argv[1]), 32, 4, trains=True, one_iterator="--one-iterator" in sys.argv)
    eval_loader = make_loader(Pictures(sys.argv[1]), 32, 8)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for step, (pictures, labels) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item()}")
        with torch.no_grad():
            print(f"epoch {epoch} evaluation {sum(nn.functional.cross_entropy(model(pictures), labels).item() for pictures, labels in eval_loader)}")


if __name__ == "__main__":
    main()
