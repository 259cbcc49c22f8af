"""Where a loader is within its epoch, in a form that JSON can hold, and how to get back there.

The order of an epoch is decided by the sampler and by the random generators as they were when the epoch began. So a state
holds those generators' states and how many batches the *loop* has consumed; resuming puts the generators back, lets the
sampler run over what was consumed, and goes on. The number of workers does not enter.

The process's own generators (torch's default one, `random`, numpy) are put back only while the sampler is replayed: what
they hold afterwards is the training script's affair, exactly as without Sluice.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

STATE_VERSION = 1


class StateError(ValueError):
    """A state that this loader cannot resume from; the message says why."""


@dataclass
class Progress:
    """One epoch of one loader. `pass_number` counts the epochs of one iterator (with persistent_workers), as the seeds do;
    `epoch` those of the loader. `begun`: the sampler has been asked. `consumed` batches have been handed over without a gap
    from the first; `beyond` lists those handed over after a gap (in_order=False).

    An epoch that has not begun may still have a base seed: that of the persistent iterator whose next pass it is."""

    base_seed: int | None = None
    begun: bool = False
    pass_number: int = 0
    epoch: int = 0
    consumed: int = 0
    beyond: set[int] = field(default_factory=set)
    finished: bool = False
    generators: dict[str, str] = field(default_factory=dict)

    def hand_over(self, seq: int) -> None:
        """The loop gets batch `seq`."""
        self.beyond.add(seq)
        while self.consumed in self.beyond:
            self.beyond.remove(self.consumed)
            self.consumed += 1


def save(loader: Any, progress: Progress | None) -> dict:
    """The state of `loader`: JSON-serialisable. `progress` None: no epoch has begun."""
    state: dict[str, Any] = {"sluice": STATE_VERSION, "batch_size": loader.batch_size, "drop_last": loader.drop_last}
    if progress is None or not progress.begun or progress.finished:
        # The next epoch has not begun: it will draw from the generators as they are now.
        after = progress or Progress()
        keeps_seed = loader.persistent_workers and after.base_seed is not None
        state |= {"base_seed": after.base_seed if keeps_seed else None, "pass": after.pass_number + after.finished}
        epoch = after.epoch + after.finished
        return {**state, "epoch": epoch, "batches": 0, "begun": False, "generators": _own_generators(loader)}
    return {
        **state,
        "epoch": progress.epoch,
        "batches": progress.consumed + len(progress.beyond),
        "begun": True,
        "base_seed": progress.base_seed,
        "pass": progress.pass_number,
        "consumed": progress.consumed,
        "beyond": sorted(progress.beyond),
        "generators": progress.generators,
        "sampler_epoch": _sampler_epoch(loader),
    }


def restore(loader: Any, state: dict) -> Progress:
    """What the loader's next iterator has to resume; also restores the loader's own generators and sampler. Raises
    StateError."""
    if not isinstance(state, dict) or state.get("sluice") != STATE_VERSION:
        raise StateError(f"this is not a state of sluice.torch.DataLoader, version {STATE_VERSION}")
    for setting in ("batch_size", "drop_last"):
        if state.get(setting) != getattr(loader, setting):
            raise StateError(f"the state was made with {setting}={state.get(setting)}, this loader has {getattr(loader, setting)}")
    restore_generators(loader, state["generators"], own_only=True)
    if not state["begun"]:
        if state["base_seed"] is None or not loader.persistent_workers:
            return Progress(epoch=state["epoch"])
        return Progress(state["base_seed"], pass_number=state["pass"], epoch=state["epoch"])
    sampler = _epoch_sampler(loader)
    if sampler is not None and state.get("sampler_epoch") is not None:
        sampler.set_epoch(state["sampler_epoch"])
    return Progress(
        base_seed=state["base_seed"],
        begun=True,
        pass_number=state["pass"],
        epoch=state["epoch"],
        consumed=state["consumed"],
        beyond=set(state["beyond"]),
        generators=state["generators"],
    )


def capture_generators(loader: Any) -> dict[str, str]:
    """The states of everything a sampler may draw from, before an epoch begins."""
    states = {"torch": _encode(torch.get_rng_state().numpy().tobytes()), "random": _encode(pickle.dumps(random.getstate()))}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = _encode(pickle.dumps(numpy.random.get_state()))
    return states | _own_generators(loader)


def restore_generators(loader: Any, states: dict[str, str], own_only: bool = False) -> None:
    """Puts back what `capture_generators` has seen; with `own_only` just the generators given to the loader and its sampler.
    Raises StateError if the loader has other generators than the one that made the states."""
    own = {name: state for name, state in states.items() if name.startswith("generator")}
    generators = _generators(loader)
    if len(own) != len(generators):
        raise StateError(f"the state is of a loader with {len(own)} generators of its own, this one has {len(generators)}")
    for name, generator in generators.items():
        generator.set_state(_bytes_tensor(own[name]))
    if own_only:
        return
    torch.set_rng_state(_bytes_tensor(states["torch"]))
    random.setstate(pickle.loads(base64.b64decode(states["random"])))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        numpy.random.set_state(pickle.loads(base64.b64decode(states["numpy"])))


@contextlib.contextmanager
def untouched_generators(loader: Any | None = None) -> Iterator[None]:
    """The process's own generators come out as they went in, and so do those of `loader`, if given."""
    own = {name: generator.get_state() for name, generator in (_generators(loader) if loader is not None else {}).items()}
    numpy = sys.modules.get("numpy")
    torch_state, random_state = torch.get_rng_state(), random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(torch_state)
        random.setstate(random_state)
        if numpy_state is not None:
            numpy.random.set_state(numpy_state)
        for name, state in own.items():
            _generators(loader)[name].set_state(state)


def _generators(loader: Any) -> dict[str, torch.Generator]:
    """The distinct generators of the loader, its sampler and the sampler within its batch sampler."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    holders = (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    found: list[torch.Generator] = []
    for holder in holders:
        generator = getattr(holder, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is other for other in found):
            found.append(generator)
    return {f"generator{number}": generator for number, generator in enumerate(found)}


def _own_generators(loader: Any) -> dict[str, str]:
    return {name: _encode(generator.get_state().numpy().tobytes()) for name, generator in _generators(loader).items()}


def _epoch_sampler(loader: Any) -> Any | None:
    """The sampler that is told its epoch (DistributedSampler and its like)."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    for holder in (loader.sampler, batch_sampler, getattr(batch_sampler, "sampler", None)):
        if hasattr(holder, "set_epoch") and isinstance(getattr(holder, "epoch", None), int):
            return holder
    return None


def _sampler_epoch(loader: Any) -> int | None:
    sampler = _epoch_sampler(loader)
    return None if sampler is None else sampler.epoch


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes_tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
