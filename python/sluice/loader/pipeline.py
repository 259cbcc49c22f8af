"""What a loader computes, in the forms in which it can be sent to a feeder or computed here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import IterableDataset
from torch.utils.data._utils.collate import default_collate, default_convert

from sluice.base.settings import EXACT, RAISE, SKIP
from sluice.base.signal_handlers import pass_on_of_a_handler
from sluice.executor.collation import makes_all_anew
from sluice.executor.computation import BatchRequest, Computation, ForkComputation, PythonPipeline, untouched_process
from sluice.executor.keys import INTEGERS, key_type, plain
from sluice.lowering.native_pipeline import NativePipeline, lower
from sluice.makers.forks import closes_what_it_reads
from sluice.shipping.descriptors import open_descriptor_in
from sluice.shipping.failures import ManyObjects, NotLight, NotNative, NotSendable, TooLarge
from sluice.shipping.framing import MOST_KEYS
from sluice.shipping.plain_data import PlainParts
from sluice.shipping.replaced import replaced_function
from sluice.shipping.shipment import Description, Shipment, describe_pipeline
from sluice.shipping.structure import detached


@dataclass(frozen=True)
class Sent:
    """A native pipeline, and the bytes of it that feeders have."""

    native: NativePipeline
    shipment: Shipment


class Pipeline:
    """One loader's dataset, transforms and collation. Thread-safe except `computation`, which the iterating thread owns.

    A native pipeline keeps its Python original: for the batches that no executor can make, and for a feeder that does not
    accept the native form.
    """

    def __init__(self, python: PythonPipeline, native: NativePipeline | None, reason: str, num_workers: int,
                 previous: Description | None = None, sent: Sent | None = None) -> None:
        """`reason`: why there is no native form, "" if there is one. `previous`, `sent`: how the loader's last pipeline was
        sent, as Python or natively. `stays`, which may be set: it never leaves this process and its forks."""
        self.native = native
        self.reason = reason
        self.num_workers = num_workers
        self._python = python
        self._previous = previous
        self._description: Description | None = None
        self._state = b""
        self._sent = sent if sent is not None and sent.native == native else None
        self._computation: Computation | None = None
        self._of_own_objects: ForkComputation | None = None  # In its place, for a pipeline that cannot be described.
        self._has_read = False  # This process has made a batch with it.
        self.stays = False
        self._has_many_objects = False  # So a copy that shares its plain values costs as much as another one.
        self._lock = threading.Lock()

    @property
    def is_sticky(self) -> bool:
        """Whether virtual workers make its batches, each in their order; `reason` says why."""
        return self._python.sticky

    @property
    def is_iterable(self) -> bool:
        """Whether those virtual workers are streams."""
        return self._python.iterable

    @property
    def leaves_out_failures(self) -> bool:
        """Whether samples that fail are left out of their batches."""
        return self._python.on_error == SKIP

    @property
    def executor(self) -> str:
        return "native" if self.native is not None else "python"

    def in_words(self) -> tuple[str, ...]:
        """The executor, and its operations with their order, or why there are none: pipelines for which that is equal cost alike."""
        return (self.executor, *([self.native.order, *self.native.operations_in_words()] if self.native is not None else [self.reason]))

    def described(self) -> tuple[Description, bytes]:
        """The Python form as executors get it, and its state, both as of the first call. Raises NotSendable."""
        with self._lock:
            if self._description is None:
                self._description, self._state = _describe(self._python, self._previous)
                self._previous = None
            return self._description, self._state

    def is_light(self) -> bool:
        """Whether it costs little to describe the Python form, and a copy is not noticed; so it is described then. Raises NotSendable."""
        with self._lock:
            if self._description is None:
                try:
                    self._description, self._state = _describe(self._python, self._previous, light=True)
                except (NotLight, TooLarge) as heavy:
                    self._has_many_objects = isinstance(heavy, ManyObjects)
                    return False
            return True

    def shares_its_parts(self) -> bool:
        """Whether it costs little to describe the Python form for this process alone, where a copy shares its plain values; so it is described then.
        REQUIRES: it stays. Raises NotSendable."""
        if self._has_many_objects:
            return False
        with self._lock:
            try:
                self._description, self._state = _describe(self._python, None, light=True, parts=PlainParts())
            except (NotLight, TooLarge):
                return False
            return True

    @property
    def is_described(self) -> bool:
        """Whether a copy of it can be made here."""
        return self._description is not None

    @property
    def description(self) -> Description | None:
        """What the loader's next pipeline may build on."""
        return None if self.stays else self._description or self._previous

    @property
    def kept(self) -> Description | Sent | None:
        """What the loader keeps until its next pipeline. A native form that has not changed is then neither made nor sent
        again: between two epochs no iterator keeps its shipment alive."""
        return self.description if self.native is None else self._natively_sent(self.native)

    def takes(self, keys: list) -> bool:
        """Whether a feeder can be asked for these. Only the dataset itself can judge keys that are no integers, those of another type
        than most, and those that the native form does not know (negative or too large). More than a frame may hold this process looks up as well."""
        if not keys:
            return True
        kind = key_type(keys)
        if kind is None or len(keys) > MOST_KEYS or not (self.native.takes(kind) if self.native is not None else kind is self._python.key_type):
            return False
        numbers = plain(keys)
        least, end = (0, self.native.samples) if self.native is not None else INTEGERS
        return least <= min(numbers) and max(numbers) < end

    def files_of(self, keys: list) -> list[str]:
        """The files that native executors read for these keys; none of a Python pipeline. REQUIRES: takes(keys)."""
        return self.native.files.paths(plain(keys)) if self.native is not None else []

    def is_like(self, other: Pipeline) -> bool:
        """Whether executors would make the same of every request. Raises NotSendable."""
        return self is other or (self.registration(1, 1), self.state()) == (other.registration(1, 1), other.state())

    def state(self) -> bytes:
        """What has changed since the description."""
        return self.described()[1] if self.native is None else b""

    def without_native(self, reason: str) -> Pipeline:
        """The same pipeline for the Python executor."""
        return Pipeline(self._python, None, reason, self.num_workers, self.description)

    def with_keys_like(self, keys: list) -> Pipeline:
        """The pipeline for a sampler that yields keys of the type of these. It is this one if nothing has to be known of them."""
        kind = key_type(keys) or self._python.key_type
        if kind is self._python.key_type:
            return self
        changed = Pipeline(replace(self._python, key_type=kind), self.native, self.reason, self.num_workers, self.description, self._sent)
        changed._computation, changed._has_read = self._computation, self._has_read  # In this process keys are what they are.
        changed.stays = self.stays
        if self.stays and self.is_described:
            changed.shares_its_parts()
        self.let_go()
        return changed

    @property
    def key_type(self) -> type:
        """Of the keys that the data set gets from its executors."""
        return self._python.key_type

    def registration(self, prefetch_batches: int, batch_size: int) -> tuple[dict, Shipment]:
        """The `pipeline` frame without its id, and what travels with it. Raises NotSendable."""
        frame: dict[str, Any] = {
            "type": "pipeline",
            "executor": self.executor,
            "python": sys.executable,
            "num_workers": self.num_workers,
            "prefetch_batches": prefetch_batches,
        }
        if self.native is None:
            return frame, self.described()[0].shipment
        return {**frame, "batch_bytes_hint": batch_size * self.native.sample_bytes()}, self._natively_sent(self.native).shipment

    def _natively_sent(self, native: NativePipeline) -> Sent:
        with self._lock:
            if self._sent is None:
                self._sent = Sent(native, Shipment.of([native.header, *native.files.parts]))
                native.files.was_sent(self._sent.shipment.memory.view()[len(native.header) :])
            return self._sent

    def copy_bytes(self) -> int:
        """About how much memory `computation` takes. Raises NotSendable."""
        return self.described()[0].shipment.memory.nbytes

    def computation(self) -> Computation:
        """For computing in this process, on a copy of the dataset as a worker would have. Raises NotSendable."""
        if self._computation is None:
            self._computation = self.new_computation()
        return self._computation

    def make_here(self, request: BatchRequest, history: bytes, watch: Callable[[int], None] | None = None) -> Any:
        """A batch that this process makes, for itself: what the loop does to it no later batch shows. As Computation.compute. `watch`: as
        Computation has it."""
        self._has_read = True
        try:
            computation = self.computation()
        except NotSendable:  # Native until now: what its code does to the loader's own objects is known, and changes nothing.
            self._of_own_objects = self._of_own_objects or self.fork_computation()
            return detached(self._of_own_objects.compute(request, history))
        computation.watch = watch
        try:
            made = computation.compute(request, history)
        finally:
            computation.watch = None
        if closes_what_it_reads():
            self.let_go()
        return made if makes_all_anew(self._python.collate_fn, self._python.auto_collation) else detached(made)

    def costs_here(self) -> list[list]:
        """Of the last batch that this process has made, by operation. REQUIRES: it has made one"""
        return (self._of_own_objects or self.computation()).laps.costs()

    def let_go(self) -> None:
        """Of the copy that this process makes batches from, and of the files that it has opened: no worker of torch's goes on either."""
        self._computation, self._has_read = None, False

    def new_computation(self) -> Computation:
        """One that has read nothing yet: a file that the other one has opened has a position, which its forks would share. Raises NotSendable."""
        if self._computation is not None and not self._has_read:
            return self._computation
        self._computation = None  # What the other one has opened may be opened once at a time.
        description, state = self.described()
        with untouched_process():
            return Computation(description.shipment.memory, state, at_home=True, parts=description.parts)

    def fork_computation(self) -> ForkComputation:
        """For processes forked from this one."""
        return ForkComputation(self._python)


def describe_loader(loader: Any, lowering: bool, kept: Description | Sent | None = None, why_sticky: str = "", on_error: str = RAISE,
                    order: str = EXACT) -> Pipeline:
    """The pipeline of a torch DataLoader over a map-style dataset. Never raises: whatever is not native stays Python.
    `kept`: of the loader's last pipeline. `why_sticky`: why virtual workers must make its batches, "" if they need not. `on_error`: of a sample.
    `order`: of native operations."""
    previous = kept if isinstance(kept, Description) else None
    sent = kept if isinstance(kept, Sent) else None
    auto_collation = loader._auto_collation
    iterable = isinstance(loader.dataset, IterableDataset)
    python = PythonPipeline(
        dataset=loader.dataset,
        collate_fn=None if loader.collate_fn is (default_collate if auto_collation else default_convert) else loader.collate_fn,
        auto_collation=auto_collation,
        worker_init_fn=loader.worker_init_fn if why_sticky else None,
        sticky=bool(why_sticky),
        iterable=iterable,
        drop_last=loader.drop_last,
        on_error=RAISE if iterable else on_error,
        key_type=getattr(loader, "_sluice_key_type", int),
    )
    if why_sticky:
        return Pipeline(python, None, why_sticky, loader.num_workers, previous)
    if not lowering:
        return Pipeline(python, None, "SLUICE_LOWERING is off", loader.num_workers, previous)
    try:
        native = lower(loader.dataset, loader.collate_fn, auto_collation, sent.native.files if sent is not None else None, order=order)
    except NotNative as obstacle:
        return Pipeline(python, None, str(obstacle), loader.num_workers, previous)
    return Pipeline(python, native, "", loader.num_workers, sent=sent)


def native_obstacles(loader: Any) -> list[str]:
    """All that keeps the loader's pipeline in Python, apart from settings and state; none if nothing does."""
    try:
        lower(loader.dataset, loader.collate_fn, loader._auto_collation, looks_at_files=True)
        return []
    except NotNative as found:
        return found.obstacles


def _describe(python: PythonPipeline, previous: Description | None, light: bool = False, parts: PlainParts | None = None) -> tuple[Description, bytes]:
    try:
        if holder := open_descriptor_in(python.dataset):
            raise NotSendable(f"its {holder} is the descriptor of an open file, which this process and its forked children have")
        if sys.flags.optimize:
            raise NotSendable("Python runs with -O here, and so leaves out the assertions of the script and its modules")
        if function := replaced_function():
            raise NotSendable(f"the program has put {function} in the place of the library's, or added it, in this process and its forked children")
        return describe_pipeline(python, previous, light, parts)
    except NotSendable:
        raise
    except ImportError as error:
        raise NotSendable(f"pickling needs the package cloudpickle ({error})") from None
    except (Exception, SystemExit) as error:  # torch's workers are forked: nothing is pickled for them.
        pass_on_of_a_handler(error)
        raise NotSendable(f"the dataset, its transforms or collate_fn cannot be pickled ({type(error).__name__}: {error})") from None
