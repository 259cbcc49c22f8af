"""When this process makes a loader's batches, when an executor is started for them, and that no batch depends on it."""

from __future__ import annotations

import gc
import logging
import os
import threading
import time

import pytest
import torch
from torch.utils.data import Dataset

import sluice.makers.payback
import sluice.torch
from conftest import eventually
from sample_datasets import TORCH_HAS_IN_ORDER, Numbers
from sluice.base.settings import Settings
from sluice.feeder.choice import shared_connection
from sluice.loader.pipeline import Pipeline
from sluice.makers.payback import Payback
from sluice.torch import DataLoader
from test_loader import equal, indices_of


@pytest.fixture(autouse=True)
def stepping_aside(clean_slate, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setenv("SLUICE_AHEAD", "off")  # Requests are counted here.


def two_epochs(loader) -> list:
    """All batches; copies, for a feeder with few slots."""
    return [[tensor.clone() for tensor in batch] for _ in range(2) for batch in loader]


def made_by_executors(**arguments):
    """The batches of two epochs, all from the feeder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_STEP_ASIDE", "off")
        torch.manual_seed(21)
        return two_epochs(DataLoader(Numbers(), **{"batch_size": 4, "num_workers": 3, **arguments}))


def loader_that(pays: bool, forks_at_once: bool = False, **arguments) -> DataLoader:
    torch.manual_seed(21)
    loader = DataLoader(Numbers(), **{"batch_size": 4, "num_workers": 3, **arguments})
    loader._sluice_payback = Payback(forks_at_once)
    loader._sluice_payback.pays = pays
    return loader


@pytest.mark.parametrize("arguments", [{}, {"shuffle": True}, {"persistent_workers": True}], ids=str)
def test_a_cheap_loader_asks_no_executor_and_gives_the_same_batches(make_fake, arguments):
    fake = make_fake()
    expected = made_by_executors(**arguments)
    before = len(fake.ask()["requests"])
    assert equal(expected, two_epochs(loader_that(pays=False, **arguments)))
    assert len(fake.ask()["requests"]) == before


class FirstIsSlow(Numbers):
    """Its first sample takes until the loop has made the file."""

    def __init__(self, path) -> None:
        super().__init__(8)
        self.path = path

    def __getitem__(self, index):
        ends_seconds = time.monotonic() + 60
        while index == 0 and not self.path.exists() and time.monotonic() < ends_seconds:
            time.sleep(0.01)
        return index


@pytest.mark.skipif(not TORCH_HAS_IN_ORDER, reason="this torch has no in_order")
def test_batches_that_may_overtake_do_not_wait_for_a_slow_one(make_fake, tmp_path):
    make_fake(silent=True)
    batches = []
    for batch in DataLoader(FirstIsSlow(tmp_path / "go on"), num_workers=2, in_order=False):
        batches.append(batch.item())
        (tmp_path / "go on").touch()
    assert sorted(batches) == list(range(8)) and batches[0] != 0


def test_its_time_and_samples_are_reported_as_ever(make_fake):
    fake = make_fake()
    assert shared_connection(Settings.from_environment()).wait_connected(60)  # Batches before that are not reported.
    list(loader_that(pays=False))
    eventually(lambda: fake.ask()["closed"])
    progress = list(fake.ask()["progress"].values())[0]
    assert (progress["batches"], progress["samples"], progress["queue_capacity"]) == (10, 37, 0)
    assert progress["wait_seconds"] > 0


def forget_what_was_proven() -> None:
    """A loader that asks for the same again before the feeder was told to forget it finds executors that are proven."""
    gc.collect()
    eventually(lambda: not shared_connection(Settings.from_environment()).session._pipelines)


FAULTS = {
    "none": {},
    "answers in reverse": dict(newest_first=True),
    "every batch twice": dict(send_twice=True),
    "no answer at all": dict(silent=True),
    "connection lost again and again": dict(drop_after=2, drops=5),
    "connection lost at each request": dict(hang_up=True),
    "executors lost": dict(lose_executors=2),
    "a window of one": dict(window_batches=1),
    "only one slot": dict(slots=1),
    "pipeline refused": dict(refuse_all=True),
}


@pytest.mark.parametrize("case", FAULTS)
def test_no_batch_depends_on_when_executors_take_over(make_fake, case):
    fake = make_fake()
    expected = made_by_executors()
    forget_what_was_proven()
    fake.set(**FAULTS[case])
    assert equal(expected, two_epochs(loader_that(pays=True)))


def test_two_batches_try_the_executors_and_then_these_make_all_others(make_fake):
    fake = make_fake(silent=True)
    batches = iter(loader_that(pays=True, batch_size=1))
    eventually(lambda: fake.ask()["opens"])
    seen = [next(batches)[0].item()]
    eventually(lambda: len(fake.ask()["requests"]) == 2)
    tried = [request[0] for request in fake.ask()["requests"]]
    seen += [next(batches)[0].item() for _ in range(9)]
    # The last two that were drawn by then. They were not there when the loop came to them, and no other was asked for.
    assert tried in ([4, 5], [5, 6]) and [request[0] for request in fake.ask()["requests"]] == tried
    fake.set(silent=False)
    eventually(lambda: batches._stream.is_proven)
    seen += [batch[0].item() for batch in batches]
    assert seen == list(range(37))
    asked = [request[0] for request in fake.ask()["requests"]]
    assert sorted(asked) == asked and len(set(asked)) == len(asked) and asked[-1] == 36 and len(asked) >= 27


def test_a_new_feeder_is_tried_before_the_loop_waits_for_it(make_fake):
    fake = make_fake()
    batches = iter(loader_that(pays=True, batch_size=1))
    eventually(lambda: batches._stream.is_proven)
    seen = [next(batches)[0].item() for _ in range(3)]
    fake.stop()
    make_fake(silent=True)
    seen += [batch[0].item() for batch in batches]
    assert seen == list(range(37))


def test_an_executor_that_was_lost_is_tried_again(make_fake):
    make_fake(lose_executors=2)
    loader = loader_that(pays=True, batch_size=1)
    batches = iter(loader)
    seen = []
    while not batches._stream.is_proven and len(seen) < 36:
        seen.append(next(batches)[0].item())
        threading.Event().wait(0.05)
    assert batches._stream.is_proven
    assert seen + [batch[0].item() for batch in batches] == list(range(37))


def test_a_state_made_in_this_process_is_resumed_by_executors(make_fake):
    make_fake()
    expected = made_by_executors(shuffle=True)[:10]
    loader = loader_that(pays=False, shuffle=True)
    batches = iter(loader)
    first = [next(batches) for _ in range(4)]
    state = loader.state_dict()
    resumed = loader_that(pays=True, shuffle=True)
    resumed.load_state_dict(state)
    assert equal(expected, first + list(resumed))


def test_the_real_feeder_takes_over(real_feeder):
    expected = two_epochs(loader_that(pays=False, batch_size=1, persistent_workers=True))
    loader, made = loader_that(pays=True, batch_size=1, persistent_workers=True), []
    batches = iter(loader)
    for _ in range(37):
        made.append([tensor.clone() for tensor in next(batches)])
        if len(made) == 30:
            eventually(lambda: batches._stream.is_proven, 240)
    made += [[tensor.clone() for tensor in batch] for batch in loader]
    assert equal(expected, made)


AT_ONCE = {
    "a timeout": dict(timeout=60),
    "much data": {},
}


@pytest.fixture(params=AT_ONCE)
def forking_at_once(request, monkeypatch):
    """Arguments of a loader whose first batch forks make."""
    if request.param == "much data":
        monkeypatch.setattr(sluice.torch, "LIGHT_BYTES", 10)
    return AT_ONCE[request.param]


def test_forks_make_what_this_process_must_not(make_fake, monkeypatch, forking_at_once):
    fake = make_fake()
    for name in ("START_SECONDS", "WARM_START_SECONDS"):  # Executors never pay, however slow this machine is.
        monkeypatch.setattr(sluice.makers.payback, name, 1e9)
    expected = made_by_executors(**forking_at_once)
    before = len(fake.ask()["requests"])
    monkeypatch.setattr(Pipeline, "computation", None)  # No copy, no batch of this process.
    loader = loader_that(pays=False, forks_at_once=True, **forking_at_once)
    assert equal(expected, two_epochs(loader)) and loader._sluice_payback.forks_at_once
    assert len(fake.ask()["requests"]) == before


def test_executors_that_pay_are_tried_beside_such_forks_and_take_over(make_fake, monkeypatch, forking_at_once):
    fake = make_fake()
    loader = loader_that(pays=True, forks_at_once=True, **{**forking_at_once, "batch_size": 1})
    monkeypatch.setattr(Pipeline, "computation", None)
    batches = iter(loader)
    seen = [next(batches)[0].item()]
    eventually(lambda: batches._stream.is_proven)
    seen += [batch[0].item() for batch in batches]
    asked = [request[0] for request in fake.ask()["requests"]]
    assert seen == list(range(37)) and asked[:2] == [0, 1] and asked[2:] == list(range(asked[2], 37)) and 2 <= asked[2] <= 20


@pytest.mark.parametrize("case", FAULTS)
def test_no_batch_depends_on_when_such_executors_take_over(make_fake, monkeypatch, case):
    fake = make_fake()
    expected = made_by_executors(timeout=60)
    forget_what_was_proven()
    fake.set(**FAULTS[case])
    assert equal(expected, two_epochs(loader_that(pays=True, forks_at_once=True, timeout=60)))


class Sleeping(Numbers):
    def __getitem__(self, index: int):
        threading.Event().wait(60 if index == 5 else 0)
        return super().__getitem__(index)


def test_a_fork_that_takes_too_long_is_told_as_by_torch(make_fake):
    make_fake()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 2 seconds"):
        list(DataLoader(Sleeping(), num_workers=2, timeout=2))


class Leaving(Numbers):
    """Sample 5 ends its process, as it believes."""

    def __getitem__(self, index: int):
        if index == 5:
            raise SystemExit("enough")
        return super().__getitem__(index)


class Refused(Exception):
    """Has more arguments than it passes on: what was pickled cannot be read again."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"{index}: {reason}")


class KeepsError(Numbers):
    """Can be pickled, but not unpickled."""

    def __init__(self) -> None:
        super().__init__()
        self.error = Refused(3, "too dark")


def test_a_data_set_that_cannot_be_unpickled_stays_with_torch(make_fake, caplog):
    make_fake()
    torch.manual_seed(4)
    loader = DataLoader(KeepsError(), batch_size=4, num_workers=2)
    with caplog.at_level(logging.WARNING, "sluice"):
        got = list(loader)
    assert len(got) == len(loader)
    assert sum(indices_of(got), []) == list(range(len(loader.dataset)))
    assert [record.getMessage() for record in caplog.records] == [
        "using torch's own workers: the dataset, its transforms or collate_fn cannot be unpickled "
        "(TypeError: Refused.__init__() missing 1 required positional argument: 'reason')"
    ]


def test_a_sample_that_exits_does_not_end_the_training_in_silence(make_fake):
    make_fake()
    batches = iter(DataLoader(Leaving(), batch_size=4, num_workers=2))
    next(batches)
    with pytest.raises(RuntimeError, match="SystemExit: enough"):
        next(batches)
    assert indices_of(batches)[-1] == [36]


class Exiting(Numbers):
    """Sample 5 ends its process; the others fork one that ends."""

    def __getitem__(self, index: int):
        if index == 5:
            os._exit(3)
        child = os.fork()
        if child == 0:
            os._exit(index)
        return torch.tensor(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def test_a_sample_that_ends_its_process_does_not_end_the_trainer(make_fake, monkeypatch):
    make_fake()
    monkeypatch.setattr(sluice.makers.payback, "FORK_SECONDS", 1e9)  # However slow this machine is, this process makes the batches.
    ends = os._exit
    batches = iter(DataLoader(Exiting(12), batch_size=4, num_workers=2))
    assert next(batches).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match=r"SystemExit: a sample has called os._exit\(3\)"):
        next(batches)
    assert os._exit is ends


class Threads(Dataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        return torch.get_num_threads()


def test_torch_has_one_thread_as_in_an_executor_and_its_own_afterwards(make_fake):
    make_fake()
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert torch.cat(list(DataLoader(Threads(), num_workers=1))).unique().tolist() == [1]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(threads)


def test_the_log_says_once_where_batches_are_made_and_why(make_fake, caplog):
    make_fake()
    with caplog.at_level(logging.INFO, logger="sluice"):
        loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
        list(loader), list(loader)
    said = [record.getMessage() for record in caplog.records if "batches:" in record.getMessage()]
    assert len(said) == 1
    assert "this process makes them, and no executor is started: made there, the loop waits" in said[0]
    assert said[0].endswith(loader._sluice_payback.in_words()) or loader._sluice_payback.in_words().startswith("this process")
