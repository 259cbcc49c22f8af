"""Workers forked from the training process: when they are started, that no batch depends on them, and that none is left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time

import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data._utils import worker as torch_worker

import sluice.makers.payback
from conftest import eventually
from sample_datasets import TORCH_HAS_IN_ORDER, Failing, Mixed, Numbers, OwnError
from sluice.executor.computation import BatchRequest, ForkComputation, PythonPipeline
from sluice.executor.generators import ProcessGenerators
from sluice.feeder import choice as feeder
from sluice.loader.iterator import FeederIterator
from sluice.makers.forks import can_fork
from sluice.makers.payback import Payback
from sluice.torch import DataLoader
from test_loader import equal
from test_stepping_aside import made_by_executors, two_epochs


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_AHEAD", "off")  # Requests are counted here.


class Decided(Payback):
    """However long the loop waits, which on a busy machine is long."""

    def note(self, *_) -> None:
        pass


def loader_with_forks(dataset=None, pays=False, **arguments) -> DataLoader:
    torch.manual_seed(21)
    loader = DataLoader(dataset or Numbers(), **{"batch_size": 4, "num_workers": 3, **arguments})
    loader._sluice_payback = Decided(forks_at_once=not arguments.get("in_order", True) or arguments.get("timeout", 0) > 0)
    loader._sluice_payback.forks_pay, loader._sluice_payback.pays = True, pays
    return loader


def children() -> set[int]:
    return {process.pid for process in multiprocessing.active_children()}


@pytest.mark.parametrize("arguments", [{}, {"persistent_workers": True}, {"prefetch_factor": 1}], ids=str)
def test_a_loop_goes_on_alone_after_its_forks(make_fake, arguments):
    make_fake()
    expected, running = made_by_executors(**arguments), children()
    loader = loader_with_forks(**arguments)
    made = []
    for epoch in range(2):
        for number, batch in enumerate(loader):
            loader._sluice_payback.forks_pay = (epoch, number) < (0, 4)
            made.append([tensor.clone() for tensor in batch])
            if (epoch, number) == (0, 1):
                assert children() > running
    assert equal(expected, made)
    eventually(lambda: children() <= running)


ORDERS = [{}, {"in_order": False}] if TORCH_HAS_IN_ORDER else [{}]


@pytest.mark.parametrize("arguments", [*ORDERS, {"shuffle": True}, {"persistent_workers": True}, {"drop_last": True, "prefetch_factor": 1},
                                       {"batch_size": None}, {"num_workers": 50}], ids=str)  # fmt: skip
def test_forks_give_the_batches_of_executors(make_fake, arguments):
    fake = make_fake()
    expected = made_by_executors(**arguments)
    before, running = len(fake.ask()["requests"]), children()
    loader = loader_with_forks(**arguments)
    made = two_epochs(loader)
    if "in_order" in arguments:
        def by_first(batch): return batch[0].reshape(-1)[0].item()
        half = len(made) // 2
        made = sorted(made[:half], key=by_first) + sorted(made[half:], key=by_first)
    assert equal(expected, made)
    assert len(fake.ask()["requests"]) == before
    del loader
    gc.collect()
    eventually(lambda: children() <= running)


def test_the_structure_of_a_batch_is_kept(make_fake):
    make_fake()
    wanted = list(TorchLoader(Mixed(), batch_size=4, num_workers=2))
    assert equal(wanted, list(loader_with_forks(Mixed(), num_workers=2)))


def test_the_main_generator_is_left_as_torch_leaves_it(make_fake):
    make_fake()
    torch.manual_seed(21)
    list(TorchLoader(Numbers(), batch_size=4, shuffle=True, num_workers=2))
    wanted = torch.rand(3)
    list(loader_with_forks(shuffle=True, num_workers=2))
    assert torch.equal(wanted, torch.rand(3))


class Waiting(Numbers):
    """Each sample waits, as for a network, and tells who has made it."""

    def __getitem__(self, index: int):
        time.sleep(0.02)
        return torch.tensor([index, os.getpid()])


def test_a_loop_that_waits_gets_forks_by_itself(make_fake, monkeypatch):
    make_fake()
    for start in ("START_SECONDS", "WARM_START_SECONDS"):  # However slow this machine is, no executor pays.
        monkeypatch.setattr(sluice.makers.payback, start, 1e6)
    loader = DataLoader(Waiting(160), batch_size=4, num_workers=4)
    seen = torch.cat(list(loader))
    assert seen[:, 0].tolist() == list(range(160))
    makers = set(seen[40:, 1].tolist())
    assert len(makers) == 4 and os.getpid() not in makers


@pytest.mark.parametrize("error", [OwnError("no"), KeyError("gone"), SystemExit("enough")], ids=lambda error: type(error).__name__)
def test_an_error_is_the_one_of_the_process_itself(make_fake, error):
    make_fake()
    raised = []
    for loader in (DataLoader(Failing(error), batch_size=4, num_workers=2), loader_with_forks(Failing(error), num_workers=2)):
        batches = iter(loader)
        next(batches)
        with pytest.raises(BaseException) as caught:
            next(batches)
        raised.append((type(caught.value), str(caught.value).splitlines()[-1], len(list(batches))))
    assert raised[0] == raised[1]


def test_a_worker_that_dies_ends_the_loop_with_torchs_error(make_fake):
    make_fake()
    batches = iter(loader_with_forks(Waiting(400)))
    next(batches)
    os.kill(min(process.pid for process in batches._forks._batches._workers), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)


def test_children_of_the_script_leave_its_forks_alone(make_fake):
    make_fake()
    batches = iter(loader_with_forks())
    made = 1 if next(batches) else 0
    child = os.fork()
    if child == 0:
        complaints = []
        sys.unraisablehook = complaints.append
        try:
            del batches
            gc.collect()
        finally:
            os._exit(len(complaints))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert made + len(list(batches)) == 10


def in_another_thread(batches) -> list:
    made = []
    thread = threading.Thread(target=lambda: made.extend(batches))
    thread.start()
    thread.join()
    return made


@pytest.mark.parametrize("taken", [list, in_another_thread])
def test_virtual_workers_that_stay_forks_are_described_once(make_fake, monkeypatch, taken):
    fake = make_fake()
    monkeypatch.setenv("SLUICE_RANDOMNESS", "torch")
    monkeypatch.setattr("sluice.torch.adds_no_cpu", lambda *_: True)
    before, running = fake.ask()["requests"], children()
    dataset = Numbers()
    arguments = {"batch_size": 4, "shuffle": True, "num_workers": 2}
    loader = DataLoader(dataset, **arguments)
    list(loader)
    monkeypatch.setattr("sluice.loader.pipeline.describe_pipeline", lambda *_: pytest.fail("it costs every pass"))
    torch.manual_seed(21)
    wanted = list(TorchLoader(dataset, **arguments))
    torch.manual_seed(21)
    assert equal(wanted, taken(iter(loader)))
    assert fake.ask()["requests"] == before and children() <= running


def test_executors_take_over_from_forks(make_fake):
    fake = make_fake()
    expected, running = made_by_executors(batch_size=1), children()
    batches, made = iter(loader_with_forks(pays=True, batch_size=1)), []
    while not batches._stream.is_proven and len(made) < 30:
        made.append(next(batches))
        threading.Event().wait(0.05)
    assert batches._stream.is_proven
    made += list(batches)
    assert equal(expected[:37], made)
    assert len(fake.ask()["requests"]) > 2
    assert batches._forks is None and children() <= running


def test_a_loop_that_is_left_early_leaves_no_process(make_fake):
    make_fake()
    running = children()
    for _ in range(3):
        loader = loader_with_forks(Waiting(400))
        for _ in loader:
            break
        del loader
    gc.collect()
    eventually(lambda: children() <= running)


def test_a_program_that_replaces_torchs_loader_by_ours_is_served(make_fake, monkeypatch):
    make_fake()
    expected = made_by_executors()
    monkeypatch.setattr(torch.utils.data, "DataLoader", DataLoader)
    assert equal(expected, two_epochs(loader_with_forks()))


def test_persistent_workers_persist(make_fake):
    make_fake()
    loader = loader_with_forks(Waiting(20), persistent_workers=True)
    makers = [set(torch.cat(list(loader))[:, 1].tolist()) for _ in range(3)]
    assert makers[0] == makers[1] == makers[2] and os.getpid() not in makers[0]


class Staged(Numbers):
    """Its samples say what the script has set."""

    stage = 0

    def __getitem__(self, index: int):
        return torch.tensor([index, self.stage])


def stages_of(loader_class, passes: int, change, **arguments) -> list:
    """The batches of passes that end early, but for the last. `change(dataset, iterator, pass number, batch number)` after each."""
    dataset = Staged(61)
    loader, seen = loader_class(dataset, batch_size=4, num_workers=2, timeout=60, **arguments), []
    if loader_class is DataLoader:
        loader._sluice_payback = Decided(forks_at_once=True)
    for number in range(passes):
        batches = iter(loader)
        for place, batch in enumerate(batches):
            seen.append(batch.clone())
            change(dataset, batches, number, place)
            if place == 3 and number < passes - 1:
                break
    return seen


def test_persistent_workers_do_not_see_what_the_script_does_to_the_data_set(make_fake):
    make_fake()

    def change(dataset, *_):
        dataset.stage += 1

    assert equal(*(stages_of(kind, 3, change, persistent_workers=True) for kind in (TorchLoader, DataLoader)))


def test_forks_that_help_out_do_not_see_what_the_loop_has_done_to_the_data_set(make_fake):
    """They take over when the feeder is lost."""
    make_fake()
    helped = []

    def change(dataset, batches, number, place):
        dataset.stage = 10 * number + place + 1
        if not isinstance(batches, FeederIterator):
            return
        if (number, place) == (0, 0):
            batches._payback.pays = True
            batches._fill()
            eventually(lambda: batches._stream.is_proven)
        if (number, place) == (1, 1):
            assert batches._forks is None
            feeder.disconnect_all()
        helped.append(batches._forks is not None)

    assert equal(*(stages_of(kind, 2, change) for kind in (TorchLoader, DataLoader)))
    assert helped[-8]


@pytest.mark.parametrize("method, daemon, wanted", [("fork", False, True), ("spawn", False, False), ("forkserver", False, False), ("fork", True, False)])
def test_forks_are_started_where_torch_would_fork(monkeypatch, method, daemon, wanted):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda allow_none: method)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", daemon)
    assert can_fork() is wanted


def test_a_process_of_one_virtual_worker_puts_no_random_states_aside(monkeypatch):
    monkeypatch.setattr(torch_worker, "_worker_info", None)
    monkeypatch.setattr(ProcessGenerators, "capture", lambda: pytest.fail("it costs every batch"))
    computation = ForkComputation(PythonPipeline(Numbers(), None, True, sticky=True))
    drawn = [computation.compute(BatchRequest(seq, 5, 0, 2 * seq, [0, 1], 0, 1))[1] for seq in range(2)]
    ProcessGenerators.seed_as_worker(5, 0)
    assert equal(drawn, [torch.stack([Numbers()[0][1], Numbers()[1][1]]) for _ in range(2)])
