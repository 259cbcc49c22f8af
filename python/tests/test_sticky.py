"""Virtual workers: data sets that keep state, and loaders that shall draw what torch's draw. Every batch is compared with torch's."""

from __future__ import annotations

import copy
import functools
import os
import random
import signal
import socket
from pathlib import Path

import numpy
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader

from conftest import NO_REAL_FEEDER, REAL_BINARY, RealFeeder, eventually
from sample_datasets import Keyed, Numbers, OwnError, OwnGenerator, fail_at_start, give_generator, tag_dataset, WorkerFacts
from sluice.base.settings import SettingError, Settings
from sluice.executor.computation import BatchRequest
from sluice.executor.generators import StateError
from sluice.executor.history import History, batches_of
from sluice.feeder import choice as feeder_module
from sluice.loader.iterator import FeederIterator
from sluice.makers.payback import Payback
from sluice.torch import DataLoader
from stateful_datasets import (Compose, Counts, CountsBatches, FailsOnce, Randomizable, Transformed, draw_and_stack, seed_as_lightning,
                               seed_from_info, set_random_states)
from test_loader import equal

# Found out by Sluice itself, without any setting.
BY_THEMSELVES = {
    "numpy's Generator set by worker_init_fn": (OwnGenerator, {"worker_init_fn": give_generator}),
    "an attribute set by worker_init_fn": (WorkerFacts, {"worker_init_fn": tag_dataset}),
    "as of MONAI": (lambda: Transformed(Randomizable()), {"worker_init_fn": set_random_states}),
    "as of MONAI, not set": (lambda: Transformed(Randomizable()), {}),
    "as of albumentations": (lambda: Transformed(Compose()), {}),
}
# With SLUICE_RANDOMNESS=torch.
BY_SETTING = {
    "the process's generators": (Numbers, {}),
    "a sampler that draws": (Numbers, {"shuffle": True}),
    "random.seed of the worker's seed": (Numbers, {"worker_init_fn": seed_from_info}),
    "as of Lightning": (Numbers, {"worker_init_fn": seed_as_lightning}),
    "a counter": (Counts, {"shuffle": True}),
    "whole batches": (CountsBatches, {}),
    "single samples": (Counts, {"batch_size": None}),
    "a collate_fn that draws": (Numbers, {"collate_fn": draw_and_stack}),
    "keys of two types": (Counts, {"sampler": [*range(9), *numpy.arange(9, 14), *range(14, 27)]}),
    "keys that are no integers": (Keyed, {"sampler": [f"key {i}" for i in range(11)]}),
}
ALL = BY_THEMSELVES | BY_SETTING


@pytest.fixture
def as_torch(monkeypatch):
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")


def run(loader_class, name: str, epochs: int = 2, **arguments) -> list:
    """All batches of some epochs, and what the script draws in between and after."""
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)
    make, own = ALL[name]
    loader = loader_class(make(), **{"batch_size": 3, "num_workers": 2, **own, **arguments})
    seen = []
    for _ in range(epochs):
        batches = iter(loader)
        assert isinstance(batches, FeederIterator) == (loader_class is DataLoader)
        seen += [list(batches), torch.rand(1).item(), random.random(), numpy.random.rand()]
    return seen


@functools.cache
def by_torch(name: str, num_workers: int) -> list:
    return copy.deepcopy(run(TorchLoader, name, num_workers=num_workers))  # Its tensors have a descriptor each.


@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("name", BY_THEMSELVES)
def test_state_in_the_data_set_is_found_and_kept(any_feeder, name, num_workers):
    assert equal(run(DataLoader, name, num_workers=num_workers), by_torch(name, num_workers))


@pytest.mark.parametrize("num_workers", [1, 2, 4])
@pytest.mark.parametrize("name", BY_SETTING)
def test_with_the_setting_every_draw_is_that_of_torch(any_feeder, as_torch, name, num_workers):
    assert equal(run(DataLoader, name, num_workers=num_workers), by_torch(name, num_workers))


def descendants(pid: int) -> list[int]:
    """Of a feeder: its Python processes, parents first."""
    try:
        found = [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
        return []
    return found + [further for child in found for further in descendants(child)]


def leaves(pid: int) -> list[int]:
    """The processes that run batches."""
    return [child for child in descendants(pid) if not descendants(child)]


STATEFUL = "as of albumentations"


def interrupted(interrupt, after: int = 4, name: str = STATEFUL, **arguments) -> list:
    """An epoch in which `interrupt()` happens after so many batches."""
    torch.manual_seed(11)
    random.seed(12)
    numpy.random.seed(13)
    make, own = ALL[name]
    batches = iter(DataLoader(make(), **{"batch_size": 3, "num_workers": 2, **own, **arguments}))
    assert isinstance(batches, FeederIterator)
    first = [next(batches) for _ in range(after)]
    interrupt()
    return first + list(batches)


def test_a_virtual_worker_whose_process_was_killed_is_rebuilt(tmp_path, monkeypatch):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    feeder = RealFeeder(tmp_path)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)

    def kill_all():
        eventually(lambda: len(leaves(feeder.pid)) == 2)  # Those of the last pass may still be ending.
        for victim in leaves(feeder.pid):
            os.kill(victim, signal.SIGKILL)

    try:
        for _ in range(3):
            assert equal(interrupted(kill_all), by_torch(STATEFUL, 2)[0])
        log = Path(feeder.log.name).read_text()
        assert log.count("virtual worker is rebuilt") >= 3
        # A virtual worker lives in one process, which ends with its pass.
        eventually(lambda: len(leaves(feeder.pid)) <= 1)
    finally:
        feeder_module.disconnect_all()
        feeder.stop()


def test_another_feeder_is_told_what_the_virtual_workers_have_made(make_fake):
    fake = make_fake(drop_after=3, drops=2)
    assert equal(run(DataLoader, STATEFUL), by_torch(STATEFUL, 2))
    records = fake.ask()
    assert records["connections"] == 3 and records["histories"] >= 2


@pytest.mark.parametrize("faults", [{"refuse_all": True}, {"lose_executors": 1}, {"lose_executors": 5}, {"newest_first": False, "window_batches": 1},
                                    {"send_twice": True}, {"slots": 2}], ids=str)
@pytest.mark.parametrize("name", [STATEFUL, "as of MONAI"])
def test_what_goes_wrong_changes_no_batch(make_fake, name, faults):
    make_fake(**faults)
    assert equal(run(DataLoader, name), by_torch(name, 2))


def test_a_feeder_that_goes_for_ever_leaves_the_rest_to_this_process(make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_LOSS_PATIENCE_SECONDS", "0.2")
    fake = make_fake()
    assert equal(interrupted(fake.stop), by_torch(STATEFUL, 2)[0])


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_a_resumed_epoch_goes_on_with_the_state_of_its_workers(any_feeder, taken):
    whole = by_torch(STATEFUL, 2)[0]
    torch.manual_seed(11)
    loader = DataLoader(Transformed(Compose()), batch_size=3, num_workers=2)
    batches = iter(loader)
    for _ in range(taken):
        next(batches)
    state = loader.state_dict()
    resumed = DataLoader(Transformed(Compose()), batch_size=3, num_workers=2)
    resumed.load_state_dict(state)
    assert equal(list(resumed), whole[taken:])


@pytest.fixture
def stepping_aside(monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")


@pytest.mark.parametrize("name", ALL)
def test_forks_make_them_until_an_executor_pays(make_fake, stepping_aside, monkeypatch, name):
    if name in BY_SETTING:
        monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    fake = make_fake()
    assert equal(run(DataLoader, name), by_torch(name, 2))
    assert fake.ask()["requests"] == []


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_forks_go_on_with_the_state_of_a_resumed_epoch(make_fake, stepping_aside, taken):
    make_fake(silent=True)
    test_a_resumed_epoch_goes_on_with_the_state_of_its_workers(None, taken)


def paid() -> DataLoader:
    """A loader whose executors pay for their start."""
    torch.manual_seed(11)
    loader = DataLoader(Transformed(Compose()), batch_size=3, num_workers=2)
    loader._sluice_payback = Payback(forks_at_once=True)
    loader._sluice_payback.pays = True
    return loader


def test_executors_that_pay_are_tried_with_one_batch_and_make_the_next_pass(make_fake, stepping_aside):
    fake = make_fake()
    loader, expected = paid(), by_torch(STATEFUL, 2)
    batches = iter(loader)
    first = [next(batches)]
    eventually(lambda: batches._stream.is_proven)
    assert equal(first + list(batches), expected[0])  # Their state stays where it is.
    assert [request[0] for request in fake.ask()["requests"]] == [0]
    torch.rand(1)
    assert equal(list(loader), expected[4])
    assert len(fake.ask()["requests"]) == 1 + len(expected[4])


@pytest.mark.parametrize("faults", [{"refuse_all": True}, {"silent": True}, {"lose_executors": 1000}, {"hang_up": True}], ids=str)
def test_forks_go_on_where_no_executor_comes(make_fake, stepping_aside, faults):
    fake = make_fake(**faults)
    loader, expected = paid(), by_torch(STATEFUL, 2)
    assert equal(list(loader), expected[0])
    torch.rand(1)
    assert equal(list(loader), expected[4])
    assert all(request[0] == 0 for request in fake.ask()["requests"])


def test_a_pass_that_executors_make_stays_with_them(make_fake, stepping_aside):
    """However often the feeder goes: forks that got only some of the batches would not know the state."""
    make_fake()
    expected, loader = by_torch(STATEFUL, 2)[4], paid()
    batches = iter(loader)
    next(batches)
    eventually(lambda: batches._stream.is_proven)
    list(batches)
    torch.rand(1)
    batches, seen = iter(loader), []
    for batch in batches:
        seen.append([tensor.clone() for tensor in batch] if isinstance(batch, list) else batch.clone())
        if len(seen) in (3, 5):
            lost = batches._connection.session
            batches._connection._socket.shutdown(socket.SHUT_RDWR)
            eventually(lambda lost=lost: batches._connection.session not in (None, lost))
    assert equal(seen, expected)


def change_the_process(worker_id: int) -> None:
    os.environ["TEST_OF_STICKY"] = str(worker_id)
    os.nice(1)


def test_what_worker_init_fn_does_to_its_process_stays_there(make_fake, stepping_aside, monkeypatch):
    monkeypatch.delenv("TEST_OF_STICKY", raising=False)
    make_fake()
    niceness = os.nice(0)
    assert len(list(DataLoader(Numbers(), num_workers=2, worker_init_fn=change_the_process))) == len(Numbers())
    assert "TEST_OF_STICKY" not in os.environ and os.nice(0) == niceness


@pytest.mark.parametrize("make, num_workers, said", [
    (lambda: Transformed(Compose()), 3, "of 2 virtual workers, this loader has 3"),
    (lambda: Transformed(int), 2, "of 2 virtual workers, this loader has no virtual workers"),
])
def test_a_state_of_other_workers_is_refused(make_fake, make, num_workers, said):
    make_fake()
    loader = DataLoader(Transformed(Compose()), batch_size=3, num_workers=2)
    next(iter(loader))
    other = DataLoader(make(), batch_size=3, num_workers=num_workers)
    other.load_state_dict(loader.state_dict())
    with pytest.raises(StateError, match=said):
        iter(other)


def batches_and_errors(loader) -> list:
    """Of one epoch; of a ValueError the first line."""
    batches, seen = iter(loader), []
    while True:
        try:
            seen.append(next(batches))
        except ValueError as error:
            seen.append(str(error).partition("\n")[0])
        except StopIteration:
            return seen


def test_a_sample_that_raises_is_told_and_the_state_goes_on(any_feeder, as_torch):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(11)
        seen.append(batches_and_errors(loader_class(FailsOnce(), batch_size=2, num_workers=2)))
    assert equal(*seen) and seen[0].count("Caught ValueError in DataLoader worker process 0.") == 1


def test_a_worker_init_fn_that_raises_is_told(any_feeder):
    batches = iter(DataLoader(Numbers(), num_workers=2, worker_init_fn=fail_at_start))
    for worker in (0, 1):
        with pytest.raises(OwnError, match=f"Caught OwnError in DataLoader worker process {worker}.(?s:.*)no start today"):
            next(batches)


def test_two_passes_at_once_have_workers_of_their_own(any_feeder):
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(11)
        loader = loader_class(Transformed(Compose()), batch_size=3, num_workers=2)
        seen.append([list(pair) for pair in zip(loader, loader, strict=True)])
    assert equal(*seen)


def test_what_the_log_and_explain_say(make_fake, as_torch, caplog, image_root):
    make_fake()
    loader = DataLoader(Numbers(), num_workers=2)
    assert "by virtual workers beside this process\n  because SLUICE_RANDOMNESS is torch" in loader.explain()
    list(loader), list(loader)
    assert sum("no data worker does" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("random_steps, executor", [([], "native"), (["RandomHorizontalFlip"], "python, by virtual workers")])
def test_native_pipelines_that_draw_nothing_stay_native(make_fake, as_torch, image_root, random_steps, executor):
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    make_fake()
    steps = [transforms.Resize(24), transforms.CenterCrop(24), *(getattr(transforms, step)() for step in random_steps), transforms.ToTensor()]
    seen = []
    for loader_class in (TorchLoader, DataLoader):
        torch.manual_seed(11)
        loader = loader_class(ImageFolder(image_root, transforms.Compose(steps)), batch_size=4, num_workers=2)
        seen.append(list(loader))
    assert equal(*seen) and loader.explain().startswith(f"executor: {executor}")


def test_a_generator_of_the_script_stays_with_torch(make_fake, monkeypatch, caplog):
    import __main__

    make_fake()
    monkeypatch.setattr(__main__, "generator", random.Random(3), raising=False)
    dataset = Transformed(Compose())
    dataset.transform.py_random = __main__.generator
    assert not isinstance(iter(DataLoader(dataset, num_workers=2)), FeederIterator)
    assert "random generator of the script" in caplog.text


def batch(seq: int, keys: list) -> BatchRequest:
    return BatchRequest(seq, 0, 0, 0, keys, seq % 2, 2)


def test_a_history_holds_what_came_before():
    history, batches = History(2), [batch(seq, keys) for seq, keys in enumerate([[1, -2], [], [2**63 - 1], [-(2**63)], [5]])]
    for request in batches:
        history.add(request)
    before = [batches_of(history.before(request)) for request in batches]
    assert before == [[], [], [[1, -2]], [[]], [[1, -2], [2**63 - 1]]] and history.is_complete


@pytest.mark.parametrize("keys", [["a"], [1, "a"], [2**63]])
def test_a_history_ends_before_a_key_that_cannot_travel(keys):
    history, batches = History(2), [batch(0, [1]), batch(2, keys), batch(4, [2])]
    for request in batches:
        history.add(request)
    assert [batches_of(history.before(request)) for request in batches] == [[], [[1]], [[1]]] and not history.is_complete


@pytest.mark.parametrize("words", [[2, 1], [-1], [-2, 1, 1]])
def test_bytes_that_are_no_history_are_refused(words):
    with pytest.raises(ValueError, match="in the middle of a batch"):
        batches_of(numpy.array(words, dtype="<i8").tobytes())


def test_settings():
    assert Settings.from_environment({"SLUICE_RANDOMNESS": " Torch "}).torch_randomness
    assert not Settings.from_environment({"SLUICE_RANDOMNESS": "sample"}).torch_randomness and not Settings.from_environment({}).torch_randomness
    with pytest.raises(SettingError, match="SLUICE_RANDOMNESS='numpy': use sample or torch"):
        Settings.from_environment({"SLUICE_RANDOMNESS": "numpy"})
