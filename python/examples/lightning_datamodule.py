"""Lightning's LightningDataModule over a table in memory: python lightning_datamodule.py"""

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Measurements(Dataset):
    """Rows with noise that each reading draws anew."""

    def __init__(self, rows=60):
        generator = torch.Generator().manual_seed(5)
        self.inputs = torch.randn(rows, 6, generator=generator)
        self.targets = self.inputs @ torch.arange(6.0) / 10

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return {"inputs": self.inputs[index] + 0.1 * torch.randn(6), "target": self.targets[index], "name": f"row {index}"}


class MeasurementsModule(pl.LightningDataModule):
    def __init__(self, batch_size=8):
        super().__init__()
        self.batch_size = batch_size

    def setup(self, stage):
        self.train, self.val = random_split(Measurements(), [0.75, 0.25], generator=torch.Generator().manual_seed(1))

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.batch_size, shuffle=True, num_workers=2)

    def val_dataloader(self):
        return [DataLoader(self.val, batch_size=self.batch_size, num_workers=1), DataLoader(self.train, batch_size=15, num_workers=1)]


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 1)

    def training_step(self, batch, batch_idx):
        loss = nn.functional.mse_loss(self.layer(batch["inputs"]).squeeze(1), batch["target"])
        print(f"epoch {self.current_epoch} step {batch_idx} loss {loss.item()} {batch['name'][0]}")
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        loss = nn.functional.mse_loss(self.layer(batch["inputs"]).squeeze(1), batch["target"])
        print(f"epoch {self.current_epoch} validation {dataloader_idx} {batch_idx} loss {loss.item()}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


if __name__ == "__main__":
    pl.seed_everything(3)
    trainer = pl.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         reload_dataloaders_every_n_epochs=2)  # fmt: skip
    trainer.fit(Regression(), datamodule=MeasurementsModule())
