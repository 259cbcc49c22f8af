"""What torch's workers inherit of the loop's process and thread when an iterator is made, and what a sample may change there.

This process goes over to it while it makes a batch: a loop may ask for one within a `torch.autocast`, or have changed the folder by then. What a sample
changes is put back, as it would stay in a worker: the next samples of the pass see what it has done to the environment.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch


class Inherited(NamedTuple):
    """`folder` None: it is gone. `environment`: as the operating system has it. Captured twice for each batch, so it must be cheap."""

    grad_enabled: bool
    autocast_enabled: bool  # On the CPU.
    autocast_dtype: torch.dtype
    default_dtype: torch.dtype
    device: torch.device
    folder: str | None
    environment: dict[bytes, bytes]

    @staticmethod
    def capture() -> Inherited:
        """Those of this process and thread."""
        return Inherited(torch.is_grad_enabled(), *autocast_on_cpu(), torch.get_default_dtype(), torch.empty(0).device, _folder(), _environment())

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Inside they are these, afterwards what they were. What becomes of the environment inside, these have from then on, unless the batch is
        broken off: then forks make it anew."""
        before, threads_of_opencv, is_broken_off = Inherited.capture(), opencv_threads(), False
        try:
            if before == self:
                yield
                return
            with contextlib.ExitStack() as scopes:
                before._change_to(self)
                if before[1:3] != self[1:3]:
                    scopes.enter_context(torch.autocast("cpu", enabled=self.autocast_enabled, dtype=self.autocast_dtype))
                if before.device != self.device:
                    scopes.enter_context(self.device)
                yield
        except BaseException as error:
            is_broken_off = not isinstance(error, (Exception, SystemExit))
            raise
        finally:
            if (after := Inherited.capture()) != before:
                if after.environment != self.environment and not is_broken_off:
                    self.environment.clear()
                    self.environment.update(after.environment)
                after._change_to(before)
            if opencv_threads() != threads_of_opencv:
                set_opencv_threads(_OPENCVS_OWN_THREADS if threads_of_opencv is None else threads_of_opencv)

    def _change_to(self, other: Inherited) -> None:
        """But for what only a scope can change."""
        if self.grad_enabled != other.grad_enabled:
            torch.set_grad_enabled(other.grad_enabled)
        if self.default_dtype != other.default_dtype:
            torch.set_default_dtype(other.default_dtype)
        if self.folder != other.folder and other.folder is not None:
            with contextlib.suppress(OSError):  # It is gone by now.
                os.chdir(other.folder)
        if self.environment != other.environment:
            for name in self.environment.keys() - other.environment.keys():
                del os.environb[name]
            os.environb.update({name: value for name, value in other.environment.items() if self.environment.get(name) != value})


if hasattr(torch, "get_autocast_dtype"):  # Since torch 2.4.

    def autocast_on_cpu() -> tuple[bool, torch.dtype]:
        """Whether torch computes in fewer bits there, and in which type."""
        return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")

    def enter_autocast_on_cpu(enabled: bool, dtype: torch.dtype) -> None:
        """For this thread, to its end."""
        torch.set_autocast_enabled("cpu", enabled)
        torch.set_autocast_dtype("cpu", dtype)
else:

    def autocast_on_cpu() -> tuple[bool, torch.dtype]:
        return torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()

    def enter_autocast_on_cpu(enabled: bool, dtype: torch.dtype) -> None:
        torch.set_autocast_cpu_enabled(enabled)
        torch.set_autocast_cpu_dtype(dtype)


_OPENCVS_OWN_THREADS = -1


def opencv_threads() -> int | None:
    """None where it is not imported."""
    count = getattr(sys.modules.get("cv2"), "getNumThreads", None)
    return count() if count is not None else None


def set_opencv_threads(threads: int) -> None:
    if (opencv := sys.modules.get("cv2")) is not None:
        opencv.setNumThreads(threads)


def _environment() -> dict[bytes, bytes]:
    values: dict[bytes, bytes] = vars(os.environ)["_data"]  # os.environ itself decodes each.
    return values.copy()


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None
