"""The workloads as data sets of PyTorch with PIL: what torch's loader runs, and each peer that runs the same Python code."""

import torch
import torchvision.transforms as transforms
from torchvision.datasets import ImageFolder
from training_data import OwnDataset, contrastive_recipe, training_recipe
from workloads import IMAGE_SIDE, TOKENS


def bytes_recipe():
    return transforms.Compose([transforms.RandomResizedCrop(IMAGE_SIDE), transforms.RandomHorizontalFlip(), transforms.PILToTensor()])


SEED = 0  # The same draws for everyone: a loader that keeps torch's order and random numbers delivers torch's bytes.

RECIPES = {"photographs": training_recipe, "own": training_recipe, "bytes": bytes_recipe, "contrastive": contrastive_recipe}


class Paragraphs(torch.utils.data.Dataset):
    def __init__(self, lines, vocabulary):
        self.lines, self.vocabulary = lines, vocabulary

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return torch.tensor(tokens(self.lines[index], self.vocabulary))


def tokens(line, vocabulary):
    numbers = [vocabulary.get(word, 0) for word in line.lower().split()[:TOKENS]]
    return numbers + [0] * (TOKENS - len(numbers))


def recipe(work):
    return RECIPES[work.workload.name]()


def dataset(work):
    torch.manual_seed(SEED)
    if work.workload.name == "text":
        return Paragraphs(work.lines, work.vocabulary)
    if work.workload.name == "own":
        return OwnDataset([file for file, _ in work.photographs])
    images = ImageFolder(work.folder, recipe(work))
    return torch.utils.data.Subset(images, [at % len(images) for at in range(work.workload.samples)])
