"""Sluice's DataLoader as a plug-in of DLIO: reader.data_loader_classname=sluice_loader.SluiceLoader reader.data_loader_sampler=index.

Data set, order of the samples, batches and prefetching are those of DLIO's own torch loader.
"""

import math

from dlio_benchmark.common.enumerations import DataLoaderType
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader
from dlio_benchmark.data_loader.torch_data_loader import TorchDataset, dlio_sampler
from sluice.torch import DataLoader

PREFETCHED_BY_TORCH = 2  # where DLIO's prefetch_size is 0


class SluiceLoader(BaseDataLoader):
    def __init__(self, format_type, dataset_type, epoch_number):
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)
        self._batches = None

    def read(self):
        args, workers = self._args, self._args.read_threads
        dataset = TorchDataset(self.format_type, self.dataset_type, self.epoch_number, self.num_samples, workers, self.batch_size)
        sampler = dlio_sampler(args.my_rank, args.comm_size, self.num_samples, args.sample_shuffle, args.epochs, args.seed)
        of_workers = {"prefetch_factor": math.ceil(args.prefetch_size / workers) or PREFETCHED_BY_TORCH, "persistent_workers": True} if workers else {}
        self._batches = DataLoader(dataset, batch_size=self.batch_size, sampler=sampler, num_workers=workers, pin_memory=True, drop_last=True,
                                   worker_init_fn=dataset.worker_init, **of_workers)  # fmt: skip

    def next(self):
        yield from self._batches
        self.epoch_number += 1

    def finalize(self):
        pass
