"""Dataset classes and transforms as users write them, where an image is of any mode, or a sample has several images of one file."""

import numpy
import torch
import torchvision.transforms as transforms
from PIL import Image
from torchvision import datasets
from torchvision.transforms import functional, v2

from own_image_classes import TRAINING, Base

RESIZE, TENSOR = transforms.Resize((24, 24)), transforms.ToTensor()
SMALL = transforms.Compose([transforms.RandomResizedCrop(8, scale=(0.05, 0.4)), transforms.RandomSolarize(100, 0.3), transforms.ToTensor(), transforms.RandomErasing(0.5)])
START = transforms.Compose([transforms.Resize(40), transforms.RandomHorizontalFlip()])


class AnyMode(Base):
    """Without a convert."""

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index])), self.labels[index]


class ConvertsOthers(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), self.labels[index]


class ConvertsOthersToo(Base):
    def __getitem__(self, index):
        with Image.open(self.paths[index]) as opened:
            image = opened if opened.mode == "RGB" else opened.convert("RGB")
            return self.transform(image), self.labels[index]


class ConvertsGrey(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        if image.mode == "L" or image.mode not in ("RGB", "P"):
            image = image.convert("RGB")
        return {"image": self.transform(image), "mode": image.mode}


class ConvertsByAnother(Base):
    """By the mode of an image that is always RGB."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        other = image.convert("RGB")
        if other.mode != "RGB":
            image = image.convert("RGB")
        return self.transform(image), self.labels[index]


class ConvertsInTheTransform(Base):
    def __init__(self, paths):
        super().__init__(paths, transforms.Compose([transforms.Lambda(lambda image: image.convert("RGB")), *TRAINING.transforms]))

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index])), self.labels[index]


class TwoCrops:
    """As MoCo has them."""

    def __init__(self, base_transform=TRAINING):
        self.base_transform = base_transform

    def __call__(self, x):
        q = self.base_transform(x)
        k = self.base_transform(x)
        return [q, k]


class ManyViews:
    """As tutorials of SimCLR have them."""

    def __init__(self, base_transforms=TRAINING, n_views=2):
        self.base_transforms = base_transforms
        self.n_views = n_views

    def __call__(self, x):
        return [self.base_transforms(x) for _ in range(self.n_views)]


class MultiCrop:
    """As DINO has them: of two sizes."""

    def __init__(self, locals_=3):
        self.global_1, self.global_2, self.local, self.local_crops_number = TRAINING, v2.Compose([RESIZE, TENSOR]), SMALL, locals_

    def __call__(self, image):
        crops = []
        crops.append(self.global_1(image))
        crops.append(self.global_2(image))
        for _ in range(self.local_crops_number):
            crops.append(self.local(image))
        return crops


class AsModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.views = torch.nn.Sequential(transforms.Resize(40), transforms.RandomHorizontalFlip()), [TRAINING, SMALL]
        self.last = v2.RandomCrop(12)

    def forward(self, image):
        start = self.start(image)
        return {"views": [view(start) for view in self.views], "last": TENSOR(self.last(start))}


class PerView:
    """As libraries have them: a transform for each, behind what they share."""

    def __init__(self):
        self.transforms = [TRAINING, SMALL]

    def __call__(self, image):
        image = START(image)
        return tuple(transform(image) for transform in self.transforms)


PER_VIEW = PerView()


class Views(Base):
    def __init__(self, paths):
        super().__init__(paths, TwoCrops())

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), self.labels[index]


class NamedViews(Base):
    """In another order than they draw in, of any mode, with an index."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        weak = self.transform(image)
        strong = SMALL(image)
        return {"index": index, "strong": strong, "weak": weak}


class FromAStart(Base):
    def __getitem__(self, index):
        return PER_VIEW(Image.open(self.paths[index]).convert("RGB"))


class ByAMethod(Base):
    def __init__(self, paths):
        super().__init__(paths)
        self.transform = self.augmented

    def augmented(self, image):
        return TRAINING(image.resize(resample=Image.BICUBIC, size=(40, 50)))

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert(mode="RGB")), self.labels[index]


class OneOfMany(Base):
    """A list of one image."""

    def __init__(self, paths):
        super().__init__(paths, ManyViews(n_views=1))

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), torch.tensor(self.labels[index])


class Stacked:
    """As evaluation over several crops has them."""

    def __init__(self, join=torch.stack, views=3):
        self.join, self.views = join, views

    def __call__(self, image):
        image = START(image)
        return self.join([SMALL(image) for _ in range(self.views)])


class Joins(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        views = (SMALL(image), SMALL(image))
        return {"one": torch.stack(views, dim=0), "other": torch.cat([SMALL(image), SMALL(image)], 0), "label": self.labels[index]}


def folder_with(transform):
    def make(paths):
        return datasets.ImageFolder(Base(paths).folder + "/..", transform)

    make.__name__ = f"folder_with_{type(transform).__name__}"
    return make


class MakesTransforms(Base):
    """For each sample, and functions in their place."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        crop = transforms.RandomResizedCrop(16, scale=(0.5, 1.0))
        transform = transforms.Compose([crop, transforms.ToTensor()])
        small = functional.center_crop(functional.resize(image, [20, 30], transforms.InterpolationMode.BICUBIC), 16)
        return transform(image), functional.normalize(functional.to_tensor(small), mean=[0.5] * 3, std=(0.2, 0.3, 0.4)), self.labels[index]


class ResizesItself(Base):
    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return TENSOR(image.resize((20, 30))), TENSOR(image.resize((13, 40), Image.BILINEAR)), v2.functional.pil_to_tensor(image.resize((8, 8), resample=Image.Resampling.NEAREST))


class Alternatives(Base):
    """`or` and `and` give one of what they ask; arguments with names come in any order."""

    default, weight, nothing = None, 0.3, 0

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert(mode="RGB")
        transform = self.default or self.transform
        small = image.resize(resample=Image.BILINEAR, size=(20, 30))
        return transform(image), self.weight or 1.0, self.nothing and 7, self.nothing or self.labels[index], TENSOR(small), not self.nothing


class Joined(Base):
    """Tuples and lists; texts and their parts from the end."""

    def __getitem__(self, index):
        pair = (self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index])
        name = self.paths[index].split("/")[-1]
        return pair + (index, name, name[0], -index, [index] + ["x", name[-1]])


class OwnDict(dict):
    pass


class GrowsElsewhere(Base):
    names = OwnDict(some=1)

    def add(self, made, image):
        made.append(self.transform(image))
        return made

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        made = self.add([], image)
        same = self.add(made, image)
        return made, len(self.labels), same[0] if not self.names else index


class Attributes(Base):
    """As CelebA has them."""

    target_type = ("attr", "identity", "number")

    def __init__(self, paths):
        super().__init__(paths)
        self.attr, self.numbers = torch.arange(3 * len(paths)).reshape(-1, 3), numpy.arange(2.0 * len(paths)).reshape(-1, 2)

    def __getitem__(self, index):
        image = self.transform(Image.open(self.paths[index]))
        target = []
        for kind in self.target_type:
            if kind == "attr":
                target.append(self.attr[index, :])
            elif kind == "identity":
                target.append(self.attr[index, 0])
            else:
                target.append(self.numbers[index, -1])
        if target:
            target = tuple(target) if len(target) > 1 else target[0]
        return image, target


class GrowsAList(Base):
    """By another name."""

    def __getitem__(self, index):
        made = []
        same = made
        made.append(self.transform(Image.open(self.paths[index]).convert("RGB")))
        for turn in [1, 2]:
            same.append(turn)
        return made


VIEWS = [Joins, ByAMethod, Attributes, GrowsElsewhere, Alternatives, Joined, GrowsAList, MakesTransforms, ResizesItself, AnyMode, ConvertsOthers, ConvertsOthersToo, ConvertsGrey, ConvertsInTheTransform, Views, NamedViews, FromAStart, OneOfMany,
         *map(folder_with, (TwoCrops(), ManyViews(n_views=3), MultiCrop(), PerView(), AsModule(), Stacked(), Stacked(torch.cat), transforms.Compose([START, ManyViews()])))]  # fmt: skip
