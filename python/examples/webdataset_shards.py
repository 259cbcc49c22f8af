"""WebDataset's shards with its own loader class: python webdataset_shards.py 'FOLDER/shard-{0..3}.tar'"""

import sys

import torch
import webdataset as wds
from torch import nn
from torchvision import transforms

preprocess = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()])


def make_loader(urls, batch_size=4, num_workers=2):
    dataset = (
        wds.WebDataset(urls, shardshuffle=4, detshuffle=True, seed=3, nodesplitter=wds.split_by_node)
        .compose(wds.detshuffle(8))
        .decode("pil")
        .to_tuple("jpg", "cls")
        .map_tuple(preprocess, lambda label: label)
        .batched(batch_size, partial=False)
    )
    return wds.WebLoader(dataset, batch_size=None, num_workers=num_workers).unbatched().batched(batch_size)


if __name__ == "__main__":
    torch.manual_seed(5)
    loader = make_loader(sys.argv[1])
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(f"epoch {epoch} step {step} loss {loss.item()}")
