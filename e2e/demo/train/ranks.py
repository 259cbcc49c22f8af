#!/usr/bin/env python3
"""A training of several ranks as users write it: every rank reads its share of the data set, and all take each step together.

    ranks.py --data /data/photographs --epochs 2 --batch-size 32

Environment: what torch.distributed reads (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE); DATALOADER and DIGEST as in train.py.
Prints JSON lines: `start`, one `step` per batch with the digest of all batches so far and the time of computing and waiting, at the end one `result`.
"""

import argparse

import torch
from accelerator import make_accelerator
from torch import distributed
from torch.utils.data import DistributedSampler
from train import Digest, StepClock, data_loader_class, say
from workloads import ACCELERATORS, DATASETS


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=2, help="num_workers of the DataLoader")
    parser.add_argument("--digest", choices=["sampled", "full"], default="full")
    parser.add_argument("--step-factor", type=float, default=0, help="of vision's emulated accelerator, as in train.py; 0: steps take no time")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    distributed.init_process_group("gloo")
    rank, world_size = distributed.get_rank(), distributed.get_world_size()
    torch.manual_seed(1)
    dataset = DATASETS["vision"](arguments.data)
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)
    loader = data_loader_class()(dataset, batch_size=arguments.batch_size, sampler=sampler, num_workers=arguments.workers,
                                 persistent_workers=arguments.workers > 0)  # fmt: skip
    say("start", rank=rank, world_size=world_size, size=len(dataset))
    accelerator = make_accelerator("vision", ACCELERATORS["vision"].slower(arguments.step_factor), len(dataset.classes))
    digest, labels = Digest(arguments.digest), []
    clock = StepClock(len(sampler) * arguments.epochs)
    for epoch in range(arguments.epochs):
        sampler.set_epoch(epoch)
        for step, batch in enumerate(loader):
            clock.got_batch(len(batch[1]))
            accelerator.begin(batch)
            digest.add(batch)
            labels += batch[1].tolist()
            accelerator.wait()
            clock.computed()
            together = torch.ones(1)
            distributed.all_reduce(together)  # as the gradients' average does: no rank is a step ahead. The clock takes it for waiting.
            say("step", rank=rank, epoch=epoch, step=step, digest=digest.text(), together=int(together), samples=clock.samples,
                compute=clock.compute, wait=clock.wait)  # fmt: skip
    say("result", rank=rank, labels=labels, **clock.summary())
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
