"""One feeder for the ranks of a host: processes stand for ranks, with this one as their launcher."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually
from sluice.base.settings import Settings
from sluice.feeder import choice as feeder
from sluice.feeder.choice import feeder_in_words, shared_connection
from sluice.feeder.embedded import EmbeddedFeeder
from sluice.feeder.endpoint import FeederUnavailable
from sluice.feeder.launch import Launch
from sluice.feeder.shared import SharedFeeder, _locked
from sluice.torch import DataLoader
from test_embedded import alive

TESTS = Path(__file__).resolve().parent
FORK = multiprocessing.get_context("fork")
SECONDS = 60


def in_a_fork(call):
    """What a process that this one has forked returns from it."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=lambda: theirs.send(call()), daemon=True)
    process.start()
    theirs.close()
    assert ours.poll(SECONDS)
    result = ours.recv()
    process.join()
    return result


def feeder_pid() -> int:
    """Of the one that this process is connected to, as the kernel has it; 0 if that has just gone."""
    connection = shared_connection(Settings.from_environment())
    with connection.condition:
        assert connection.wait_connected(SECONDS)
        try:
            return struct.unpack("3i", connection._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        except OSError:
            return 0


class Rank:
    """A process that has a connection to its feeder, and keeps it until it is told to leave or is killed."""

    def __init__(self, number: int) -> None:
        self._pipe, theirs = FORK.Pipe()
        self._process = FORK.Process(target=_be_rank, args=(theirs, number), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, call=feeder_pid):
        self._pipe.send(call)
        assert self._pipe.poll(SECONDS)
        return self._pipe.recv()

    def leave(self) -> None:
        self._pipe.send(None)
        self._process.join()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        return self._process.pid


def _be_rank(orders, number: int) -> None:
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), TORCHELASTIC_ERROR_FILE=f"/tmp/{number}.json")
    while (call := orders.recv()) is not None:
        orders.send(call())
    feeder.disconnect_all()


def all_at_once(ranks: list[Rank], call=feeder_pid) -> list:
    for rank in ranks:
        rank._pipe.send(call)
    assert all(rank._pipe.poll(SECONDS) for rank in ranks)
    return [rank._pipe.recv() for rank in ranks]


@pytest.fixture
def tmp_path():  # Short, whatever number pytest's own folder has reached: sockets lie in it.
    with tempfile.TemporaryDirectory(prefix="ranks-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def launcher(tmp_path, monkeypatch):
    """Names the feeder's program and starts ranks; what they leave is killed."""
    path = tmp_path / "feeder"
    path.write_text(f"""#!/bin/sh
        echo $$ >> {tmp_path}/started
        if [ -e {tmp_path}/hang ]; then rm {tmp_path}/hang; exec sleep 1000; fi
        exec {sys.executable} {TESTS / 'fake_feeder_program.py'} "$@"
    """)
    path.chmod(0o755)
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", str(path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "16")
    ranks = []

    def start(count: int, first: int | None = None) -> list[Rank]:
        first = len(ranks) if first is None else first
        ranks.extend(Rank(number) for number in range(first, first + count))
        return ranks[-count:]

    yield start
    feeder.disconnect_all()
    for rank in ranks:
        rank.kill()
    for pid in (tmp_path / "started").read_text().split() if (tmp_path / "started").exists() else []:
        if alive(int(pid)):
            os.kill(int(pid), signal.SIGKILL)


@pytest.fixture
def real_launcher(launcher, monkeypatch):
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", REAL_BINARY)
    return launcher


def folders(tmp_path) -> list[Path]:
    return list(tmp_path.glob("sluice.*/*"))


def test_ranks_that_begin_at_once_have_one_feeder_which_ends_with_the_last(launcher, tmp_path):
    ranks = launcher(12)
    (pid,) = set(all_at_once(ranks))
    assert (tmp_path / "started").read_text().split() == [str(pid)]
    (folder,) = folders(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0 and folder.parent.stat().st_mode & 0o077 == 0
    for rank in ranks[:-1]:
        rank.leave()
    assert ranks[-1].ask() == pid
    ranks[-1].leave()
    eventually(lambda: not alive(pid) and not folders(tmp_path))


def test_a_killed_feeder_is_replaced_by_one(launcher, tmp_path):
    ranks = launcher(4)
    (first,) = set(all_at_once(ranks))
    os.kill(first, signal.SIGKILL)
    eventually(lambda: len((tmp_path / "started").read_text().split()) == 2)
    eventually(lambda: len(set(all_at_once(ranks)) | {0, first}) == 3 and not {0, first} & set(all_at_once(ranks)))


def test_a_rank_that_is_killed_before_its_feeder_listens_leaves_the_way_free(launcher, tmp_path):
    (tmp_path / "hang").touch()
    (starter,) = launcher(1)
    starter._pipe.send(feeder_pid)
    eventually(lambda: (tmp_path / "started").exists() and not (tmp_path / "hang").exists())
    starter.kill()
    others = launcher(2)
    assert len(set(all_at_once(others))) == 1


def shared_feeder(clock=lambda: 0.0) -> SharedFeeder:
    settings = Settings.from_environment()
    return SharedFeeder([settings.feeder_binary], settings, Launch.of_this_thread([settings.feeder_binary], settings), clock)


def test_a_socket_that_was_left_behind_is_no_obstacle(launcher, tmp_path):
    endpoint = shared_feeder()
    endpoint._take_lock()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(endpoint._socket)
    with pytest.raises(FeederUnavailable, match="starting"):
        endpoint.address()
    assert eventually(lambda: _address(endpoint)) == endpoint._socket
    endpoint.close()


def _address(endpoint) -> str | None:
    try:
        return endpoint.address()
    except FeederUnavailable:
        return None


def test_one_that_does_not_get_the_lock_has_a_feeder_of_its_own_after_half_of_its_patience(launcher, tmp_path, caplog):
    now = [0.0]
    endpoint = shared_feeder(lambda: now[0])
    endpoint._take_lock()
    endpoint._let_go()
    ours, theirs = FORK.Pipe()
    holder = FORK.Process(target=lambda: (_locked(endpoint._folder), theirs.send("locked"), signal.pause()), daemon=True)
    holder.start()
    assert ours.poll(SECONDS)
    with pytest.raises(FeederUnavailable, match="another rank"):
        endpoint.address()
    assert caplog.text == ""
    now[0] = Settings.from_environment().start_patience_seconds / 2
    assert endpoint.address().startswith(str(tmp_path / "sluice-"))
    assert "a feeder of its own" in caplog.text
    endpoint.close()
    holder.kill()


def test_a_feeder_that_ends_at_once_is_told_with_its_last_words_and_started_again(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_FEEDER_FAILS", "1")
    endpoint = shared_feeder()
    with pytest.raises(FeederUnavailable, match="starting"):
        endpoint.address()
    endpoint._process.wait(SECONDS)
    with pytest.raises(FeederUnavailable, match="with status 1; its last words: the fake feeder was told to fail"):
        endpoint.address()
    with pytest.raises(FeederUnavailable, match="starting"):
        endpoint.address()
    endpoint.close()


@pytest.mark.parametrize("odd", ["a link", "a link in its parent's place", "open to others", "a file", "another user's"])
def test_a_folder_that_is_not_this_users_alone_is_not_used(launcher, tmp_path, caplog, odd):
    endpoint = shared_feeder()
    folder, elsewhere = endpoint._folder, tmp_path / "elsewhere"
    elsewhere.mkdir(0o700)
    if odd == "a link in its parent's place":
        folder.parent.symlink_to(elsewhere)
    else:
        folder.parent.mkdir(0o700)
    if odd == "a link":
        folder.symlink_to(elsewhere)
    elif odd == "open to others":
        folder.mkdir()
        folder.chmod(0o770)
    elif odd == "a file":
        folder.touch()
    elif odd == "another user's":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        folder.mkdir(0o700)
        os.chown(folder, 65534, 65534)
    assert endpoint.address().startswith(str(tmp_path / "sluice-"))
    assert "a feeder of its own" in caplog.text and not list(elsewhere.iterdir())
    endpoint.close()


def test_folders_of_feeders_that_were_killed_are_swept_away(launcher, tmp_path):
    endpoint = shared_feeder()
    endpoint._take_lock()
    dead, live, young = (endpoint._folder.with_name(name) for name in ("dead", "live", "young"))
    for folder in (dead, live, young):
        folder.mkdir(0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(live / "feeder.sock"))
    listener.listen()
    for folder in (dead, live):
        os.utime(folder, (1, 1))
    assert _address(endpoint) is None  # It starts one.
    assert [folder.exists() for folder in (dead, live, young)] == [False, True, True]
    listener.close()
    endpoint.close()


def nothing() -> None:
    pass


def other_cpus() -> None:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def other_limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[0], 4096))


def other_output() -> None:
    os.dup2(os.open(os.environ["TMPDIR"] + "/output", os.O_CREAT | os.O_WRONLY), 1)


def other_out_of_memory_score() -> None:
    Path("/proc/self/oom_score_adj").write_text("500")


def blocked_signals() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])


def memory_of_one_node() -> None:
    MPOL_BIND, node = 2, ctypes.c_ulong(1)
    ctypes.CDLL(None).syscall(238, MPOL_BIND, ctypes.byref(node), 64)


def without_output() -> None:
    os.close(1)


@pytest.mark.parametrize("change, is_one_launch", [
    (nothing, True),
    (lambda: os.environ.update(RANK="3", LOCAL_RANK="3", TORCHELASTIC_ERROR_FILE="/tmp/3"), True),
    (lambda: os.environ.update(CUDA_VISIBLE_DEVICES="3"), False),
    (lambda: os.environ.update(OMP_NUM_THREADS="7"), False),
    (lambda: os.environ.update(SLUICE_THREADS="3"), False),
    (other_cpus, False),
    (other_limit, False),
    (other_output, False),
    (other_out_of_memory_score, False),
    (blocked_signals, False),
    (memory_of_one_node, False),
    (lambda: os.nice(1), False),
    (lambda: os.umask(0o027), False),
    (lambda: os.chdir("/"), False),
    (without_output, None),
])
def test_ranks_that_would_start_another_feeder_share_none(launcher, change, is_one_launch):
    def name(change) -> str | None:
        change()
        settings = Settings.from_environment()
        try:
            return Launch.of_this_thread([settings.feeder_binary], settings).name
        except OSError:
            return None

    if change is other_cpus and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("there is but one CPU")
    usual, changed = in_a_fork(lambda: name(nothing)), in_a_fork(lambda: name(change))
    assert changed is None if is_one_launch is None else (changed == usual) is is_one_launch


@pytest.mark.parametrize("name, value", [("LOCAL_WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "many"), ("LOCAL_WORLD_SIZE", "257"), ("SLUICE_SHARE_FEEDER", "off")])
def test_one_rank_alone_has_its_own(launcher, monkeypatch, name, value):
    assert "of the ranks of this host" in feeder_in_words(Settings.from_environment())
    monkeypatch.setenv(name, value)
    assert "of this process" in feeder_in_words(Settings.from_environment())
    assert shared_connection(Settings.from_environment()).wait_connected(SECONDS)
    (connection,) = feeder._connections.values()
    assert isinstance(connection._endpoint, EmbeddedFeeder)


class Ranked(torch.utils.data.Dataset):
    """Learns its rank when it is first read, as some libraries do, and draws."""

    rank = None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if self.rank is None:
            self.rank = int(os.environ["RANK"])
        return index, self.rank, torch.rand(3)


def batches_of_this_rank() -> list:
    torch.manual_seed(int(os.environ["RANK"]))
    return [[part.tolist() for part in batch] for batch in DataLoader(Ranked(), batch_size=4, num_workers=2, shuffle=True)]


def test_the_real_ones_batches_are_those_of_feeders_of_their_own(real_launcher, monkeypatch, tmp_path):
    ranks = real_launcher(4)
    made = all_at_once(ranks, batches_of_this_rank)
    (pid,) = set(all_at_once(ranks))
    for rank in ranks:
        rank.kill()
    eventually(lambda: not alive(pid) and not folders(tmp_path))
    for number, batches in enumerate(made):
        assert {rank for _, ranks, _ in batches for rank in ranks} == {number}
    monkeypatch.setenv("SLUICE_SHARE_FEEDER", "off")
    alone = real_launcher(4, first=0)
    assert made == all_at_once(alone, batches_of_this_rank)
    assert len(set(all_at_once(alone))) == 4


def test_who_comes_while_the_last_one_leaves_has_a_feeder(real_launcher, tmp_path):
    """Which looks every 0.1 s whether a client is left. These come at that moment, some just before it and some just after."""
    staying = real_launcher(1)[0]
    assert staying.ask()
    for _ in range(10):
        (coming,) = real_launcher(1)
        coming._pipe.send(feeder_pid)
        staying.leave()
        assert coming._pipe.poll(SECONDS) and coming._pipe.recv()
        staying = coming
    staying.leave()
    eventually(lambda: not folders(tmp_path))
