"""Fixtures: feeders (the fake one, and the real one where SLUICE_FEEDER_BINARY names it), folders of JPEGs, a clean slate."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import huge_pages  # noqa: E402
from fake_feeder import FakeFeeder  # noqa: E402
from sluice.base import notices  # noqa: E402
from sluice.feeder import programs  # noqa: E402
from sluice.feeder import choice as feeder_module  # noqa: E402
from sluice.stores import object_reader  # noqa: E402
from warm_python import WarmPython  # noqa: E402

REAL_BINARY = os.environ.get("SLUICE_FEEDER_BINARY")
NO_REAL_FEEDER = "the real feeder is not tested: SLUICE_FEEDER_BINARY does not name its binary"


def pytest_collection_finish() -> None:
    """What is imported by now stays. A collection in a fork, of which most tests have several, would write to all of it, and so copy the memory."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def cheap_forks():
    """Anew for each module: what this process writes to beside a fork goes back to small pages."""
    huge_pages.gather()


def pytest_sessionfinish() -> None:
    """Else libraries report what is frozen as leaked, hundreds of lines below the summary."""
    gc.unfreeze()


@pytest.fixture(autouse=True)
def clean_slate(monkeypatch):
    """Each test begins without a feeder, connections or settings, and ends without tensors that keep slots and lazy images."""
    for name in [name for name in os.environ if name.startswith("SLUICE")]:
        monkeypatch.delenv(name)
    # An installation has one, which tests without a feeder must not find.
    monkeypatch.setattr(programs, "_BUNDLE", Path("/no bundle"))
    # No test may depend on luck: a loop that waits in vain is stopped by its deadline, not by falling back in silence.
    monkeypatch.setenv("SLUICE_START_PATIENCE_SECONDS", "60")
    monkeypatch.setenv("SLUICE_LOSS_PATIENCE_SECONDS", "60")
    # Their loops are so short that no executor would be worth its start; test_stepping_aside.py tests when one is.
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "off")
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    notices.forget()
    torch.manual_seed(0)
    yield
    feeder_module.disconnect_all()
    if "sluice.media.lazy_images" in sys.modules:  # The fake feeder computes in this process, as executors do.
        sys.modules["sluice.media.lazy_images"].remove()
    if "sluice.media.native_audio" in sys.modules:
        sys.modules["sluice.media.native_audio"].remove()


@pytest.fixture
def store_settings(monkeypatch, tmp_path):
    """A cache of indexes of its own, no credentials but a test's, and pauses of this process that take no time."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(object_reader, "_reader", object_reader.ObjectReader(sleep=lambda seconds: None))


@pytest.fixture
def native_libraries(clean_slate, monkeypatch):
    """Those beside the real feeder are found. clean_slate puts back what they have replaced."""
    monkeypatch.setenv("SLUICE_FEEDER_BINARY", REAL_BINARY or "")


@pytest.fixture
def one_torch_thread():
    """As in an executor. More of them wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def free_address() -> str:
    """A port of this machine without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


class RealFeeder:
    """The feeder's own program, as a sidecar would run it."""

    def __init__(self, directory: Path, threads: int = 2, arena_bytes: int = 64 << 20, workers: str = "", metrics: str = "none", imports: str = "") -> None:
        """`imports`: a folder whose sitecustomize.py its interpreters run."""
        self.path = str(directory / "real.sock")
        command = [REAL_BINARY, "--socket", self.path, "--threads", str(threads), "--arena-bytes", str(arena_bytes)]
        command += ["--metrics-address", metrics, "--insecure", "--python-path", str(Path(__file__).resolve().parent.parent)]
        command += ["--workers", workers] if workers else []
        self.log = open(directory / "real.log", "w+b")
        path = os.pathsep.join(filter(None, [imports, os.environ.get("PYTHONPATH")]))
        # Its executors find the native libraries by it, whichever test starts the feeder.
        environment = {**os.environ, "PYTHONPATH": path, "SLUICE_FEEDER_BINARY": REAL_BINARY or ""}
        self._process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.log.close()


class RealWorker:
    """A data worker's own program, of one thread. Feeders reach it at `address`."""

    def __init__(self) -> None:
        self.address = free_address()
        command = [Path(REAL_BINARY).with_name("sluice-worker"), "--listen", self.address, "--insecure", "--threads", "1", "--drain-seconds", "1"]
        self._process = subprocess.Popen([*command, "--python-path", str(Path(__file__).resolve().parent.parent)])

    @property
    def pid(self) -> int:
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture
def make_fake(tmp_path, monkeypatch):
    """make_fake(**faults): a fake feeder that the environment points to."""
    made = []

    def make(**faults):
        fake = FakeFeeder(tmp_path, **faults)
        made.append(fake)
        monkeypatch.setenv("SLUICE_FEEDER_SOCKET", fake.path)
        return fake

    yield make
    feeder_module.disconnect_all()
    for fake in made:
        fake.stop()


@pytest.fixture(scope="session")
def shared_real_feeder(tmp_path_factory):
    """One for all tests: whatever a loader does, the next one must find a feeder that works."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    feeder = RealFeeder(tmp_path_factory.mktemp("feeder"), imports=str(Path(__file__).with_name("warm_executors")))
    yield feeder
    feeder.stop()


@pytest.fixture
def real_feeder(shared_real_feeder, monkeypatch):
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", shared_real_feeder.path)
    return shared_real_feeder


@pytest.fixture
def data_worker(tmp_path, monkeypatch):
    """A data worker, the only one of a feeder with one thread, to which the environment points."""
    if REAL_BINARY is None:
        pytest.skip(NO_REAL_FEEDER)
    worker = RealWorker()
    feeder = RealFeeder(tmp_path, threads=1, workers=worker.address)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", feeder.path)
    yield worker
    feeder_module.disconnect_all()
    feeder.stop()
    worker.stop()


@pytest.fixture(scope="session")
def warm_python():
    """Runs programs whose subject is not how a process starts."""
    python = WarmPython()
    yield python
    python.stop()


@pytest.fixture(params=["fake", "real"])
def any_feeder(request):
    """Either feeder: whatever a test says of it holds for both."""
    return request.getfixturevalue("make_fake")() if request.param == "fake" else request.getfixturevalue("real_feeder")


@pytest.fixture(scope="session")
def image_root(tmp_path_factory) -> Path:
    """Two classes of JPEGs, 23 files of several sizes, one of them gray."""
    from PIL import Image

    root = tmp_path_factory.mktemp("images")
    generator = torch.Generator().manual_seed(7)
    for number in range(23):
        folder = root / ("cat" if number % 2 else "dog")
        folder.mkdir(exist_ok=True)
        size = (40 + 9 * (number % 5), 48 + 7 * (number % 4))
        noise = torch.randint(0, 256, (6, 5, 3), dtype=torch.uint8, generator=generator).numpy()
        image = Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)
        if number == 11:
            image = image.convert("L")
        image.save(folder / f"{number:02d}.{'JPG' if number == 3 else 'jpeg' if number == 5 else 'jpg'}", quality=90)
    return root


def eventually(condition, seconds: float = 30.0):
    """Waits until condition() is true and returns its value; fails the test after the deadline."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {condition}")
        time.sleep(0.005)
