"""Dataset classes as users write them over images that an array in memory holds."""

import numpy
import torch
import torchvision.transforms as transforms
from PIL import Image
from torch.utils.data import Dataset
from torchvision import datasets

from memory_datasets import ALL
from view_classes import ManyViews

COUNT = 24
CROPS = transforms.Compose([transforms.RandomCrop(16, padding=2), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
TO_RGB = transforms.Compose([transforms.Lambda(lambda image: image.convert("RGB")), transforms.RandomResizedCrop(12), transforms.ToTensor()])


def noise(*shape):
    return numpy.random.default_rng(7).integers(0, 256, (COUNT, *shape), dtype="u1")


class Base(Dataset):
    def __init__(self, images, transform=CROPS):
        self.images, self.labels, self.transform = images, numpy.arange(COUNT) % 5, transform

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.images[index])), int(self.labels[index])


class Medical(Base):
    """As MedMNIST has them: a label is an array of one number."""

    def __init__(self, images, as_rgb):
        super().__init__(images)
        self.labels, self.as_rgb, self.target_transform = self.labels.astype("u1")[:, None], as_rgb, None

    def __getitem__(self, index):
        img, target = self.images[index], self.labels[index].astype(int)
        img = Image.fromarray(img)
        if self.as_rgb:
            img = img.convert("RGB")
        if self.transform is not None:
            img = self.transform(img)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return img, target


class ByMode(Base):
    """Grey images, which a decision by their mode converts."""

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index])
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), int(self.labels[index])


class Ordered(Base):
    """In an order of its own, planes first."""

    def __init__(self):
        super().__init__(noise(3, 20, 18))
        self.order = [number * 7 % COUNT for number in range(COUNT)]

    def __getitem__(self, index):
        pixels = self.images[self.order[index]].transpose(1, 2, 0)
        return {"image": self.transform(Image.fromarray(pixels, "RGB")), "index": index, "label": torch.tensor(index % 3)}


class Tensors(Base):
    def __init__(self):
        super().__init__(torch.from_numpy(noise(18, 20)))

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.images[index].numpy(), mode="L"))


class Itself(Base):
    def __getitem__(self, index):
        return self.images[index], int(self.labels[index])


class Rotated(Base):
    def __getitem__(self, index):
        return self.transform(self.made_of(self.images[index])), int(self.labels[index])

    def made_of(self, array):
        image = Image.fromarray(array)
        return image.rotate(90)


class NumpysOrder(Base):
    """By numpy's numbers."""

    def __init__(self):
        super().__init__(noise(20, 18, 3))
        self.order = numpy.arange(COUNT)[::-1]

    def __getitem__(self, index):
        number = self.order[index]
        return self.transform(Image.fromarray(self.images[number])), torch.tensor(number), torch.tensor(self.labels[number], dtype=torch.float32)


class ConvertsOthers(Base):
    """Grey ones are others."""

    def __getitem__(self, index):
        image = Image.fromarray(self.images[index])
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), self.labels[index]


class ConvertsOthersAtOnce(Base):
    def __getitem__(self, index):
        image = Image.fromarray(self.images[index])
        mode = 1 if image.mode == "RGB" else 2
        image = image if image.mode == "RGB" else image.convert("RGB")
        return self.transform(image), mode


class Pair(datasets.CIFAR10):
    def __getitem__(self, index):
        img, target = self.data[index], self.targets[index]
        img = Image.fromarray(img)
        if self.transform is not None:
            pos_1 = self.transform(img)
            pos_2 = self.transform(img)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return pos_1, pos_2, target


def made_as(kind, name, transform=CROPS):
    """One of torchvision's data sets that has become one of a class that inherits from it."""

    def make(folder):
        dataset = ALL[name](folder, transform)
        dataset.__class__ = kind or type("Own", (type(dataset),), {})
        return dataset

    return make


def parity(label):
    return label % 2


def with_labels_by(function, dataset):
    dataset.target_transform = function
    return dataset


ARRAYS = {
    "coloured": lambda folder: Base(noise(18, 20, 3)),
    "grey": lambda folder: Base(noise(18, 20)),
    "grey to coloured": lambda folder: Medical(noise(18, 20), True),
    "grey to coloured by its mode": lambda folder: ByMode(noise(18, 20)),
    "grey that stays": lambda folder: Medical(noise(18, 20), False),
    "grey to coloured by a transform": lambda folder: ALL["MNIST"](folder, TO_RGB),
    "coloured to coloured by a transform": lambda folder: ALL["CIFAR10"](folder, TO_RGB),
    "numpy's numbers": lambda folder: NumpysOrder(),
    "grey that is not RGB": lambda folder: ConvertsOthers(noise(18, 20)),
    "grey that is not RGB, at once": lambda folder: ConvertsOthersAtOnce(noise(18, 20)),
    "coloured that is RGB": lambda folder: ConvertsOthersAtOnce(noise(18, 20, 3)),
    "an order of its own": lambda folder: Ordered(),
    "tensors": lambda folder: Tensors(),
    "pairs": made_as(Pair, "CIFAR10"),
    "views": lambda folder: Base(noise(18, 20, 3), ManyViews(CROPS, 3)),
    "a transform of labels": lambda folder: with_labels_by(parity, ALL["CIFAR10"](folder, CROPS)),
    "another one of labels": lambda folder: with_labels_by(float, ALL["MNIST"](folder, CROPS)),
    **{f"inherits from {name}": made_as(None, name) for name in ALL},
}

# What each does beside, as it is told.
OTHERS = {
    "floats": (lambda: Base(noise(18, 20).astype("f4")), "other arrays than uint8"),
    "16 bits": (lambda: Base(noise(18, 20).astype("u2")), "other arrays than uint8"),
    "no pixels": (lambda: Base(noise(0, 18, 3)), "images of 0x18 pixels"),
    "four channels": (lambda: Base(noise(18, 20, 4)), "one or three channels"),
    "a tensor itself": (lambda: Itself(torch.from_numpy(noise(18, 20))), "of a file or an array"),
    "an own fromarray": (lambda: Rotated(noise(18, 20)), "`image.rotate(90)`"),
}
