"""The loaders that are measured, each in a file of its own.

A new one: a module with PEERS, and its name in MODULES. A module imports its loader's package only where its batches are made, since the package is in
an environment of its own (environments.py).
"""

import dataclasses
import importlib
from collections.abc import Callable, Iterator, Mapping

MODULES = ["torch_loader", "sluice_loader", "webdataset_loader", "torchdata_loader", "spdl_loader", "tf_data", "tf_data_service", "huggingface",
           "ray_data", "dali", "ffcv_loader", "grain_loader", "mosaicml"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Peer:
    """By the name of a workload, `batches` has a function from the work to batches: of images and labels, or of tokens."""

    name: str
    batches: Mapping[str, Callable[..., Iterator]]
    semantics: str  # of its pixels, beside PIL's
    packages: tuple[str, ...] = ()  # the first one's version is the peer's
    environment: str = ""  # where the packages are; none: in the project's
    prepare: Callable | None = None  # makes the files, once, that it reads instead of the photographs


BASELINE = "torch"
OURS = "Sluice"
SAME_CODE = "the baseline's own code"


def on(names, function):
    """The same function for each workload of these."""
    return dict.fromkeys(names.split(), function)


def registry():
    return {peer.name: peer for module in MODULES for peer in importlib.import_module(f"peers.{module}").PEERS}
