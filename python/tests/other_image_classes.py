"""Dataset classes over image files that do more than native executors can: each stays Python."""

import decimal
import random

import torch
from PIL import Image

from torchvision import transforms

from own_image_classes import TENSOR, Base, Framed, FramedColumns, FramedRows, Plain, frame_of

DEBUG = False
CROP, FLIP, NORMALIZE = transforms.RandomCrop(16), transforms.RandomHorizontalFlip(), transforms.Normalize(0.5, 0.5)


class Grey(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("L")), self.labels[index]


class Draws(Base):
    def __getitem__(self, index):
        other = random.randrange(len(self.paths))
        return self.transform(Image.open(self.paths[other]).convert("RGB")), self.labels[index]


class Counts(Base):
    count = 0

    def __getitem__(self, index):
        self.count = self.count + 1
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Prints(Base):
    def __getitem__(self, index):
        print(index)
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Tidies(Base):
    def __getitem__(self, index):
        try:
            return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]
        finally:
            self.last = index


class LooksUp(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.names = {0: 1}

    def __getitem__(self, index):
        try:
            label = self.names[self.labels[index]]
        except KeyError:
            label = 0
        return self.transform(Image.open(self.paths[index]).convert("RGB")), label


class Extends(Base):
    def __getitem__(self, index):
        sides = [1]
        sides += [2]
        return self.transform(Image.open(self.paths[index]).convert("RGB")), sides


class AddsToAnImage(Base):
    def __getitem__(self, index):
        image = TENSOR(CROP(Image.open(self.paths[index]).convert("RGB")))
        image /= 255
        return image, index


class JoinsSizes(Base):
    """Which torch refuses."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return torch.stack([TENSOR(CROP(image)), TENSOR(transforms.Resize((5, 6))(image))]), index


class JoinsAlongAnother(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return torch.stack([TENSOR(CROP(image)), TENSOR(CROP(image))], 1), index


class TakesTurns(Base):
    """Its images draw in turns."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        one, other = CROP(image), CROP(image)
        return TENSOR(FLIP(one)), TENSOR(FLIP(other))


class DropsOne(Base):
    """That has drawn."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        self.transform(image)
        return self.transform(image), self.labels[index]


class DropsAnother(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        unused = self.transform(image)  # noqa: F841
        return self.transform(image), self.labels[index]


class Twice(Base):
    def __getitem__(self, index):
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return image, image


class BothAreTensors(Base):
    def __getitem__(self, index):
        image = self.transform(Image.open(self.paths[index]).convert("RGB"))
        return image, NORMALIZE(image)


class TwoFiles(Base):
    def __getitem__(self, index):
        return [self.transform(Image.open(path).convert("RGB")) for path in (self.paths[index], self.paths[0])]


class SomeConverted(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        return self.transform(image), self.transform(image.convert("RGB"))


class ResizesRoughly(Base):
    def __getitem__(self, index):
        return TENSOR(Image.open(self.paths[index]).convert("RGB").resize((9, 9), reducing_gap=2.0)), self.labels[index]


class ConvertsAPalette(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert(palette="RGB")), self.labels[index]


class AsksLater(Base):
    def __getitem__(self, index):
        image = CROP(Image.open(self.paths[index]).convert("RGB"))
        return TENSOR(image), image.mode


class Decides(Base):
    def __getitem__(self, index):
        transform = TENSOR if self.labels[index] > 3 else self.transform
        return transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class DecidesByEquality(Base):
    def __getitem__(self, index):
        if self.labels[index] == 5:
            return TENSOR(Image.open(self.paths[index]).convert("RGB")), self.labels[index]
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Crops(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        image = image.crop((0, 0, 8, 8))
        return self.transform(image), self.labels[index]


class OwnList(list):
    def __getitem__(self, index):
        return super().__getitem__(0)


class Lists(Plain):
    def __init__(self, paths):
        super().__init__(paths)
        self.paths = OwnList(self.paths)


class Hidden(Plain):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Masks(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), None


class Boxes(Base):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), [(1, 2), (3, 4)][0 : index + 1]


class Batches(Plain):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class SomeNones(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.boxes = [*self.labels[1:], None]

    def __getitem__(self, index):
        transform = TENSOR if self.boxes[index] is None else self.transform
        return transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class Reader:
    """A descriptor, which runs code for each attribute."""

    def __get__(self, dataset, kind=None):
        return dataset.__dict__["file_names"][::-1]

    def __set__(self, dataset, value):
        dataset.__dict__["file_names"] = value


class Described(Plain):
    paths = Reader()

    def __init__(self, paths):
        super().__init__(paths)
        vars(self)["paths"] = list(paths)


class Gradients(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.targets = torch.rand(len(paths), 2, requires_grad=True)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.targets[index]


class Decimals(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.labels = [decimal.Decimal(label) for label in self.labels]

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), int(self.labels[index] + 1)


class Global(Base):
    def __getitem__(self, index):
        global DEBUG
        DEBUG = False
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class FramedByNames(Framed):
    def __init__(self, paths):
        super().__init__(paths)
        self.df = frame_of(paths, index=range(5, 5 + len(paths)))


class FramedNumbers(Framed):
    def __init__(self, paths):
        super().__init__(paths)
        self.numbers = self.df[["label", "score"]]

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.numbers.iloc[index]["label"]


class FramedTensors(Framed):
    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), torch.tensor(self.df["score"][index])


class Short(Plain):
    """Fewer labels than samples."""

    def __init__(self, paths):
        super().__init__(paths)
        self.labels = self.labels[:-1]


class ConvertsByAnotherFile(Base):
    def __getitem__(self, index):
        image, mask = Image.open(self.paths[index]), Image.open(self.paths[0])
        if mask.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), index


class Reduces(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return TENSOR(image.resize((20, 30), reducing_gap=2.0))


class IsOneText(Base):
    split, training = "train", "".join(["tr", "ain"])

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), 1 if self.split is self.training else 2


class ComposeThatGrows(Base):
    def __getitem__(self, index):
        steps = [transforms.CenterCrop(16), TENSOR]
        transform = transforms.Compose(steps)
        steps.append(NORMALIZE)
        return transform(Image.open(self.paths[index]).convert("RGB"))


class GrowsInItsLoop(Base):
    def __getitem__(self, index):
        numbers = [1, 2]
        for number in numbers:
            if number == 1:
                numbers.append(3)
        return self.transform(Image.open(self.paths[index]).convert("RGB")), numbers


def listed(values):
    first = [value for value in values]
    return first + [value for value in values]


class OwnListOfAGenerator(Base):
    def __getitem__(self, index):
        list = listed
        return self.transform(Image.open(self.paths[index]).convert("RGB")), list(number for number in (1, 2))


class HasNoValueYet(Base):
    def __getitem__(self, index):
        for _ in ():
            DEBUG = True
        return self.transform(Image.open(self.paths[index]).convert("RGB")), DEBUG


class ChangesInPlace(Base):
    in_place = transforms.Normalize(0.5, 0.5, inplace=True)

    def __getitem__(self, index):
        image = TENSOR(CROP(Image.open(self.paths[index]).convert("RGB")))
        _ = self.in_place(image)
        return image


class OfTheClass(property):
    def __get__(self, thing, kind):
        return self.fget(kind)


class OwnProperty(Base):
    label = 3

    @OfTheClass
    def own_label(cls):
        return cls.label

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.own_label


class Alternating:
    count = 0

    def __bool__(self):
        self.count += 1
        return self.count % 2 == 1


class OwnTruth(Base):
    flag = Alternating()

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), 1 if self.flag else 2


NEED_PANDAS = {Framed, FramedRows, FramedColumns, FramedByNames, FramedNumbers, FramedTensors}

# What each does beside, as it is told.
OTHERS = {
    Grey: "convert('L')", Draws: "random.randrange", Counts: "self.count =", Prints: "print(index)", Tidies: "try:", LooksUp: "KeyError", Extends: "sides += [2]", AddsToAnImage: "image /= 255",
    JoinsSizes: "joins images of several sizes", JoinsAlongAnother: "torch.stack([TENSOR",
    TakesTurns: "take turns in their random transforms", DropsOne: "has `self.transform(image)`", DropsAnother: "some are not used", Twice: "is what another one is made of",
    BothAreTensors: "is what another one is made of", TwoFiles: "opens a str", SomeConverted: "some of its images", ResizesRoughly: ".resize((9, 9), ", ConvertsAPalette: "palette", AsksLater: "mode of a transformed",
    Decides: "> 3", DecidesByEquality: "differs from sample to sample", Crops: "image.crop", Lists: "takes an item of a other_image_classes.OwnList",
    Hidden: "its own way of attributes", Masks: "NoneType", Boxes: "has `", Batches: "__getitems__", SomeNones: "differs from sample to sample", Described: "self.paths", Gradients: "takes an item of a torch.Tensor", Decimals: "computes with a decimal.Decimal", Global: "global DEBUG", Short: "IndexError",
    ConvertsByAnotherFile: "opens a", Reduces: "image.resize", IsOneText: "self.split is", ComposeThatGrows: "steps.append",
    GrowsInItsLoop: "for number in numbers", OwnListOfAGenerator: "number for number", HasNoValueYet: "has `DEBUG`", ChangesInPlace: "some are not used",
    OwnProperty: "self.own_label", OwnTruth: "asks a other_image_classes.Alternating whether it is true",
    FramedByNames: "by their names", FramedNumbers: "frame of numbers", FramedTensors: "makes a tensor of a numpy.float64",
}  # fmt: skip


