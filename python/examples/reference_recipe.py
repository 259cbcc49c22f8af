"""A reference recipe for classification: repeated augmentation, an automatic policy, mixup as collate_fn, a meter around the loader:
python reference_recipe.py FOLDER_OF_JPEGS"""

import argparse
import time

import torch
import torch.utils.data
from torch import nn
from torch.utils.data import default_collate
from torchvision import datasets, transforms

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def train_preset(pixels):
    return transforms.Compose([
        transforms.RandomResizedCrop(pixels, antialias=True), transforms.RandomHorizontalFlip(), transforms.TrivialAugmentWide(),
        transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float), transforms.Normalize(MEAN, DEVIATION), transforms.RandomErasing(0.3),
    ])  # fmt: skip


def eval_preset(pixels):
    return transforms.Compose([
        transforms.Resize(pixels + 4, antialias=True), transforms.CenterCrop(pixels),
        transforms.PILToTensor(), transforms.ConvertImageDtype(torch.float), transforms.Normalize(MEAN, DEVIATION),
    ])  # fmt: skip


class Repeated(torch.utils.data.Sampler):
    """Each sample several times in a row; as many as one epoch has."""

    def __init__(self, count, times=3):
        self.count, self.times, self.epoch = count, times, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        order = torch.randperm(self.count, generator=torch.Generator().manual_seed(self.epoch))
        return iter(order.repeat_interleave(self.times)[: self.count].tolist())


class Mixup:
    """Half of the batches are mixed with themselves, one sample shifted."""

    def __init__(self, classes, alpha=0.2):
        self.classes, self.share = classes, torch.distributions.Beta(alpha, alpha)

    def __call__(self, pictures, labels):
        targets = nn.functional.one_hot(labels, self.classes).float()
        if torch.rand(()) < 0.5:
            share = self.share.sample()
            pictures, targets = (share * values + (1 - share) * values.roll(1, 0) for values in (pictures, targets))
        return pictures, targets


class Meter:
    """Lines about a loop: what the loop has noted, and how long it has waited for data."""

    def __init__(self, title):
        self.title, self.noted, self.waited_seconds = title, {}, 0.0

    def over(self, loader):
        batches, total = iter(loader), len(loader)
        for number in range(total):
            began = time.perf_counter()
            batch = next(batches)
            self.waited_seconds += time.perf_counter() - began
            yield batch
            print(f"{self.title} [{number}/{total}] " + ", ".join(f"{name} {value}" for name, value in self.noted.items()))


def main(args):
    torch.manual_seed(args.seed)
    train, test = datasets.ImageFolder(args.data_path, train_preset(32)), datasets.ImageFolder(args.data_path, eval_preset(32))
    mixup = Mixup(len(train.classes))

    def collate_fn(samples):
        return mixup(*default_collate(samples))

    sampler = Repeated(len(train))
    data_loader = torch.utils.data.DataLoader(train, batch_size=4, sampler=sampler, num_workers=args.workers, pin_memory=False, collate_fn=collate_fn)
    data_loader_test = torch.utils.data.DataLoader(test, batch_size=4, sampler=torch.utils.data.SequentialSampler(test), num_workers=args.workers)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    criterion, optimizer = nn.CrossEntropyLoss(label_smoothing=0.1), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.epoch = epoch
        model.train()
        meter = Meter(f"epoch {epoch}")
        for pictures, targets in meter.over(data_loader):
            loss = criterion(model(pictures), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            meter.noted["loss"] = loss.item()
        model.eval()
        meter = Meter("test")
        with torch.inference_mode():
            for pictures, labels in meter.over(data_loader_test):
                meter.noted["loss"] = criterion(model(pictures), labels).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("data_path")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--workers", "-j", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    main(parser.parse_args())
