"""Lightning with loaders that the script makes: python lightning_images.py FOLDER_OF_JPEGS"""

import sys

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


class Classifier(pl.LightningModule):
    def __init__(self, classes):
        super().__init__()
        self.save_hyperparameters()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes))

    def forward(self, images):
        return self.layers(images)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("train_loss", loss, prog_bar=True)
        print(f"epoch {self.current_epoch} step {batch_idx} loss {loss.item()}")
        return loss

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels)
        self.log("val_loss", loss)
        print(f"epoch {self.current_epoch} validation {batch_idx} loss {loss.item()}")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def main():
    pl.seed_everything(7, workers=True)
    augmented = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4), transforms.ToTensor()])
    plain = transforms.Compose([transforms.Resize((32, 32)), transforms.ToTensor()])
    train = datasets.ImageFolder(sys.argv[1], augmented)
    train_loader = DataLoader(train, batch_size=4, shuffle=True, num_workers=2, persistent_workers=True)
    val_loader = DataLoader(datasets.ImageFolder(sys.argv[1], plain), batch_size=8, num_workers=2)
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, num_sanity_val_steps=1)
    trainer.fit(Classifier(len(train.classes)), train_loader, val_loader)


if __name__ == "__main__":
    main()
