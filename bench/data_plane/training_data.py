"""What the bench of the data plane reads: photographs with recipes of augmentation, in folders, as PNG and WebP files and in tar shards, and lines of text."""

import tarfile

import torch
import torchvision.transforms as transforms
from PIL import Image
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from sluice.shards import TarShards

COPIES = 200  # Each takes its writer a tenth of a second.
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def training_recipe():
    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return transforms.Compose([*steps, transforms.Normalize(MEAN, DEVIATION)])


def reference_recipe():
    """Of torchvision's classification scripts: RandAugment and random erasing, in version 2 of the transforms."""
    steps = [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.RandAugment(), v2.PILToTensor()]
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION), v2.RandomErasing(0.1)])


def tensors_recipe():
    """That torchvision's documentation recommends: tensors of bytes from the start, in version 2 of the transforms."""
    steps = [v2.ToImage(), v2.ToDtype(torch.uint8, scale=True), v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    return v2.Compose([*steps, v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])


def contrastive_recipe():
    """Of SimCLR."""
    colours = transforms.RandomApply([transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
    blur = transforms.RandomApply([transforms.GaussianBlur(23)], p=0.5)
    steps = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), colours, transforms.RandomGrayscale(0.2), blur]
    return transforms.Compose([*steps, transforms.ToTensor()])


class Views:
    """Two images of each, as contrastive learning has them."""

    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return [self.transform(image) for _ in range(2)]


def views_recipe():
    """Of MoCo: SimCLR's without blur."""
    steps = [transforms.RandomResizedCrop(224, scale=(0.2, 1.0)), transforms.RandomGrayscale(0.2), transforms.ColorJitter(0.4, 0.4, 0.4, 0.4)]
    return Views(transforms.Compose([*steps, transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)]))


RECIPES = {"reference": reference_recipe, "tensors": tensors_recipe, "contrastive": contrastive_recipe, "views": views_recipe}


class TextLines(torch.utils.data.Dataset):
    """Cheap: a line of 512 bytes as numbers, and the next one."""

    def __init__(self, lines):
        self.lines = [bytes((line * 31 + at) % 256 for at in range(512)) for line in range(lines)]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        line = torch.frombuffer(bytearray(self.lines[index]), dtype=torch.uint8).long()
        return line[:-1], line[1:]


class OwnDataset(torch.utils.data.Dataset):
    """What users write."""

    def __init__(self, paths):
        self.paths, self.transform = paths, training_recipe()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), index


def photographs(folder, most, recipe):
    """ImageFolder with these transforms, thinned out evenly to `most` images; and their paths."""
    dataset = ImageFolder(folder, recipe)
    chosen = list(range(0, len(dataset), max(1, len(dataset) // most)))[:most]
    return torch.utils.data.Subset(dataset, chosen), [dataset.samples[index][0] for index in chosen]


def copies_of(files, extension, directory, samples):
    """Some of the photographs in another format, as Pillow writes them, so often that they are so many samples; and their paths."""
    folder = directory / extension / "class"
    folder.mkdir(parents=True)
    for number, name in enumerate(files[:: max(1, len(files) // COPIES)][:COPIES]):
        Image.open(name).convert("RGB").save(folder / f"{number:04d}.{extension}")
    dataset = ImageFolder(folder.parent, training_recipe())
    chosen = [number % len(dataset) for number in range(samples)]
    return torch.utils.data.Subset(dataset, chosen), [dataset.samples[index][0] for index in chosen]


def shards_of(files, directory):
    """The files in tar shards of 250 samples, indexed."""
    for first in range(0, len(files), 250):
        with tarfile.open(directory / f"{first:06d}.tar", "w") as tar:
            for number, name in enumerate(files[first : first + 250], first):
                tar.add(name, f"{number:06d}.jpg")
                label = directory / "label"
                label.write_text(str(number))
                tar.add(label, f"{number:06d}.cls")
    return TarShards(directory, training_recipe())
