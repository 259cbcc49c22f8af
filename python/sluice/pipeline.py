"""What a loader computes, in the forms in which it can be sent to a feeder or computed here."""

from __future__ import annotations

import sys
import threading
from typing import Any

from torch.utils.data._utils.collate import default_collate, default_convert

from sluice.computation import Computation, PythonPipeline
from sluice.framing import MOST_BLOB_BYTES
from sluice.lowering import NativePipeline, NotNative, lower


class NotSendable(Exception):
    """The pipeline cannot leave this process; the message says why."""


class Pipeline:
    """One loader's dataset, transforms and collation. Thread-safe except `computation`, which the iterating thread owns.

    A native pipeline keeps its Python original: for the batches that nobody else can make, and for a feeder that does not
    accept the native form.
    """

    def __init__(self, python: PythonPipeline, native: NativePipeline | None, reason: str, num_workers: int) -> None:
        """`reason`: why there is no native form, "" if there is one."""
        self.native = native
        self.reason = reason
        self.num_workers = num_workers
        self._python = python
        self._python_blob: bytes | None = None
        self._computation: Computation | None = None
        self._lock = threading.Lock()

    @property
    def executor(self) -> str:
        return "native" if self.native is not None else "python"

    def python_blob(self) -> bytes:
        """Section 6 of the contract. Raises NotSendable."""
        with self._lock:
            if self._python_blob is None:
                self._python_blob = _dump(self._python)
            return self._python_blob

    def without_native(self, reason: str) -> Pipeline:
        """The same pipeline for the Python executor."""
        return Pipeline(self._python, None, reason, self.num_workers)

    def registration(self, prefetch_batches: int, batch_size: int) -> tuple[dict, bytes]:
        """The `pipeline` frame without its id. Raises NotSendable."""
        frame: dict[str, Any] = {
            "type": "pipeline",
            "executor": self.executor,
            "python": sys.executable,
            "num_workers": self.num_workers,
            "prefetch_batches": prefetch_batches,
        }
        if self.native is None:
            return frame, self.python_blob()
        return {**frame, "batch_bytes_hint": batch_size * self.native.sample_bytes()}, self.native.spec

    def computation(self) -> Computation:
        """For computing in this process, on a copy of the dataset as a worker would have. Raises NotSendable."""
        if self._computation is None:
            self._computation = Computation(self.python_blob())
        return self._computation


def describe_loader(loader: Any, lowering: bool) -> Pipeline:
    """The pipeline of a torch DataLoader over a map-style dataset. Never raises: whatever is not native stays Python."""
    auto_collation = loader._auto_collation
    python = PythonPipeline(
        dataset=loader.dataset,
        collate_fn=None if loader.collate_fn is (default_collate if auto_collation else default_convert) else loader.collate_fn,
        auto_collation=auto_collation,
        worker_init_fn=loader.worker_init_fn,
    )
    if not lowering:
        return Pipeline(python, None, "SLUICE_LOWERING is off", loader.num_workers)
    try:
        native = lower(loader.dataset, loader.collate_fn, auto_collation, loader.worker_init_fn)
    except NotNative as obstacle:
        return Pipeline(python, None, str(obstacle), loader.num_workers)
    return Pipeline(python, native, "", loader.num_workers)


def _dump(python: PythonPipeline) -> bytes:
    try:
        blob = python.dumps()
    except ImportError as error:
        raise NotSendable(f"pickling needs the package cloudpickle ({error})") from None
    except Exception as error:
        raise NotSendable(f"the dataset, its transforms or collate_fn cannot be pickled ({type(error).__name__}: {error})") from None
    if len(blob) > MOST_BLOB_BYTES:
        raise NotSendable(f"the pickled dataset has {len(blob)} bytes, more than the {MOST_BLOB_BYTES} that can be sent")
    return blob
