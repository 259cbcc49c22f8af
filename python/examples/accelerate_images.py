"""Accelerate's own loop: python accelerate_images.py FOLDER_OF_JPEGS (or accelerate launch)"""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import Compose, RandomResizedCrop, Resize, ToTensor


class Pets(Dataset):
    def __init__(self, files, transform):
        self.files = files
        self.labels = {name: number for number, name in enumerate(sorted({file.parent.name for file in files}))}
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB")
        return {"image": self.transform(image), "label": self.labels[self.files[index].parent.name]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    arguments = parser.parse_args()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(42)
    files = sorted(file for file in arguments.data.rglob("*") if file.is_file())
    train, evaluated = Pets(files[::2] + files[1::4], Compose([RandomResizedCrop(32, scale=(0.5, 1)), ToTensor()])), Pets(files[3::4], Compose([Resize((32, 32)), ToTensor()]))
    train_loader = DataLoader(train, shuffle=True, batch_size=4, num_workers=2)
    eval_loader = DataLoader(evaluated, shuffle=False, batch_size=4, num_workers=2)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, epochs=arguments.epochs, steps_per_epoch=len(train_loader))
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(model, optimizer, train_loader, eval_loader, scheduler)
    for epoch in range(arguments.epochs):
        model.train()
        for step, batch in enumerate(train_loader):
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            accelerator.print(f"epoch {epoch} step {step} loss {loss.item()}")
        model.eval()
        right = 0
        for batch in eval_loader:
            with torch.no_grad():
                predictions = model(batch["image"]).argmax(dim=-1)
            predictions, labels = accelerator.gather_for_metrics((predictions, batch["label"]))
            right += (predictions == labels).sum().item()
        accelerator.print(f"epoch {epoch} accuracy {100 * right / len(evaluated):.2f}")
    accelerator.end_training()


if __name__ == "__main__":
    main()
