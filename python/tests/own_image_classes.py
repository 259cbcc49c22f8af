"""Dataset classes over image files as users write them, for tests of what is read from their code."""

import os
import pathlib

import numpy
import torch
import torchvision.transforms as transforms
from PIL import Image
from torch.utils.data import Dataset, Subset, random_split
from torchvision import datasets
from torchvision.datasets.folder import default_loader, pil_loader
from torchvision.transforms import v2

try:
    import pandas
except ImportError:
    pandas = None

TRAINING = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
RESIZE, TENSOR = transforms.Resize((24, 24)), transforms.ToTensor()
DEBUG = False


def read_rgb(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


class Base(Dataset):
    """`self.paths` and `self.labels`."""

    def __init__(self, paths, transform=TRAINING):
        self.paths, self.labels, self.transform = list(paths), [number % 7 for number in range(len(paths))], transform
        self.folder = os.path.dirname(self.paths[0])

    def __len__(self):
        return len(self.paths)


class Plain(Base):
    """What most tutorials have."""

    def __getitem__(self, idx):
        if torch.is_tensor(idx):
            idx = idx.tolist()
        img_path = self.paths[idx]
        image = Image.open(img_path).convert("RGB")
        label = self.labels[idx]
        if self.transform:
            image = self.transform(image)
        return image, label


class Pairs(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.samples = [(os.path.basename(path), number) for number, path in enumerate(paths)]

    def __getitem__(self, index: int):
        name, target = self.samples[index]
        sample = self.load(os.path.join(self.folder, name))
        assert self.transform is not None
        return self.transform(sample), torch.tensor(target, dtype=torch.long)

    def load(self, path):
        return read_rgb(path=path)


class Names(Base):
    def __init__(self, paths, split="train"):
        super().__init__(paths, None)
        self.split, self.root = split, pathlib.Path(self.folder)
        self.stems = [os.path.basename(path)[: -len(".jpg")] for path in paths]
        self.class_of = {stem: number for number, stem in enumerate(self.stems)}

    @property
    def suffix(self):
        return ".jpg"

    def __getitem__(self, index):
        """With private helpers and a text of many parts."""
        stem = self.stems[index]
        path = self.root / f"{stem}{self.suffix}"
        if self.split == "train" and not DEBUG:
            image = self.__augment(Image.open(path).convert("RGB"))
        else:
            image = None
        return image, self.class_of[stem]

    def __augment(self, image):
        return TENSOR(RESIZE(image))


class AsDict(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.weights = [number / 3 for number in range(len(paths))]
        self.targets = torch.arange(len(paths))

    def __getitem__(self, index):
        item = self.paths[index]
        return {"image": self.transform(pil_loader(item)), "label": self.targets[index], "weight": self.weights[index], "path": item, "index": index, "kind": "photo"}


class WithIndex(Base):
    def __getitem__(self, index):
        return index, (self.transform(default_loader(self.paths[index])), self.labels[index])


class ImageAlone(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB"))


class Arrays(Base):
    def __init__(self, paths):
        super().__init__(paths, v2.Compose([v2.RandomResizedCrop(32), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]))
        self.paths, self.labels, self.order = numpy.array(paths), numpy.arange(len(paths)) * 3, numpy.arange(len(paths))[::-1].copy()

    def __getitem__(self, index):
        at = self.order[index]
        return self.transform(Image.open(self.paths[at]).convert("RGB")), int(self.labels[at])


class Sides(Base):
    """A fixed label, and as many more samples."""

    def __len__(self):
        return 2 * len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index % len(self.paths)]).convert("RGB")), 1


class Targets(Base):
    """Several numbers for each."""

    def __init__(self, paths):
        super().__init__(paths)
        self.marks = torch.rand(len(paths), 5) > 0.5
        self.boxes = numpy.random.default_rng(0).random((len(paths), 4), dtype="f4")
        self.scores, self.small = numpy.arange(len(paths)) / 7, numpy.arange(len(paths), dtype="i4")
        self.codes, self.numbers = numpy.array([f"code {number}" for number in range(len(paths))]), numpy.arange(len(paths))

    def __getitem__(self, i):
        image = self.transform(Image.open(self.paths[i]).convert("RGB"))
        texts = self.codes[i], self.codes[i].upper(), f"{self.numbers[i]:03}"
        numbers = {"half": self.numbers[i] / 2, "rest": self.numbers[i] % 5, "score": self.scores[i], "small": self.small[i], "one": self.labels[i] / 2}
        return image, self.marks[i], self.boxes[i], torch.tensor(self.labels[i] / 2, dtype=torch.float16), texts, numbers


def frame_of(paths, **arguments):
    names = [os.path.basename(path) for path in paths]
    return pandas.DataFrame({"file": names, "label": range(len(paths)), "score": [number / 4 for number in range(len(paths))]}, **arguments)


class Framed(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.df = frame_of(paths)

    def __getitem__(self, idx):
        img_name = os.path.join(self.folder, self.df.iloc[idx, 0])
        image = Image.open(img_name).convert("RGB")
        return self.transform(image), self.df.iloc[idx, 1], self.df.loc[idx, "score"]


class FramedRows(Framed):
    def __getitem__(self, idx):
        row = self.df.iloc[idx]
        return {"image": self.transform(Image.open(f"{self.folder}/{row['file']}").convert("RGB")), "target": row["label"], "score": row["score"]}


class FramedColumns(Framed):
    def __getitem__(self, idx):
        path = self.folder + "/" + self.df.file[idx]
        return self.transform(Image.open(path).convert("RGB")), self.df["label"].values[idx], self.df["score"].iloc[idx], self.df["file"][idx]


class Transformed(Dataset):
    """Around another data set that gives images."""

    def __init__(self, inner, transform=TRAINING):
        self.inner, self.transform = inner, transform

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        x, y = self.inner[index]
        if self.transform is not None:
            x = self.transform(x)
        return x, y


class Opened(Base):
    def __getitem__(self, index):
        return Image.open(self.paths[index]).convert("RGB"), self.labels[index]


def of_a_part(paths):
    return Transformed(Subset(Opened(paths), [5, 3, 8, 1, 0, 11, 7]))


def of_a_folder(paths):
    return Transformed(random_split(datasets.ImageFolder(os.path.dirname(os.path.dirname(paths[0]))), [10, 14], torch.Generator())[1])


class WithPaths(datasets.ImageFolder):
    def __init__(self, paths):
        super().__init__(os.path.dirname(os.path.dirname(paths[0])), transform=TRAINING)

    def __getitem__(self, index):
        image, label = super(WithPaths, self).__getitem__(index)
        path, _ = self.samples[index]
        return image, label, self.imgs[index][0], path


class WithLengths(WithPaths):
    def __getitem__(self, index):
        image, label, path, _ = super().__getitem__(index)
        return image, label, os.path.basename(path), len(self.samples)


class Settings:
    folder = None
    ending = ".jpg"


class WithDefaults(WithIndex):
    """Keyword arguments before `self` in no order, constants of a class, and None where there is nothing for any sample."""

    def __init__(self, paths):
        super().__init__(paths)
        self.stems, self.nothing, Settings.folder = [os.path.splitext(os.path.basename(path))[0] for path in paths], [None] * len(paths), self.folder

    def path_of(self, stem, *, ending=Settings.ending):
        return os.path.join(Settings.folder, stem + ending)

    def __getitem__(self, index, as_pair=True):
        number, pair = super().__getitem__(index)
        if self.nothing[index] is not None:
            raise ValueError
        return pair if as_pair and self.path_of(self.stems[index]) != "" else number


class Folder(datasets.ImageFolder):
    """A class of its own, torchvision's code."""


class Survives(Base):
    """A file that cannot be opened, by the next one."""

    def __getitem__(self, index):
        name = self.folder
        name += "/" + os.path.basename(self.paths[index])
        try:
            image = Image.open(name).convert("RGB")
        except OSError:
            return self[(index + 1) % len(self)]
        else:
            label = self.labels[index]
        label *= 3
        return self.transform(image), label


OWN = [Survives, Plain, Pairs, Names, AsDict, WithIndex, ImageAlone, Arrays, Sides, Targets, Framed, FramedRows, FramedColumns, of_a_part, of_a_folder, WithPaths, WithLengths, WithDefaults]
