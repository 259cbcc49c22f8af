"""A feeder of the process's own: it comes up by itself, is shared, comes back after a crash, and goes with the process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually
from sample_datasets import Numbers
from sluice.base.settings import Settings
from sluice.feeder import choice as feeder
from sluice.feeder.choice import shared_connection
from sluice.feeder.programs import feeder_command, node_cache_command
from sluice.loader.iterator import FeederIterator
from sluice.torch import DataLoader
from test_loader import indices_of

TESTS = Path(__file__).resolve().parent


def laptop(tmp_path, monkeypatch, binary):
    """The environment of a laptop: a binary, no socket."""
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", str(binary))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return binary


@pytest.fixture
def fake_program(tmp_path, monkeypatch):
    path = tmp_path / "feeder"
    path.write_text(f"#!/bin/sh\nexec {sys.executable} {TESTS / 'fake_feeder_program.py'} \"$@\"\n")
    path.chmod(0o755)
    return laptop(tmp_path, monkeypatch, path)


@pytest.fixture(params=["fake", "real"])
def program(request, tmp_path, monkeypatch):
    if request.param == "fake":
        return request.getfixturevalue("fake_program")
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    return laptop(tmp_path, monkeypatch, Path(REAL_BINARY))


def the_feeder():
    (connection,) = feeder._connections.values()
    return connection._endpoint


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def connect() -> None:
    """To a feeder that need not make a batch, for which its executors would import torch."""
    assert shared_connection(Settings.from_environment()).wait_connected(60)


def test_is_started_once_and_shared_and_stopped(program, tmp_path):
    loaders = [DataLoader(Numbers(), batch_size=4, num_workers=2) for _ in range(2)]
    for loader in loaders:
        assert indices_of(loader)[-1] == [36]
    pid = the_feeder().pid
    (directory,) = tmp_path.glob("sluice-*")
    assert directory.stat().st_mode & 0o077 == 0
    feeder.disconnect_all()
    assert not alive(pid) and not directory.exists()


def test_a_temporary_folder_with_a_long_name_is_no_obstacle(program, tmp_path, monkeypatch):
    long = tmp_path / ("job." + "9" * 60)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr(tempfile, "tempdir", None)
    connect()
    directory = the_feeder()._directory
    assert directory.parent == Path("/tmp")
    feeder.disconnect_all()
    assert not directory.exists()


def test_libraries_that_are_preloaded_are_not_the_feeders(program, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/of-a-newer-machine.so")
    connect()
    assert b"\0LD_PRELOAD=" not in Path(f"/proc/{the_feeder().pid}/environ").read_bytes()


FORKS_SUFFICE = {
    "the feeder of this process": ({}, True),
    "as many threads as workers": ({"SLUICE_THREADS": "2"}, True),
    "more threads than workers": ({"SLUICE_THREADS": "3"}, False),
    "a feeder that others may have workers for": ({"SLUICE_FEEDER_SOCKET": "/nowhere"}, False),
    "the feeder of a host's ranks": ({"LOCAL_WORLD_SIZE": "2", "SLUICE_SHARE_FEEDER": "on"}, False),
    "executors at once": ({"SLUICE_STEP_ASIDE": "off"}, False),
}


@pytest.mark.parametrize("case", FORKS_SUFFICE)
def test_forks_suffice_where_executors_would_add_no_cpu(fake_program, monkeypatch, case):
    environment, expected = FORKS_SUFFICE[case]
    for name, value in {"SLUICE_STEP_ASIDE": "on", **environment}.items():
        monkeypatch.setenv(name, value)
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    assert ("would add no CPU" in loader.explain()) is expected
    payback = loader._payback(Settings.from_environment(), loader._describe(Settings.from_environment()))
    assert (payback is not None and payback.forks_suffice) is expected


def test_forks_do_not_suffice_where_there_are_none(fake_program, monkeypatch):
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setattr("sluice.torch.can_fork", lambda: False)
    assert "would add no CPU" not in DataLoader(Numbers(), num_workers=2).explain()


def test_is_restarted_when_it_dies(program):
    batches = iter(DataLoader(Numbers(), batch_size=1, num_workers=1))
    next(batches)
    pid = the_feeder().pid
    os.kill(pid, signal.SIGKILL)
    assert len(list(batches)) == 36
    assert the_feeder().pid not in (None, pid)


BROKEN = {"ends at once": "/bin/false", "is not there": "/nowhere/sluice-feeder", "has no place for its socket": sys.executable}


@pytest.mark.parametrize("case", BROKEN)
def test_no_loop_waits_for_a_feeder_that_cannot_be_started(tmp_path, monkeypatch, caplog, case):
    laptop(tmp_path, monkeypatch, BROKEN[case])
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "100000")
    if case == "has no place for its socket":
        monkeypatch.setattr("sluice.feeder.embedded.folder_for_sockets", lambda name: Path("/proc"))
    for _ in range(2):
        assert indices_of(DataLoader(Numbers(), batch_size=4, num_workers=2))[-1] == [36]
    assert "does not come up" in caplog.text


def iterate_and_connect() -> None:
    next(iter(DataLoader(Numbers(), batch_size=4, num_workers=2)))
    connect()


def test_a_forked_process_leaves_no_folder(program, tmp_path):
    child = multiprocessing.get_context("fork").Process(target=iterate_and_connect)
    child.start()
    child.join(60)
    assert child.exitcode == 0 and not list(tmp_path.glob("sluice-*"))


MAIN_SCRIPT = """
import collections, sys
sys.path[:0] = {paths}
import torch
from sluice.torch import DataLoader
Pair = collections.namedtuple("Pair", "first second")
class Oops(Exception): pass
class Pairs(torch.utils.data.Dataset):
    def __len__(self): return 6
    def __getitem__(self, i):
        if i == 5: raise Oops("five")
        return Pair(i, torch.tensor(i))
def keep(samples): return samples
batches = iter(DataLoader(Pairs(), batch_size=1, num_workers=2, collate_fn=keep))
for _ in range(5):
    assert type(next(batches)[0]) is Pair
try:
    next(batches)
except Oops as error:
    assert "Traceback" in str(error)
    print("fine")
"""


def test_classes_of_the_script_itself_come_back_as_themselves(program, warm_python, tmp_path):
    (tmp_path / "script.py").write_text(MAIN_SCRIPT.format(paths=[str(TESTS.parent)]))
    _, out, errors = warm_python.run([tmp_path / "script.py"], cwd=tmp_path, imports=("sluice.torch",))
    assert out == "fine\n", errors


def test_directories_of_killed_processes_are_swept_away(program, tmp_path):
    dead, live, young = (tmp_path / f"sluice-{name}" for name in ("dead", "live", "young"))
    listeners = []
    for directory in (dead, live, young):
        directory.mkdir()
        listeners.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listeners[-1].bind(str(directory / "feeder.sock"))
        listeners[-1].listen()
    for directory in (dead, live):
        os.utime(directory, (1, 1))
    listeners[0].close(), listeners[2].close()
    connect()
    assert [directory.exists() for directory in (dead, live, young)] == [False, True, True]
    listeners[1].close()


SCRIPT = """
import os, sys
sys.path[:0] = {paths}
from sample_datasets import Numbers
from sluice.base.settings import Settings
from sluice.feeder.choice import shared_connection
from sluice.torch import DataLoader
connection = shared_connection(Settings.from_environment())
batches = iter(DataLoader(Numbers(), batch_size=4, num_workers=2)) if {has_executors} else None
if batches:
    next(batches)
print(connection._endpoint.pid, flush=True)
{ending}
"""


WAITING_SCRIPT = """
import os, sys
sys.path[:0] = {paths}
from sluice.base.settings import Settings
from sluice.feeder.choice import shared_connection
assert shared_connection(Settings.from_environment()).wait_connected(60)
child = os.posix_spawn("/bin/true", ["true"], dict())
found = []
try:
    while True:
        found.append(os.wait()[0] == child)
except ChildProcessError:
    print(found, flush=True)
"""


def test_a_script_that_waits_for_its_children_waits_for_no_feeder(program, warm_python, tmp_path):
    (tmp_path / "script.py").write_text(WAITING_SCRIPT.format(paths=[str(TESTS), str(TESTS.parent)]))
    _, out, errors = warm_python.run([tmp_path / "script.py"], cwd=tmp_path, imports=("sluice.torch",))
    assert out == "[True]\n", errors


@pytest.mark.parametrize("ending, has_executors", [("", True), ("raise SystemExit(3)", False), ("os._exit(0)", False), ("os.kill(os.getpid(), 9)", True)])
def test_dies_with_the_process_however_that_ends(program, warm_python, tmp_path, ending, has_executors):
    (tmp_path / "script.py").write_text(SCRIPT.format(paths=[str(TESTS), str(TESTS.parent)], ending=ending, has_executors=has_executors))
    _, out, _ = warm_python.run([tmp_path / "script.py"], cwd=tmp_path, imports=("sluice.torch",))
    pid = int(out)
    eventually(lambda: not alive(pid))


def test_a_feeder_that_does_not_come_up_leaves_the_work_to_torch(fake_program, monkeypatch, caplog):
    monkeypatch.setenv("FAKE_FEEDER_FAILS", "1")
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "8")
    assert indices_of(DataLoader(Numbers(), batch_size=4, num_workers=2))[-1] == [36]
    assert "using torch's own workers" in caplog.text and "does not come up" in caplog.text


def test_without_a_feeder_torch_does_the_work_and_the_log_says_what_to_do(caplog):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2)
    assert "there is no feeder" in loader.explain()
    for _ in range(2):
        batches = iter(loader)
        assert not isinstance(batches, FeederIterator)
        assert indices_of(batches)[-1] == [36]
    assert caplog.text.count("SLUICE_FEEDER_SOCKET") == 1 and "make wheel" in caplog.text
    state = loader.state_dict()
    assert (state["epoch"], state["begun"]) == (2, False)


def test_the_bundle_runs_through_its_own_loader(tmp_path):
    assert feeder_command(Settings(), tmp_path / "bundle") is None
    for name in ("lib/loader", "bin/sluice-feeder"):
        (tmp_path / "bundle" / name).parent.mkdir(parents=True)
        (tmp_path / "bundle" / name).touch()
    bundle = str(tmp_path / "bundle")
    assert feeder_command(Settings(), tmp_path / "bundle") == [
        f"{bundle}/lib/loader", "--library-path", f"{bundle}/lib", f"{bundle}/bin/sluice-feeder"]
    assert feeder_command(Settings(feeder_binary="/x"), tmp_path / "bundle") == ["/x"]
    assert node_cache_command(Settings(), tmp_path / "bundle") is None
    for folder in (tmp_path / "bundle/bin", tmp_path):
        (folder / "sluice-cache").touch()
    assert node_cache_command(Settings(), tmp_path / "bundle") == [
        f"{bundle}/lib/loader", "--library-path", f"{bundle}/lib", f"{bundle}/bin/sluice-cache"]
    assert node_cache_command(Settings(feeder_binary=str(tmp_path / "sluice-feeder"))) == [str(tmp_path / "sluice-cache")]
    assert node_cache_command(Settings(feeder_binary="/none/sluice-feeder"), tmp_path / "bundle") is None


def test_switched_off_means_torch(monkeypatch, program):
    monkeypatch.setenv("SLUICE", "off")
    assert not isinstance(iter(DataLoader(Numbers(), num_workers=1)), FeederIterator)
    assert not feeder._connections


def test_identity_comes_from_the_launcher(monkeypatch, make_fake):
    fake = make_fake()
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert shared_connection(Settings.from_environment()).wait_connected(60)
    assert {key: fake.ask()["hello"][key] for key in ("rank", "world_size", "pid")} == {"rank": 3, "world_size": 8, "pid": os.getpid()}
