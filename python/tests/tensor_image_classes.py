"""Dataset classes in the styles that users write for torchvision's own decoders, whose images are tensors of bytes."""

from __future__ import annotations

import enum
import functools
import pathlib

import torch
import torchvision
from PIL import Image
from torch.utils.data import Dataset
from torchvision import io, transforms, tv_tensors
from torchvision.io import ImageReadMode, decode_image, read_file, read_image
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TRAINING = v2.Compose([v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
COLOURED = v2.Compose([
    v2.RandomResizedCrop(24), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(0.3), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)
])  # fmt: skip
RESIZE = v2.Resize((20, 30))
SCALED = transforms.Compose([v2.Resize((20, 30)), transforms.ConvertImageDtype(torch.float32), transforms.Normalize(MEAN, STD)])


class Tutorial(Dataset):
    """PyTorch's tutorial on custom data sets, with a list in the place of a table."""

    def __init__(self, paths, transform=TRAINING, target_transform=None):
        self.img_labels = [(path, number % 3) for number, path in enumerate(paths)]
        self.transform, self.target_transform = transform, target_transform

    def __len__(self):
        return len(self.img_labels)

    def __getitem__(self, idx):
        image = decode_image(self.img_labels[idx][0])
        label = self.img_labels[idx][1]
        if self.transform:
            image = self.transform(image)
        if self.target_transform:
            label = self.target_transform(label)
        return image, label


class Colours(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        return self.transform(read_image(path, mode=ImageReadMode.RGB)), label


class ByPlace(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        return self.transform(torchvision.io.read_image(str(path), io.ImageReadMode.RGB, False)), torch.tensor(label)


class ByText(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        return {"image": self.transform(decode_image(path, "RGB", apply_exif_orientation=False)), "label": label}


class ByPath(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        return self.transform(decode_image(pathlib.Path(path), mode="RGB")), label


class Divides(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(read_image(self.img_labels[idx][0])) / 255, idx


class DividesFloats(Tutorial):
    def __getitem__(self, idx):
        return transforms.functional.normalize(RESIZE(read_image(self.img_labels[idx][0])).float() / 255.0, MEAN, STD), idx


class DividesByMethod(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(read_image(self.img_labels[idx][0])).to(torch.float32).div(255), idx


class Floats(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(read_image(self.img_labels[idx][0])).type(torch.float32), idx


class FloatsTwice(Tutorial):
    def __getitem__(self, idx):
        return SCALED(decode_image(self.img_labels[idx][0])).float(), idx


class Functions(Tutorial):
    def __getitem__(self, idx):
        image = v2.functional.resize(decode_image(self.img_labels[idx][0]), [20, 30], antialias=True)
        image = v2.functional.to_dtype(v2.functional.center_crop(image, [16, 30]), torch.float32, scale=True)
        return v2.functional.normalize(image, mean=MEAN, std=STD), idx


class FunctionsOfImages(Tutorial):
    def __getitem__(self, idx):
        image = v2.functional.to_image(Image.open(self.img_labels[idx][0]).convert("RGB"))
        return transforms.functional.convert_image_dtype(v2.functional.resize(image, [20, 30]), torch.float32), idx


load = functools.partial(decode_image, mode="RGB")


class Partly(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        return self.transform(tv_tensors.Image(load(path)), label)


class Together(Tutorial):
    def __getitem__(self, idx):
        path, label = self.img_labels[idx]
        image, label = self.transform(tv_tensors.Image(Image.open(path).convert("RGB")), label)
        return {"image": image.to(dtype=torch.float32), "label": label}


class Views(Tutorial):
    def __getitem__(self, idx):
        image = decode_image(self.img_labels[idx][0], mode="RGB")
        return [self.transform(image), self.transform(image)], self.img_labels[idx][1]


def next_one(label):
    return label + 1


NATIVE = {
    kind.__name__: kind
    for kind in (Tutorial, Colours, ByPlace, ByText, ByPath, Divides, DividesFloats, DividesByMethod, Floats, FloatsTwice, Functions, FunctionsOfImages, Partly, Together, Views)
} | {
    "first generation": lambda paths: Tutorial(paths, transforms.Compose([transforms.CenterCrop(30), transforms.RandomVerticalFlip(), transforms.ConvertImageDtype(torch.float32)])),
    "target": lambda paths: Tutorial(paths, target_transform=next_one),
    "coloured": lambda paths: Colours(paths, COLOURED),
    "scaled": lambda paths: Colours(paths, SCALED),
}  # fmt: skip


class Upright(Tutorial):
    def __getitem__(self, idx):
        return self.transform(decode_image(self.img_labels[idx][0], apply_exif_orientation=True)), idx


class Grey(Tutorial):
    def __getitem__(self, idx):
        return self.transform(read_image(self.img_labels[idx][0], ImageReadMode.GRAY)), idx


class OfBytes(Tutorial):
    def __getitem__(self, idx):
        return self.transform(decode_image(read_file(self.img_labels[idx][0]))), idx


class Converts(Tutorial):
    def __getitem__(self, idx):
        return self.transform(decode_image(self.img_labels[idx][0]).convert("RGB")), idx


class AsksForTheMode(Tutorial):
    def __getitem__(self, idx):
        image = decode_image(self.img_labels[idx][0])
        return self.transform(image if image.mode == "RGB" else image), idx


class ResizesItself(Tutorial):
    def __getitem__(self, idx):
        return decode_image(self.img_labels[idx][0]).resize((20, 30)), idx


class DividesByOther(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(decode_image(self.img_labels[idx][0])) / 256, idx


class DividesFromTheRight(Tutorial):
    def __getitem__(self, idx):
        return 255 / RESIZE(decode_image(self.img_labels[idx][0])), idx


class DividesTwice(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(decode_image(self.img_labels[idx][0])) / 255 / 255, idx


class DividesByATensor(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(decode_image(self.img_labels[idx][0])) / OF_DOUBLES, idx


class Mode(enum.Enum):
    RGB = 3


class OfAnOwnMode(Tutorial):
    def __getitem__(self, idx):
        return self.transform(decode_image(self.img_labels[idx][0], Mode.RGB)), idx


class TogetherWithoutATransform(Tutorial):
    def __getitem__(self, idx):
        return OLD(decode_image(self.img_labels[idx][0]), idx)


class Doubles(Tutorial):
    def __getitem__(self, idx):
        return RESIZE(decode_image(self.img_labels[idx][0])).to(torch.float64), idx


class ToTensors(Tutorial):
    def __getitem__(self, idx):
        return transforms.ToTensor()(decode_image(self.img_labels[idx][0])), idx


OF_DOUBLES, OLD = torch.tensor(255.0, dtype=torch.float64), transforms.CenterCrop(20)
OTHERS = {
    DividesByATensor: "/ OF_DOUBLES", OfAnOwnMode: "Mode.RGB", TogetherWithoutATransform: "OLD(",
    Upright: "decode_image(self.img_labels[idx][0], apply_exif",
    Grey: "read_image(self.img_labels[idx][0], ImageReadMode.GRAY)",
    OfBytes: "read_file(self.img_labels[idx][0])",
    Converts: ".convert('RGB')",
    AsksForTheMode: "asks for the mode of a transformed image, or of a tensor",
    ResizesItself: ".resize((20, 30))",
    DividesByOther: "/ 256",
    DividesFromTheRight: "255 / RESIZE",
    DividesTwice: "transform 3, / 255, has no native form on what is no tensor of bytes",
    Doubles: ".to(torch.float",
    ToTensors: "ToTensor, has no native form on a tensor of bytes",
}
