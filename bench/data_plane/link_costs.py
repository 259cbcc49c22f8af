"""What the link between a data worker and the feeder costs: CPU-seconds of both ends for a GB of tensors, in the clear and with mutual TLS.

Python children make the batches: large ones of rows that are there. So the worker's own process does nothing but send, and the feeder's nothing but receive
into shared memory and hand over. Time of the children is not counted. The feeder's child sleeps for each sample, so that all batches come from the worker.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import torch
from executor_mix import SLOWNESS
from process_trees import own_cpu_seconds
from remote_batches import IN_THE_CLEAR, batches_by_placement, feeder_for_workers, free_address, remote_share, wait_for_remote_batches, worker_at

import sluice.torch

_BATCH = 64
_BATCHES = 20
_EPOCHS = 3  # That are measured.
_LOCAL_SAMPLE_SECONDS = 0.02
_WORKER_NAME = "worker.sluice.internal"  # For which every worker's certificate is issued.


class _Rows(torch.utils.data.Dataset):
    """Images of 224 x 224 as float32."""

    def __init__(self):
        self.row = torch.ones(3, 224, 224)

    def __len__(self):
        return _BATCH * _BATCHES

    def __getitem__(self, index):
        time.sleep(_LOCAL_SAMPLE_SECONDS * float(os.environ.get(SLOWNESS, "1")))
        return self.row


@contextlib.contextmanager
def mutual_tls():
    """The flags of both ends, with one certificate for both, which is its own authority."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as name:
        folder = pathlib.Path(name)
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "1", "-subj", f"/CN={_WORKER_NAME}"]
        command += ["-addext", f"subjectAltName=DNS:{_WORKER_NAME}", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
        subprocess.run(command, check=True, capture_output=True)
        shutil.copy(folder / "tls.crt", folder / "ca.crt")
        yield ("--tls-dir", name)


def link_seconds_per_gb(build, security=IN_THE_CLEAR):
    worker_address, metrics_address = free_address(), free_address()
    with (
        worker_at(build, worker_address, security=security, **{SLOWNESS: "0"}) as worker,
        feeder_for_workers(build, worker_address, metrics_address, security) as feeder,
    ):
        loader = sluice.torch.DataLoader(_Rows(), batch_size=_BATCH, num_workers=2)
        wait_for_remote_batches(loader, metrics_address)
        for _ in loader:  # Each slot of the shared memory has its pages then.
            pass
        ends = (worker.pid, feeder.pid)
        before, cpu_before = batches_by_placement(metrics_address), sum(map(own_cpu_seconds, ends))
        received = sum(batch.nbytes for _ in range(_EPOCHS) for batch in loader)
        used, after = sum(map(own_cpu_seconds, ends)) - cpu_before, batches_by_placement(metrics_address)
    return used / (received * remote_share(before, after) / 1e9)


def link_seconds_per_gb_with_tls(build):
    with mutual_tls() as security:
        return link_seconds_per_gb(build, security)
