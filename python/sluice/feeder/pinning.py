"""Batches in pinned memory: a thread copies them there while the training loop computes, as one does in torch's DataLoader. It runs torch's own loop."""

from __future__ import annotations

import queue
import threading
from typing import Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data._utils import pin_memory as torchs

_LOOK_SECONDS = 5.0  # For a thread that has ended.


class Pinned:
    """The tensors of one batch, once they are copied. Thread-safe."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread
        self._is_made = threading.Event()
        self._made: Any = None

    def finish(self, made: Any) -> None:
        self._made = made
        self._is_made.set()

    def tensors(self) -> list[torch.Tensor]:
        """Waits for them. Raises what pinning has raised."""
        while not self._is_made.wait(_LOOK_SECONDS):
            if not self._thread.is_alive() and not self._is_made.is_set():
                raise RuntimeError("Pin memory thread exited unexpectedly")
        if isinstance(self._made, ExceptionWrapper):
            self._made.reraise()
        return self._made


class Pins:
    """Of one iterator. The thread starts with the first batch, and ends when nothing refers to this any more."""

    def __init__(self, device: str | None) -> None:
        """To be made by the thread of the training loop, whose current accelerator counts. `device`: its type, as torch's iterator has it."""
        accelerator = getattr(torch, "accelerator", None)  # Since torch 2.6.
        index = accelerator.current_device_index() if accelerator is not None else torch.cuda.current_device()
        self._asked: queue.SimpleQueue = queue.SimpleQueue()
        self._ends = threading.Event()
        arguments = (self._asked, _Answers, index, self._ends, device)
        self._thread = threading.Thread(target=torchs._pin_memory_loop, args=arguments, daemon=True, name="sluice-pins")

    def pin(self, tensors: list[torch.Tensor]) -> Pinned:
        """Asks for copies. The tensors are let go as soon as they are made. To be called by one thread."""
        if self._thread.ident is None:
            self._thread.start()
        pinned = Pinned(self._thread)
        self._asked.put((pinned, tensors))
        return pinned

    def __del__(self) -> None:
        self._ends.set()
        self._asked.put((None, None))  # Which it may be waiting for.


class _Answers:
    """What torch's loop takes for the queue of its answers."""

    @staticmethod
    def put(answer: tuple[Pinned, Any], timeout: float) -> None:
        pinned, made = answer
        pinned.finish(made)
