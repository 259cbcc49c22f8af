"""Trains nothing, but loads as a training script would: python quickstart.py FOLDER_OF_JPEGS"""

import sys

from torchvision import transforms
from torchvision.datasets import ImageFolder

from sluice.torch import DataLoader

if __name__ == "__main__":
    crop = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
    loader = DataLoader(ImageFolder(sys.argv[1], crop), batch_size=64, shuffle=True, num_workers=4)
    print(loader.explain())
    for images, labels in loader:
        print(tuple(images.shape), images.dtype, labels[:8].tolist())
