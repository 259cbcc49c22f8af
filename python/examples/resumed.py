"""Goes on after it was killed, from its last checkpoint: python resumed.py FOLDER_OF_JPEGS CHECKPOINT"""

import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

EPOCHS, SAVE_EVERY = 8, 2


def save(path, **state):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


if __name__ == "__main__":
    data, path = sys.argv[1:]
    train = datasets.ImageFolder(data, transforms.Compose([transforms.Resize(40), transforms.CenterCrop(32), transforms.ToTensor()]))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    first_epoch = first_step = 0
    if os.path.exists(path):
        checkpoint = torch.load(path)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        first_epoch, first_step = checkpoint["epoch"], checkpoint["step"]
    for epoch in range(first_epoch, EPOCHS):
        torch.manual_seed(1000 + epoch)  # So that a resumed epoch has the order of the one that was cut short.
        loader = DataLoader(train, batch_size=4, shuffle=True, num_workers=2)
        for step, (images, labels) in enumerate(loader):
            if epoch == first_epoch and step < first_step:
                continue
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item()}", flush=True)
            if (step + 1) % SAVE_EVERY == 0:
                save(path, model=model.state_dict(), optimizer=optimizer.state_dict(), epoch=epoch, step=step + 1)
