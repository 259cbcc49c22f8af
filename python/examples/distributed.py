"""DistributedDataParallel over images: torchrun --nproc-per-node=2 distributed.py FOLDER_OF_JPEGS"""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from torchvision import datasets, transforms


def main():
    dist.init_process_group("gloo")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    torch.manual_seed(100 + local_rank)
    transform = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    train = datasets.ImageFolder(sys.argv[1], transform)
    sampler = DistributedSampler(train, shuffle=True, seed=2, drop_last=False)
    loader = DataLoader(train, batch_size=3, sampler=sampler, num_workers=2)
    model = DDP(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lines = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for step, (images, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            lines.append(f"rank {rank} epoch {epoch} step {step} loss {loss.item()}")
    for turn in range(dist.get_world_size()):
        dist.barrier()
        if turn == rank:
            print("\n".join(lines), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
