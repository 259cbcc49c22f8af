"""Sentences of like lengths together, by a batch sampler of one's own: python length_buckets.py LINES.jsonl"""

import json
import random
import sys

import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import BatchSampler, DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, file):
        with open(file) as lines:
            self.texts = [json.loads(line)["text"] for line in lines]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        tokens = torch.tensor(list(self.texts[index].encode()))
        dropped = torch.rand(len(tokens)) < 0.1
        return tokens.masked_fill(dropped, 0)


class BucketSampler(BatchSampler):
    """Batches of a number of tokens, not of samples. Draws from its own generator, which goes on over the epochs."""

    def __init__(self, lengths, max_tokens, seed=0):
        self.lengths, self.max_tokens, self.random = lengths, max_tokens, random.Random(seed)

    def __iter__(self):
        order = sorted(range(len(self.lengths)), key=lambda index: (self.lengths[index], self.random.random()))
        batches, batch = [], []
        for index in order:
            if batch and (len(batch) + 1) * self.lengths[index] > self.max_tokens:
                batches.append(batch)
                batch = []
            batch.append(index)
        batches.append(batch)
        self.random.shuffle(batches)
        yield from batches

    def __len__(self):
        return len(self.lengths) * max(self.lengths) // self.max_tokens


def collate(samples):
    samples = sorted(samples, key=len, reverse=True)
    return pack_sequence(samples), torch.tensor([len(sample) % 2 for sample in samples])


if __name__ == "__main__":
    torch.manual_seed(4)
    sentences = Sentences(sys.argv[1])
    loader = DataLoader(sentences, batch_sampler=BucketSampler([len(text) for text in sentences.texts], 80), num_workers=2, collate_fn=collate)
    embedding, layer, head = nn.Embedding(256, 8), nn.GRU(8, 8), nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*embedding.parameters(), *layer.parameters(), *head.parameters()], lr=1e-2)
    for epoch in range(2):
        for step, (packed, labels) in enumerate(loader):
            embedded = packed._replace(data=embedding(packed.data))
            loss = nn.functional.cross_entropy(head(layer(embedded)[1][0]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} samples {len(labels)} loss {loss.item()}")
