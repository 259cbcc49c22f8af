"""What a sample costs that a data worker makes: worker, gRPC, feeder and client together."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

from process_trees import tree_cpu_seconds

import sluice.torch
from sluice.feeder.choice import disconnect_all

_START_SECONDS = 60
IN_THE_CLEAR = ("--insecure",)
_EPOCHS = 4  # Their time counts; the feeder makes some of their batches, and the more there are the less its share varies.


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextlib.contextmanager
def program(command, environment=None):
    process = subprocess.Popen([str(argument) for argument in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def _page_of(metrics_address):
    with urllib.request.urlopen(f"http://{metrics_address}/metrics", timeout=10) as answer:
        return answer.read().decode()


def batches_by_placement(metrics_address):
    """Of the feeder, so far."""
    found = re.findall(r'^sluice_feeder_batches_total\{[^}]*placement="(\w+)"[^}]*\} (\S+)$', _page_of(metrics_address), re.MULTILINE)
    return {placement: float(count) for placement, count in found}


def remote_share(before, after):
    """Of the batches between two counts of batches_by_placement()."""
    made = {placement: after[placement] - before.get(placement, 0) for placement in after}
    return made["remote"] / sum(made.values())


def wait_for_workers(metrics_address, workers=1):
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if any(re.match(rf"sluice_feeder_remote_workers.* {workers}$", line) for line in _page_of(metrics_address).splitlines()):
            return
        time.sleep(0.1)
    raise RuntimeError(f"{workers} workers have not joined within {_START_SECONDS} s")


def wait_for_remote_batches(loader, metrics_address):
    """Epochs until a worker makes batches."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        for _ in loader:
            pass
        if batches_by_placement(metrics_address).get("remote", 0) > 0:
            return
    raise RuntimeError(f"no batch came from the worker within {_START_SECONDS} s")


def _program_of(build, name, security):
    python_path = pathlib.Path(sluice.torch.__file__).resolve().parent.parent
    return [pathlib.Path(build, "worker-image").resolve() / name, "--threads", "1", *security, "--python-path", python_path]


def worker_at(build, address, nice=0, security=IN_THE_CLEAR, **environment):
    """A worker with one thread on this machine. `nice`: how much others come before it where CPUs are scarce. `security`: its flags. `environment`:
    variables that it has beside this process's."""
    command = ["nice", "-n", str(nice), *_program_of(build, "sluice-worker", security), "--listen", address, "--drain-seconds", "1", "--metrics-address", "none"]
    return program(command, {**os.environ, **environment})


@contextlib.contextmanager
def feeder_for_workers(build, worker_addresses, metrics_address="none", security=IN_THE_CLEAR):
    """The feeder with one thread beside such workers (addresses by commas), which this process's loaders meanwhile use."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        endpoint = f"{folder}/feeder.sock"
        command = [*_program_of(build, "sluice-feeder", security), "--socket", endpoint, "--workers", worker_addresses]
        with program([*command, "--metrics-address", metrics_address]) as process:
            os.environ["SLUICE_FEEDER_SOCKET"] = endpoint
            try:
                yield process
            finally:
                del os.environ["SLUICE_FEEDER_SOCKET"]
                disconnect_all()


@contextlib.contextmanager
def worker_and_feeder(build):
    """Yields the worker and the feeder's address for metrics."""
    worker_address, metrics_address = free_address(), free_address()
    with worker_at(build, worker_address) as worker, feeder_for_workers(build, worker_address, metrics_address):
        yield worker, metrics_address


def remote_seconds_per_1000(build, dataset, batch_size, local_seconds_per_1000):
    """CPU-seconds for 1,000 samples of a data worker. The feeder beside it makes batches, too, and they cost `local_seconds_per_1000`: the
    remainder is what the others cost."""
    with worker_and_feeder(build) as (_, metrics_address):
        loader = sluice.torch.DataLoader(dataset, batch_size=batch_size, num_workers=2)
        wait_for_remote_batches(loader, metrics_address)
        before, cpu_before = batches_by_placement(metrics_address), tree_cpu_seconds()
        for _ in range(_EPOCHS):
            for _ in loader:
                pass
        used, after = tree_cpu_seconds() - cpu_before, batches_by_placement(metrics_address)
    share = remote_share(before, after)
    samples = _EPOCHS * len(dataset)
    return (used - (1 - share) * samples * local_seconds_per_1000 / 1000) * 1000 / (share * samples)
