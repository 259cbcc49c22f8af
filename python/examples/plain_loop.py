"""A training loop as in PyTorch's tutorials: python plain_loop.py FOLDER_OF_JPEGS"""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset
from torchvision import datasets, transforms

torch.manual_seed(0)
normalize = transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
augmented = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize])
plain = transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor(), normalize])

train_set = datasets.ImageFolder(sys.argv[1], augmented)
order = torch.randperm(len(train_set)).tolist()
held_out = len(order) // 4
train_loader = DataLoader(Subset(train_set, order[held_out:]), batch_size=4, shuffle=True, num_workers=2, drop_last=True)
test_loader = DataLoader(Subset(datasets.ImageFolder(sys.argv[1], plain), order[:held_out]), batch_size=8, num_workers=2)

model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, len(train_set.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(2):
    model.train()
    for step, (images, labels) in enumerate(train_loader):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} step {step} loss {loss.item()}")
    model.eval()
    with torch.no_grad():
        right = sum((model(images).argmax(1) == labels).sum().item() for images, labels in test_loader)
    print(f"epoch {epoch} accuracy {right / held_out}")
