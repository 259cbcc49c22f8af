"""What goes wrong between the client and its feeder, and that the loop never notices more than time."""

from __future__ import annotations

import gc
import multiprocessing
import os
import socket
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy
import pytest
import torch

from conftest import eventually
from sample_datasets import Failing, Numbers, OwnError, Unpicklable
from sluice.feeder.connection import _send_some
from sluice.loader.iterator import FeederIterator
from sluice.shipping.framing import Outgoing
from sluice.torch import DataLoader
from test_loader import equal, indices_of


def undisturbed(fake_factory, **arguments):
    fake = fake_factory()
    torch.manual_seed(21)
    batches = [batch for _ in range(2) for batch in DataLoader(Numbers(), batch_size=4, num_workers=3, **arguments)]
    copies = [[tensor.clone() for tensor in batch] for batch in batches]
    fake.stop()
    return copies


FAULTS = {
    "answers in reverse": dict(newest_first=True),
    "every batch twice": dict(send_twice=True),
    "reverse and twice": dict(newest_first=True, send_twice=True),
    "connection lost once": dict(drop_after=3),
    "connection lost again and again": dict(drop_after=2, drops=5),
    "lost in reverse": dict(newest_first=True, drop_after=2, drops=4),
    "a window of one": dict(window_batches=1),
    "a window larger than the epoch": dict(window_batches=1000),
    "only one slot": dict(slots=1),
    "two slots": dict(slots=2),
    "answers for closed streams": dict(keep_answering_closed=True),
}


@pytest.mark.parametrize("case", FAULTS)
def test_batches_are_those_of_an_undisturbed_run(make_fake, case):
    expected = undisturbed(make_fake)
    make_fake(**FAULTS[case])
    torch.manual_seed(21)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=3)
    assert equal(expected, [batch for _ in range(2) for batch in loader])


def test_a_lost_connection_asks_again_only_for_what_has_not_come(make_fake):
    fake = make_fake(silent=True, drop_after=3, window_batches=4)
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=3))
    eventually(lambda: len(fake.ask()["requests"]) >= 4)  # so that one is lost with the connection
    fake.set(silent=False)
    assert indices_of(batches)[-1] == [36]
    records = fake.ask()
    assert records["connections"] == 2
    seqs = [request[0] for request in records["requests"]]
    assert seqs.count(3) == 2
    assert all(seqs.count(seq) == 1 for seq in (0, 1, 2, 9))


def test_what_a_feeder_said_before_it_went_is_read_even_if_it_cannot_be_answered():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.sendall(b"its last batch")
    theirs.close()
    outgoing = deque([Outgoing(b"a release"), Outgoing(b"a request")])
    _send_some(ours, outgoing)
    assert not outgoing
    assert ours.recv(100) == b"its last batch" and ours.recv(100) == b""


def test_requests_carry_the_position_of_their_first_sample(make_fake, monkeypatch):
    monkeypatch.setenv("SLUICE_AHEAD", "off")
    fake = make_fake()
    list(DataLoader(Numbers(10), batch_size=4, num_workers=2))
    assert fake.ask()["requests"] == [[0, 0, [0, 1, 2, 3]], [1, 4, [4, 5, 6, 7]], [2, 8, [8, 9]]]


def test_no_more_than_the_window_is_outstanding(make_fake):
    fake = make_fake(window_batches=2, silent=True)
    batches = iter(DataLoader(Numbers(), batch_size=1, num_workers=1, prefetch_factor=2))
    eventually(lambda: len(fake.ask()["requests"]) == 2)
    fake.set(silent=False)
    next(batches)
    eventually(lambda: len(fake.ask()["requests"]) == 3)


def test_an_early_break_closes_the_stream_and_gives_back_its_slots(make_fake):
    fake = make_fake()
    for batch in DataLoader(Numbers(), batch_size=4, num_workers=2):
        break
    del batch
    eventually(lambda: fake.ask()["closed"] and not fake.ask()["held"])


class Breaking:
    """A batch sampler that fails after some batches."""

    def __iter__(self):
        yield from ([number] for number in range(6))
        raise OwnError("the sampler's")

    def __len__(self) -> int:
        return 37


def test_a_batch_that_a_failing_sampler_takes_along_gives_its_slot_back(make_fake):
    fake = make_fake()
    with pytest.raises(OwnError):
        list(DataLoader(Numbers(), batch_sampler=Breaking(), num_workers=1))
    eventually(lambda: fake.ask()["closed"] and not fake.ask()["held"])


def test_timeout_raises_torchs_error(make_fake):
    make_fake(silent=True)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.2 seconds"):
        next(iter(DataLoader(Numbers(), num_workers=1, timeout=0.2)))


def test_computes_in_process_when_the_feeder_stays_away_and_goes_back_to_it(make_fake, tmp_path, monkeypatch, caplog):
    expected = undisturbed(make_fake)
    monkeypatch.setenv("SLUICE_LOSS_PATIENCE_SECONDS", "0.05")
    fake = make_fake()
    torch.manual_seed(21)
    numbers, state = DataLoader(Numbers(), batch_size=4, num_workers=3), torch.get_rng_state()
    batches = iter(numbers)
    got = [next(batches)]
    fake.stop()
    after_draws = torch.get_rng_state()
    got += [next(batches) for _ in range(8)]  # The prefetched ones, at most seven, and some that have to be made here.
    assert torch.equal(torch.get_rng_state(), after_draws) and not torch.equal(state, after_draws)
    fake = make_fake()
    eventually(lambda: fake.ask()["opens"] == 1)
    got += list(batches)
    got += list(numbers)
    assert equal(expected, got)
    assert fake.ask()["requests"]
    assert sum("computing batches in this process" in record.message for record in caplog.records) == 1


def test_computes_in_process_when_there_never_was_a_feeder(tmp_path, monkeypatch, caplog, make_fake):
    expected = undisturbed(make_fake)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", str(tmp_path / "nobody.sock"))
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "0.05")
    torch.manual_seed(21)
    got = [batch for _ in range(2) for batch in DataLoader(Numbers(), batch_size=4, num_workers=3)]
    assert equal(expected, got)
    assert sum("computing batches in this process" in record.message for record in caplog.records) <= 2


class Slow(Numbers):
    """Another thread may go on in the middle of its samples."""

    def __getitem__(self, index: int):
        before = torch.rand(1)
        threading.Event().wait(0.001)
        return index, before, torch.rand(1)


def test_loops_in_several_threads_compute_as_one_does(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", str(tmp_path / "nobody.sock"))
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "0")

    def batches(seed: int) -> list:
        return list(DataLoader(Slow(), batch_size=4, num_workers=1, generator=torch.Generator().manual_seed(seed)))

    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(batches, range(3)))
    assert equal(together, [batches(seed) for seed in range(3)])


def test_errors_of_the_fallback_look_like_a_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", str(tmp_path / "nobody.sock"))
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "0")
    batches = iter(DataLoader(Failing(OwnError("bad sample"), 8), batch_size=4, num_workers=2))
    next(batches)
    with pytest.raises(OwnError, match="(?s)in DataLoader worker process 1.*bad sample"):
        next(batches)
    assert torch.utils.data.get_worker_info() is None


def test_a_feeder_that_refuses_the_pipeline_is_done_without(make_fake, caplog):
    make_fake(refuse_all=True)
    assert indices_of(DataLoader(Numbers(), batch_size=4, num_workers=2))[-1] == [36]
    assert "refused for the test" in caplog.text


def test_a_feeder_that_comes_later_is_waited_for(make_fake, tmp_path, monkeypatch):
    from sluice.base.settings import Settings
    from sluice.feeder.choice import shared_connection

    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", str(tmp_path / "fake.sock"))
    assert not shared_connection(Settings.from_environment()).wait_connected(0)
    make_fake()
    assert indices_of(DataLoader(Numbers(), batch_size=4, num_workers=2))[-1] == [36]


def test_progress_tells_where_the_time_went(make_fake):
    fake = make_fake()
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    for _ in range(2):
        for _ in loader:
            pass
    eventually(lambda: len(fake.ask()["closed"]) == 2)
    epochs = [frame for _, frame in sorted(fake.ask()["progress"].items())]
    assert [(frame["epoch"], frame["batches"], frame["samples"]) for frame in epochs] == [(0, 10, 37), (1, 10, 37)]
    assert all(frame["wait_seconds"] > 0 and frame["compute_seconds"] > 0 for frame in epochs)


def test_progress_tells_of_the_queue_of_an_epoch_that_is_over_before_the_first_report(make_fake):
    fake = make_fake(window_batches=4)
    assert len(list(DataLoader(Numbers(), batch_size=4, num_workers=2))) == 10
    eventually(lambda: fake.ask()["closed"])
    (last,) = fake.ask()["progress"].values()
    asked_for = [min(4, 10 - taken) for taken in range(10)]  # When the loop asks for a batch.
    assert last["queue_capacity"] == pytest.approx(sum(asked_for) / 10)
    assert 0 <= last["queue_depth"] <= last["queue_capacity"]


def test_the_queue_of_a_loop_that_has_not_asked_since_is_the_last_one(make_fake):
    fake = make_fake()
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=2))
    for _ in range(4):
        next(batches)
    eventually(lambda: fake.ask()["progress"])
    del batches
    eventually(lambda: fake.ask()["closed"])
    assert list(fake.ask()["progress"].values())[-1]["queue_capacity"] > 0


def test_progress_begins_anew_with_each_connection(make_fake):
    fake = make_fake()
    batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=2))
    for _ in range(4):
        next(batches)
    eventually(lambda: len(fake.ask()["held"]) == 4)  # Everything that was asked for has come.
    fake.set(drop_after=1)
    next(batches)
    eventually(lambda: fake.ask()["opens"] == 2)
    assert len(list(batches)) == 5
    eventually(lambda: fake.ask()["closed"])
    assert list(fake.ask()["progress"].values())[-1]["batches"] == 5


def test_what_cannot_be_pickled_goes_torchs_way(make_fake, caplog):
    fake = make_fake()
    loader = DataLoader(Unpicklable(), batch_size=4, num_workers=2)
    for _ in range(2):
        assert indices_of(loader)[-1] == [36]
    assert sum("using torch's own workers" in record.message for record in caplog.records) == 1
    assert fake.ask()["pipelines"] == []


def _child(loader, iterator, results):
    try:
        next(iterator)
    except RuntimeError as error:
        results.put(str(error))
    results.put([index for batch in loader for index in batch[0].tolist()])
    results.close()
    results.join_thread()
    os._exit(0)


def test_a_forked_child_uses_its_own_connection(make_fake):
    fake = make_fake()
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    iterator = iter(loader)
    first = next(iterator)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_child, args=(loader, iterator, results))
    child.start()
    assert "before a fork" in results.get(timeout=60)
    assert results.get(timeout=60) == list(range(37))
    child.join(60)
    assert fake.ask()["connections"] == 2
    assert first[0].tolist() == [0, 1, 2, 3]
    assert indices_of(iterator)[-1] == [36]


def test_persistent_iterators_survive_a_break_in_the_middle(make_fake):
    make_fake()
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, persistent_workers=True)
    for _ in range(3):
        for batch in loader:
            break
    assert isinstance(loader._iterator, FeederIterator)
    assert indices_of(loader)[-1] == [36]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_pipeline_is_described_once_and_forgotten_when_no_loader_needs_it(make_fake, persistent):
    fake = make_fake()
    dataset = Numbers(8)
    loader = DataLoader(dataset, batch_size=4, num_workers=2, persistent_workers=persistent)
    for epoch in range(3):
        dataset.epoch = epoch
        assert indices_of(loader) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert fake.ask()["pipelines"] == ["python"] and fake.ask()["forgotten"] == 0
    del loader
    gc.collect()
    eventually(lambda: fake.ask()["forgotten"] == 1)
    list(DataLoader(dataset, batch_size=4, num_workers=2))
    assert fake.ask()["pipelines"] == ["python", "python"]


def test_an_array_that_changes_is_described_anew_and_the_old_one_forgotten(make_fake):
    fake = make_fake()
    dataset = Numbers(8)
    loader = DataLoader(dataset, batch_size=4, num_workers=2)
    for epoch in range(3):
        dataset.table = numpy.full(100_000, epoch)
        list(loader)
    assert len(fake.ask()["pipelines"]) == 3
    eventually(lambda: fake.ask()["forgotten"] == 2)


def test_a_socket_of_another_user_leaves_the_work_to_torch(tmp_path, monkeypatch, caplog):
    (tmp_path / "feeder.sock").touch()
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", str(tmp_path / "feeder.sock"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert not isinstance(iter(DataLoader(Numbers(), num_workers=1)), FeederIterator)
    assert "belongs to another user" in caplog.text


def test_a_torch_without_in_order_hands_over_in_order(make_fake):
    make_fake(newest_first=True)
    loader = DataLoader(Numbers(8), batch_size=2, num_workers=2)
    vars(loader).pop("in_order", None)
    assert indices_of(loader) == [[0, 1], [2, 3], [4, 5], [6, 7]]


@pytest.mark.parametrize("faults", [{"lose_executors": 3}, {"no_room": 3}], ids=str)
def test_a_batch_that_the_feeder_cannot_make_is_made_here(make_fake, caplog, faults):
    expected = undisturbed(make_fake)
    make_fake(**faults)
    torch.manual_seed(21)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=3)
    assert equal(expected, [batch for _ in range(2) for batch in loader])
    assert sum("computing such batches in this process" in record.message for record in caplog.records) == 1


def test_a_feeder_that_goes_down_again_and_again_before_it_answers_does_not_stop_the_loop(make_fake):
    expected = undisturbed(make_fake)
    fake = make_fake(hang_up=True)  # The patience for a loss is longer than a test may take.
    torch.manual_seed(21)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=3)
    batches = list(loader)
    fake.set(hang_up=False)
    assert equal(expected, [*batches, *loader])
