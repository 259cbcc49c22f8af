"""A loaded Python pipeline and how it makes one batch: the same code in an executor's child and, when no feeder answers,
in the trainer's own process. A batch depends on the request alone, never on who computes it or what was computed before.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import Subset
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import worker as torch_worker

from sluice.seeds import collate_seed, sample_seed, seed_everything


@dataclass(frozen=True)
class BatchRequest:
    """One batch to make. `position` is that of its first sample, counted in samples from the start of the epoch; `indices`
    are dataset keys, a single one if the loader does not batch; `worker_id` is virtual, 0 .. num_workers-1."""

    seq: int
    base_seed: int
    epoch: int
    position: int
    indices: list
    worker_id: int
    num_workers: int


def module_path() -> list[str]:
    """Where this process finds modules, as absolute paths, and the script's folder by the name it was started with: Python
    resolves links in that one, and a script that comes from a ConfigMap lies behind a link to a folder that only its pod has."""
    entries = [os.path.abspath(entry) for entry in sys.path]
    if sys.argv and os.path.isfile(sys.argv[0]):
        entries.append(os.path.dirname(os.path.abspath(sys.argv[0])))
    return list(dict.fromkeys(entries))


@dataclass
class PythonPipeline:
    """What the Python executor needs. `collate_fn` None stands for torch's default."""

    dataset: Any
    collate_fn: Any
    auto_collation: bool
    worker_init_fn: Any

    def dumps(self) -> bytes:
        """Section 6 of the contract: two pickles one after the other, because the module path of the first may be needed to
        import what the second mentions. Raises whatever the user's objects raise when pickled."""
        from cloudpickle import dumps

        environment = {"sys_path": module_path(), "cwd": os.getcwd()}
        return pickle.dumps(environment) + dumps(dict(self.__dict__), protocol=pickle.HIGHEST_PROTOCOL)

    @staticmethod
    def loads(blob: bytes) -> PythonPipeline:
        """Raises whatever unpickling the user's objects raises."""
        file = io.BytesIO(blob)
        pickle.load(file)
        return PythonPipeline(**pickle.load(file))


class Computation:
    """Makes batches of one pipeline. Not thread-safe; changes this process's random state (see `untouched_process`)."""

    def __init__(self, blob: bytes) -> None:
        """`blob`: as PythonPipeline.dumps makes it. Raises whatever unpickling the user's objects raises."""
        self._blob = blob
        self._pipeline = PythonPipeline.loads(blob)
        # With a worker_init_fn each virtual worker owns a copy of the dataset, as each of torch's workers does;
        # without one nobody can tell, and one copy serves all.
        self._replicas: dict[int, PythonPipeline] = {}

    def compute(self, request: BatchRequest) -> Any:
        """The collated batch. Raises whatever the user's code raises."""
        pipeline = self._replica(request)
        _enter_worker(request, pipeline.dataset)
        data = _fetch(pipeline, request)
        seed_everything(collate_seed(request.base_seed, request.epoch, request.position))
        if pipeline.collate_fn is not None:
            return pipeline.collate_fn(data)
        if pipeline.auto_collation:
            return torch_collate.collate(data, collate_fn_map=_collate_map())
        return torch_collate.default_convert(data)

    def _replica(self, request: BatchRequest) -> PythonPipeline:
        if self._pipeline.worker_init_fn is None:
            return self._pipeline
        replica = self._replicas.get(request.worker_id)
        if replica is None:
            replica = PythonPipeline.loads(self._blob)
            info = _enter_worker(request, replica.dataset)
            seed_everything(info.seed)
            replica.worker_init_fn(request.worker_id)
            self._replicas[request.worker_id] = replica
        return replica


def enter_environment(blob: bytes) -> None:
    """Takes over the module path and the directory of the process that pickled the pipeline: for an executor's child, which
    has nothing of its own to lose."""
    environment = pickle.load(io.BytesIO(blob))
    for entry in environment["sys_path"]:
        if entry not in sys.path:
            sys.path.append(entry)
    with contextlib.suppress(OSError):  # A remote worker need not have that directory.
        os.chdir(environment["cwd"])


@contextlib.contextmanager
def untouched_process() -> Iterator[None]:
    """Computing inside must leave no trace in the trainer: random states and worker info are put back."""
    numpy = sys.modules.get("numpy")
    torch_state = torch.get_rng_state()
    random_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    info = torch_worker._worker_info
    try:
        yield
    finally:
        torch_worker._worker_info = info
        torch.set_rng_state(torch_state)
        random.setstate(random_state)
        if numpy is not None and numpy_state is not None:
            numpy.random.set_state(numpy_state)


def _enter_worker(request: BatchRequest, dataset: Any):
    """Makes get_worker_info() answer as in the virtual worker."""
    info = torch_worker.WorkerInfo(
        id=request.worker_id,
        num_workers=request.num_workers,
        seed=request.base_seed + request.worker_id,
        dataset=dataset,
    )
    torch_worker._worker_info = info
    return info


def _fetch(pipeline: PythonPipeline, request: BatchRequest) -> Any:
    def seed(offset: int) -> None:
        seed_everything(sample_seed(request.base_seed, request.epoch, request.position + offset))

    dataset, indices = pipeline.dataset, request.indices
    if not pipeline.auto_collation:
        seed(0)
        return dataset[indices[0]]
    if _fetches_batches(dataset):
        seed(0)
        return dataset.__getitems__(indices)
    samples = []
    for offset, index in enumerate(indices):
        seed(offset)
        samples.append(dataset[index])
    return samples


def _fetches_batches(dataset: Any) -> bool:
    """Whether torch would ask this dataset for whole batches and that makes a difference. torch's Subset offers it for the
    sake of the dataset it wraps; where that one has no such method, its samples get their own seeds like all others."""
    while type(dataset) is Subset:
        dataset = dataset.dataset
    return bool(getattr(dataset, "__getitems__", None))


def _stack(batch: list[torch.Tensor], *, collate_fn_map: Any = None) -> torch.Tensor:
    """torch's collation of tensors without its detour through named shared memory: the arena is the shared memory here."""
    first = batch[0]
    if first.is_nested or first.layout is not torch.strided:
        return torch_collate.default_collate_fn_map[torch.Tensor](batch, collate_fn_map=collate_fn_map)
    return torch.stack(batch, 0)


def _collate_map() -> dict:
    registered = torch_collate.default_collate_fn_map
    if registered.get(torch.Tensor) is not torch_collate.collate_tensor_fn:
        return registered  # The user has put a function of their own there.
    return {**registered, torch.Tensor: _stack}
