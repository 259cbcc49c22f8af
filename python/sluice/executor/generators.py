"""The states of random generators as plain JSON values, and putting them back.

A state is data: reading one runs no code, from any source.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import random
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data._utils import worker as torch_worker

from sluice.executor.numpy_state import NumpyState


class StateError(ValueError):
    """A state that this loader cannot resume from; the message says why."""


def capture_generators(loader: Any) -> dict[str, Any]:
    """The states of everything a sampler may draw from, before an epoch begins."""
    version, words, gauss = random.getstate()
    states: dict[str, Any] = {
        **captured_default(),
        "random": {"version": version, "words": _text(array("I", words).tobytes()), "gauss": gauss},
    }
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, words, position, has_gauss, gauss = numpy.random.get_state()
        words = _text(words.astype("<u4").tobytes())
        states["numpy"] = {"name": name, "words": words, "position": int(position), "has_gauss": int(has_gauss), "gauss": float(gauss)}
    return states | own_generators(loader)


def restore_generators(loader: Any, states: dict[str, Any], own_only: bool = False) -> None:
    """Puts back what `capture_generators` has seen; with `own_only` just the generators given to the loader and its sampler.
    Raises StateError for states that are damaged or of a loader with other generators."""
    try:
        _restore(loader, states, own_only)
    except StateError:
        raise
    except Exception as error:
        raise StateError(f"the state's generators cannot be read ({type(error).__name__}: {error})") from None


def _restore(loader: Any, states: dict[str, Any], own_only: bool) -> None:
    own = {name: state for name, state in states.items() if name.startswith("generator")}
    generators = named_generators(loader)
    if len(own) != len(generators):
        raise StateError(f"the state is of a loader with {len(own)} generators of its own, this one has {len(generators)}")
    for name, generator in generators.items():
        generator.set_state(_tensor(own[name]))
    if own_only:
        return
    restore_default(states)
    saved = states["random"]
    random.setstate((saved["version"], tuple(array("I", _bytes(saved["words"]))), saved["gauss"]))
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in states:
        saved = states["numpy"]
        words = numpy.frombuffer(_bytes(saved["words"]), dtype="<u4")
        numpy.random.set_state((saved["name"], words, saved["position"], saved["has_gauss"], saved["gauss"]))


def captured_default() -> dict[str, Any]:
    """The state of torch's default generator."""
    return {"torch": _text(torch.get_rng_state().numpy().tobytes())}


def restore_default(states: dict[str, Any]) -> None:
    torch.set_rng_state(_tensor(states["torch"]))


def has_gone_on(states: dict[str, Any]) -> bool:
    """Whether torch's default generator was seeded as the one in `states`, if there is one, and has drawn otherwise since. Raises
    StateError for a damaged one."""
    if "torch" not in states or states["torch"] == captured_default()["torch"]:
        return False
    generator = torch.Generator()
    try:
        generator.set_state(_tensor(states["torch"]))
    except Exception as error:
        raise StateError(f"the state's generators cannot be read ({type(error).__name__}: {error})") from None
    return generator.initial_seed() == torch.initial_seed()


@dataclass(frozen=True)
class ProcessGenerators:
    """The states of torch's default CPU generator, of `random` and, where loaded, of numpy."""

    torch: torch.Tensor
    random: Any
    numpy: NumpyState | None

    @staticmethod
    def capture() -> ProcessGenerators:
        return ProcessGenerators(torch.get_rng_state(), random.getstate(), NumpyState.capture())

    def enter(self) -> None:
        """Makes them the process's."""
        torch.set_rng_state(self.torch)
        random.setstate(self.random)
        if self.numpy is not None:
            self.numpy.enter()

    @staticmethod
    def seed_as_worker(base_seed: int, worker_id: int) -> None:
        """Seeds the process's as torch's worker does when it starts; but no generator of an accelerator."""
        random.seed(base_seed + worker_id)
        torch.default_generator.manual_seed(base_seed + worker_id)
        if torch_worker.HAS_NUMPY:
            importlib.import_module("numpy").random.seed(torch_worker._generate_state(base_seed, worker_id))


@contextlib.contextmanager
def untouched_generators(loader: Any | None = None) -> Iterator[None]:
    """The process's own generators come out as they went in, and so do those of `loader`, if given."""
    own = {name: generator.get_state() for name, generator in (named_generators(loader) if loader is not None else {}).items()}
    process = ProcessGenerators.capture()
    try:
        yield
    finally:
        process.enter()
        for name, state in own.items():
            named_generators(loader)[name].set_state(state)


def own_generators(loader: Any) -> dict[str, str]:
    """The states of the generators given to the loader and its samplers."""
    return {name: _text(generator.get_state().numpy().tobytes()) for name, generator in named_generators(loader).items()}


def named_generators(loader: Any) -> dict[str, torch.Generator]:
    """The distinct generators of the loader, its sampler and the sampler within its batch sampler."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    holders = (loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None))
    found: list[torch.Generator] = []
    for holder in holders:
        generator = getattr(holder, "generator", None)
        if isinstance(generator, torch.Generator) and not any(generator is other for other in found):
            found.append(generator)
    return {f"generator{number}": generator for number, generator in enumerate(found)}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _tensor(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(_bytes(text)), dtype=torch.uint8)
