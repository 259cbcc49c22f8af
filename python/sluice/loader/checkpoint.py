"""Where a loader is within its epoch, in a form that JSON can hold, and how to get back there.

The order of an epoch is decided by the sampler and by the random generators as they were when the epoch began. So a state holds those generators'
states and the number of batches that the *loop* has consumed. Resuming puts the generators back, lets the sampler run over the consumed batches, and
goes on. The number of workers does not enter, unless the data set keeps state for each of them. Then all its batches are made again, for the state.

The process's own generators (torch's default one, `random`, numpy) are put back only while the sampler is replayed. Their state afterwards is the
training script's affair, exactly as without Sluice. A state made between two epochs holds torch's default one, from which the next epoch draws; a
script that has seeded torch anew with another seed is obeyed.

torch's DistributedSampler deals the samples of an epoch out to the ranks one by one, in an order that does not depend on their number. So the ranks
together have had the first so many samples of that order, and a loader of another number of ranks goes on behind them.

A state holds no pickle. What the `state_dict` of a data set or of its iterator returns is kept as it is and handed to its `load_state_dict`, which
has to trust it.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import BatchSampler, DistributedSampler, IterableDataset

from sluice.executor.generators import StateError, captured_default, has_gone_on, own_generators, restore_default, restore_generators, untouched_generators
from sluice.feeder.choice import process_identity

STATE_VERSION = 2


@dataclass
class Progress:
    """One epoch of one loader. `pass_number` counts the epochs of one iterator (with persistent_workers), as the seeds do;
    `epoch` those of the loader. `begun`: the sampler has been asked. `consumed` batches have been handed over without a gap
    from the first; `beyond` lists those handed over after a gap (in_order=False).

    An epoch that has not begun may still have a base seed: that of the persistent iterator whose next pass it is.
    `virtual_workers`: how many make the batches, if the data set keeps state or is iterable; then this number must stay the same.
    `first_pass`: of these virtual workers. Those that have gone on from an earlier pass cannot be made again.
    `streams`: how many batches the loop had of each, None for one that has ended; None if the data set's batches come in another way.
    `data`: what the data set's own `load_state_dict` gets before its iterator is made; `iterator`: what that one's gets; None if nothing.
    `reading`: the iterator of a data set that is read in this process, to be asked for its state."""

    base_seed: int | None = None
    begun: bool = False
    pass_number: int = 0
    epoch: int = 0
    consumed: int = 0
    beyond: set[int] = field(default_factory=set)
    finished: bool = False
    generators: dict[str, Any] = field(default_factory=dict)
    virtual_workers: int | None = None
    first_pass: int = 0
    streams: list[int | None] | None = None
    data: Any = None
    iterator: Any = None
    reading: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a loader reads nothing."""
        return {**self.__dict__, "reading": None}

    @property
    def handed_over(self) -> int:
        """How many batches the loop has had."""
        return self.consumed + len(self.beyond)

    @property
    def consumed_end(self) -> int:
        """The batch behind the last one that the loop has had."""
        return max([self.consumed, *(seq + 1 for seq in self.beyond)])

    def hand_over(self, seq: int) -> None:
        """The loop gets batch `seq`."""
        self.beyond.add(seq)
        while self.consumed in self.beyond:
            self.beyond.remove(self.consumed)
            self.consumed += 1

    def require_virtual_workers(self, number: int | None) -> None:
        """Raises StateError unless so many made the batches, from the pass's begin on; None: none did."""
        if self.virtual_workers != number:
            raise StateError(f"the state is of {_in_words(self.virtual_workers)}, this loader has {_in_words(number)}")
        if number is not None and self.pass_number != self.first_pass:
            raise StateError("persistent workers had gone on from earlier epochs; with a state of its own, a data set resumes in their first epoch, or "
                             "at an epoch's start")  # fmt: skip


def _in_words(virtual_workers: int | None) -> str:
    return "no virtual workers" if virtual_workers is None else f"{virtual_workers} virtual workers"


def save(loader: Any, progress: Progress | None) -> dict:
    """The state of `loader`: JSON-serialisable if what the data set's own `state_dict` returns is. `progress` None: no epoch has
    begun."""
    state: dict[str, Any] = {"sluice": STATE_VERSION, **_settings(loader)}
    state |= _data_states(loader, progress)
    if progress is None or not progress.begun or progress.finished:
        # The next epoch has not begun: it will draw from the generators as they are now.
        after = progress or Progress()
        keeps_seed = loader.persistent_workers and after.base_seed is not None
        state |= {"base_seed": after.base_seed if keeps_seed else None, "pass": after.pass_number + after.finished if keeps_seed else 0}
        epoch = after.epoch + after.finished
        default = after.generators if not after.begun and after.generators else captured_default()
        return {**state, "epoch": epoch, "batches": 0, "begun": False, "generators": default | own_generators(loader)}
    return {
        **state,
        "epoch": progress.epoch,
        "batches": progress.handed_over,
        "begun": True,
        "base_seed": progress.base_seed,
        "pass": progress.pass_number,
        "consumed": progress.consumed,
        "beyond": sorted(progress.beyond),
        "generators": progress.generators,
        "sampler_epoch": _sampler_epoch(loader),
        "virtual_workers": progress.virtual_workers,
        "first_pass": progress.first_pass,
        "streams": None if progress.streams is None else list(progress.streams),
    }


def restore(loader: Any, state: dict) -> Progress:
    """What the loader's next iterator has to resume; also restores the loader's own generators and sampler. Raises
    StateError."""
    _check(loader, state)
    state = _of_these_ranks(loader, state)
    restore_generators(loader, state["generators"], own_only=True)
    if not state["begun"]:
        default = {name: captured for name, captured in state["generators"].items() if name == "torch"}
        if state["base_seed"] is None or not loader.persistent_workers:
            return Progress(epoch=state["epoch"], data=state.get("data"), generators=default)
        return Progress(state["base_seed"], pass_number=state["pass"], epoch=state["epoch"], generators=default)
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
        virtual_workers=state.get("virtual_workers"),
        first_pass=state.get("first_pass", 0),
        streams=state.get("streams"),
        data=state.get("data"),
        iterator=state.get("iterator"),
    )


@contextlib.contextmanager
def drawing(loader: Any, resume: Progress | None) -> Iterator[Progress | None]:
    """Inside, the pass that begins draws what that of `resume` has drawn, or was about to draw; then this is `resume`, else None. The process's own
    generators come out as they went in. Raises StateError for generators that do not fit."""
    if resume is None or not (resume.begun or has_gone_on(resume.generators)):
        yield None
        return
    with untouched_generators():
        if resume.begun:
            restore_generators(loader, resume.generators)
        else:
            restore_default(resume.generators)
        yield resume


def _check(loader: Any, state: Any) -> None:
    """Raises StateError unless `state` was made by a loader like this one and holds what a state has to hold."""
    version = state.get("sluice") if isinstance(state, dict) else None
    if version == 1:
        raise StateError("the state was made by an older Sluice and holds pickles, which could run any code; begin the epoch anew")
    if version != STATE_VERSION:
        raise StateError(f"this is not a state of sluice.torch.DataLoader, version {STATE_VERSION}")
    for setting, value in _settings(loader).items():
        if state.get(setting) != value and not (setting == "world_size" and _dealt_out(loader) and _is_count(state.get(setting), least=1)):
            raise StateError(f"the state was made with {setting}={state.get(setting)!r}, this loader has {value!r}")
    if state.get("data") is not None and not _keeps_own_state(loader):
        raise StateError("the state holds the data set's own, which needs num_workers=0 and a data set with load_state_dict")
    if state.get("iterator") is not None and not (loader.num_workers == 0 and isinstance(loader.dataset, IterableDataset)):
        raise StateError("the state holds that of the data set's iterator, which needs num_workers=0 and an iterable data set")
    counts = ("epoch", "pass", "consumed") if state.get("begun") else ("epoch", "pass")
    for name in counts:
        if not _is_count(state.get(name)):
            raise StateError(f"the state's field {name} is not a count: {state.get(name)!r}")
    seed, beyond, epoch = state.get("base_seed"), state.get("beyond", []), state.get("sampler_epoch")
    if not (type(seed) is int or (seed is None and not state.get("begun"))):
        raise StateError(f"the state's field base_seed is not a whole number: {seed!r}")
    if not isinstance(beyond, list) or not all(type(seq) is int and seq >= 0 for seq in beyond):
        raise StateError("the state's field beyond is not a list of counts")
    streams = state.get("streams")
    if not (streams is None or (isinstance(streams, list) and all(taken is None or (type(taken) is int and taken >= 0) for taken in streams))):
        raise StateError("the state's field streams is not a list of counts")
    if streams is not None and len(streams) != state.get("virtual_workers"):
        raise StateError(f"the state has {len(streams)} streams, but virtual_workers={state.get('virtual_workers')!r}")
    if not (epoch is None or type(epoch) is int) or not isinstance(state.get("generators"), dict):
        raise StateError("the state's fields sampler_epoch and generators cannot be read")


def _settings(loader: Any) -> dict[str, Any]:
    """What must be the same where a state is made and where it is resumed."""
    try:
        length = None if isinstance(loader.dataset, IterableDataset) else len(loader.dataset)
    except TypeError:
        length = None
    order = loader._index_sampler
    kinds = [type(order).__qualname__]
    if hasattr(order, "sampler"):
        kinds.append(type(order.sampler).__qualname__)
    return {
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
        "dataset_length": length,
        "sampler": " of ".join(kinds),
        "world_size": getattr(_epoch_sampler(loader), "num_replicas", process_identity()["world_size"]),
    }


def _is_count(value: Any, least: int = 0) -> bool:
    return type(value) is int and value >= least


def _dealt_out(loader: Any) -> bool:
    """Whether torch's own sampler deals the samples of map-style data out to the ranks, in batches of one size."""
    order = loader._index_sampler
    return type(order) is BatchSampler and type(order.sampler) is DistributedSampler and loader.batch_size is not None


def _of_these_ranks(loader: Any, state: dict) -> dict:
    """A checked state as if the loader's own number of ranks had made it. Raises StateError if the ranks had batches that these
    ranks' batches cut through."""
    settings = _settings(loader)
    before, now = state["world_size"], settings["world_size"]
    if before == now or not state["begun"]:
        return state
    if state["beyond"] or state.get("virtual_workers") is not None:
        raise StateError(f"the state was made with world_size={before}, this loader has {now}, and its batches came out of order or from data that keep state")
    batches, odd = divmod(state["consumed"] * before, now)
    if state["consumed"] >= _batches_of_a_rank(loader, before):
        batches, odd = len(loader), 0
    if odd:
        raise StateError(f"the state was made with world_size={before}, this loader has {now}: {state['consumed']} batches of each of {before} ranks are no "
                         f"whole number of batches of each of {now}; a state of a multiple of {now // math.gcd(before, now)} batches is")  # fmt: skip
    return {**state, "consumed": min(batches, len(loader))}


def _batches_of_a_rank(loader: Any, ranks: int) -> int:
    """How many batches the loader would have with so many ranks."""
    total = len(loader.sampler.dataset)
    samples = total // ranks if loader.sampler.drop_last else -(-total // ranks)
    return samples // loader.batch_size if loader.drop_last else -(-samples // loader.batch_size)


def _keeps_own_state(loader: Any) -> bool:
    """Whether the data set says itself how far it is. The copies in worker processes are not asked."""
    return loader.num_workers == 0 and has_state(loader.dataset)


def has_state(data: Any) -> bool:
    """Whether a data set, or its iterator, says itself how far it is."""
    return all(callable(getattr(data, name, None)) for name in ("state_dict", "load_state_dict"))


def _data_states(loader: Any, progress: Progress | None) -> dict[str, Any]:
    """What the data set and its iterator say of themselves. One that is its own iterator is asked as that: its state is then put
    back after `__iter__`, which may reset it."""
    if progress is not None and (progress.data is not None or progress.iterator is not None):
        return {name: value for name, value in (("data", progress.data), ("iterator", progress.iterator)) if value is not None}
    states: dict[str, Any] = {}
    reading = progress.reading if progress is not None and not progress.finished else None
    if reading is not loader.dataset and _keeps_own_state(loader):
        states["data"] = copy.deepcopy(loader.dataset.state_dict())
    if reading is not None and has_state(reading):
        states["iterator"] = copy.deepcopy(reading.state_dict())
    return states


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
