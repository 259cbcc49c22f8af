"""torchdata: its StatefulDataLoader, and a graph of torchdata.nodes. Both run the baseline's data set in processes."""

import functools

from peers import SAME_CODE, Peer, on

PACKAGES = ("torchdata==0.11.0",)


def stateful_batches(work):
    from torch_datasets import dataset
    from torchdata.stateful_dataloader import StatefulDataLoader

    workers = 0 if work.workload.name == "text" else work.workers
    return iter(StatefulDataLoader(dataset(work), batch_size=work.batch_size, num_workers=workers, drop_last=True))


def collated(samples, indices):
    from torch.utils.data import default_collate

    return default_collate([samples[index] for index in indices])


def node_batches(work):
    from torch.utils.data import SequentialSampler
    from torch_datasets import dataset
    from torchdata import nodes

    samples = dataset(work)
    indices = nodes.Batcher(nodes.SamplerWrapper(SequentialSampler(samples)), batch_size=work.batch_size, drop_last=True)
    mapped = nodes.ParallelMapper(indices, functools.partial(collated, samples), num_workers=work.workers, method="process", multiprocessing_context="fork")
    return iter(nodes.Loader(nodes.Prefetcher(mapped, prefetch_factor=2)))


PEERS = [
    Peer("torchdata StatefulDataLoader", on("photographs bytes own contrastive text", stateful_batches), SAME_CODE, PACKAGES, "torchdata"),
    Peer("torchdata.nodes", on("photographs own contrastive", node_batches), SAME_CODE, PACKAGES, "torchdata"),
]
