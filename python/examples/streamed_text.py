"""A language model over text that Hugging Face datasets streams: python streamed_text.py FOLDER_OF_JSONL"""

import sys
from pathlib import Path

import torch
from datasets import load_dataset
from torch import nn
from torch.utils.data import DataLoader

LENGTH = 16


def chunks(examples):
    """Joins the lines of a batch, and cuts them into pieces of equal length."""
    text = "\n".join(examples["text"]).encode()
    return {"tokens": [list(text[begin:begin + LENGTH]) for begin in range(0, len(text) - LENGTH + 1, LENGTH)]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(256, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 256)

    def forward(self, tokens):
        return self.head(self.layer(self.embedding(tokens[:, :-1]))[0]).transpose(1, 2)


if __name__ == "__main__":
    torch.manual_seed(9)
    files = sorted(map(str, Path(sys.argv[1]).glob("*.jsonl")))
    dataset = load_dataset("json", data_files=files, split="train", streaming=True)
    dataset = dataset.map(chunks, batched=True, batch_size=8, remove_columns=["text"]).shuffle(seed=42, buffer_size=10).with_format("torch")
    loader = DataLoader(dataset, batch_size=4, num_workers=2)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(2):
        dataset.set_epoch(epoch)
        for step, batch in enumerate(loader):
            loss = nn.functional.cross_entropy(model(batch["tokens"]), batch["tokens"][:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item()}")
