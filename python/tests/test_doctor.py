"""`sluice doctor` on damaged machines and environments: each damage is found, named, and has a way out."""

from __future__ import annotations

import errno
import http.server
import json
import os
import re
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY
from sluice.base import settings
from sluice.explain import doctor, examination, examination_of_feeder, examination_of_machine
from sluice.explain.examination import Check, Place
from test_run import PACKAGE, START, run

ROOT = PACKAGE.parent
INSTALLED = {"torch": "2.15.0+cpu", "torchvision": "0.29.2", "pillow": "13.0.0", "cloudpickle": "3.1.2", "numpy": "2.4.6"}


def place(root: Path = Path("/"), missing: str = "", added: dict[str, str] | None = None, **parts: Any) -> Place:
    """A machine where all is well, but for what is given; with packages `added`, and one `missing`."""
    versions = {name: version for name, version in {**INSTALLED, **(added or {})}.items() if name != missing}
    return Place(**{"environment": {}, "root": root, "python": (3, 11), "version_of": versions.get, "imported": lambda _: os,
                    "modules": frozenset(), **parts})  # fmt: skip


def cannot(error: Exception) -> Callable:
    def refuses(*_: Any) -> Any:
        raise error

    return refuses


def told(check: Check | list[Check]) -> list[tuple[str, bool]]:
    checks = check if isinstance(check, list) else [check]
    return [(f"{one.finding} | {one.way_out}", one.passed) for one in checks]


# Each: the check, the place, whether it passes, words of what it says.
DAMAGES: dict[str, tuple[Callable, Place, bool, str]] = {
    "an old Python": (examination.python, place(python=(3, 9)), False, "3.9.*use Python 3.10"),
    "no torch": (examination.torch, place(imported=cannot(ModuleNotFoundError("No module named 'torch'"))), False, "No module named 'torch'.*pip install torch"),
    "a torch whose libraries do not fit": (examination.torch, place(imported=cannot(OSError("libcudnn.so.9: cannot open"))), False, "OSError: libcudnn"),
    "an old torch": (examination.torch, place(added={"torch": "2.1.2+cu118"}), False, "2.1.2.*2.2 or newer"),
    "a torch from its sources": (examination.torch, place(added={"torch": "2.16.0a0+git12ab"}), True, "2.16.0a0"),
    "no cloudpickle": (examination.packages, place(missing="cloudpickle"), False, "pip install cloudpickle"),
    "no torchvision": (examination.packages, place(missing="torchvision"), True, "torchvision missing.*only data sets of images"),
    "Pillow's faster sibling": (examination.packages, place(added={"pillow-simd": "9.5.0"}), True, "rounds in its own way"),
    "a misspelt variable": (examination.names_of_settings, place(environment={"SLUICE_RANDOMNES": "torch"}), False, "do you mean SLUICE_RANDOMNESS"),
    "an unknown variable": (examination.names_of_settings, place(environment={"SLUICEGATE_PORT": "1"}), False, "SLUICEGATE_PORT"),
    "a value of no meaning": (examination.settings, place(environment={"SLUICE_THREADS": "two"}), False, "SLUICE_THREADS='two': use a number"),
    "switched off": (examination.settings, place(environment={"SLUICE": "off"}), True, "torch's.*unset SLUICE"),
    "a hook that did not run": (examination.attached, place(environment={"SLUICE_ATTACH": "1"}), False, "not run.*PYTHONPATH"),
    "a hook that did": (examination.attached, place(environment={"SLUICE_ATTACH": "1"}, modules=["sluice.attach"]), True, "are served"),
    "a hook that is switched off": (examination.attached, place(environment={"SLUICE_ATTACH": "1", "SLUICE": "0"}), True, "unset SLUICE"),
    "a hook that is neither on nor off": (examination.attached, place(environment={"SLUICE_ATTACH": "y"}), False, "use on or off"),
    "no more processes": (examination_of_machine.forks, place(fork=cannot(OSError(errno.EAGAIN, "Resource temporarily unavailable"))), False, "ulimit -u"),
    "a Python that does not fork": (examination_of_machine.forks, place(python=(3, 14), fork=lambda: os.posix_spawn("/bin/true", ["true"], {})), True, "set_start_method"),
    "half of the cache's settings": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_DIR": "/tmp"}), False, "set both"),
    "a cache of no size": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_DIR": "/tmp", "SLUICE_CACHE_BYTES": "5G"}), False, "use a number of bytes"),
    "a cache of another form": (
        examination_of_machine.cache, place(environment={"SLUICE_CACHE_DIR": "/tmp", "SLUICE_CACHE_BYTES": "5", "SLUICE_CACHE_FORM": "raw"}), False, "source or transcoded"),
    "a cache in a file": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_DIR": __file__ + "/cache", "SLUICE_CACHE_BYTES": "5"}), False, "cannot be written to"),
    "a cache larger than its disk": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_DIR": "/tmp/none", "SLUICE_CACHE_BYTES": str(1 << 60)}), True, "are free there"),
    "two caches": (
        examination_of_machine.cache, place(environment={"SLUICE_CACHE_SOCKET": "/tmp/none", "SLUICE_CACHE_BYTES": "5"}), False, "use one cache"),
    "a node's cache by a relative path": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_SOCKET": "cache:7472"}), False, "the path of sluice-cache's socket"),
    "a node's cache that does not run": (examination_of_machine.cache, place(environment={"SLUICE_CACHE_SOCKET": "/no/socket"}), False, "No such file.*sluice cache --socket /no/socket"),
    "a feeder of no kind": (examination_of_feeder.feeder, place(), False, "there is no feeder.*make wheel"),
    "a feeder that ends": (examination_of_feeder.feeder, place(environment={"SLUICE_FEEDER_BINARY": "/bin/false", "SLUICE_START_PATIENCE_SECONDS": "1"}), False, "/bin/false --help has to work"),
    "a feeder that is not there": (
        examination_of_feeder.feeder, place(environment={"SLUICE_FEEDER_SOCKET": "/no/socket", "SLUICE_START_PATIENCE_SECONDS": "0.2"}), False, "/no/socket.*kubectl logs"),
    "a feeder without settings": (examination_of_feeder.feeder, place(environment={"SLUICE_THREADS": "x"}), False, "mend the settings"),
    "no image library": (examination_of_feeder.image_library, place(), True, "not beside the feeder.*Pillow makes"),
    "no pod": (examination_of_feeder.data_workers, place(environment={"SLUICE_JOB": "vision"}), True, "not in a pod"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_found_and_has_a_way_out(damage, monkeypatch, tmp_path):
    monkeypatch.setattr("sluice.media.native_library._PACKAGE", tmp_path / "sluice")
    # Whatever tests before have chosen in this process.
    monkeypatch.setattr("multiprocessing.get_start_method", lambda allow_none=False: None)
    check, where, passes, words = DAMAGES[damage]
    said = told(check(where))
    assert all(passed for _, passed in said) is passes and any(re.search(words, text) for text, _ in said), said
    assert passes or any(not passed and not text.endswith("| ") for text, passed in said)


def test_a_machine_where_all_is_well_passes(tmp_path):
    root = tmp_path
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal:       8388608 kB\n")
    checks = [examination.python, examination.torch, examination.packages, examination.names_of_settings, examination.settings, examination.attached,
              examination_of_machine.memory, examination_of_machine.shared_memory, examination_of_machine.forks, examination_of_machine.cache]  # fmt: skip
    for check in checks:
        assert all(passed for _, passed in told(check(place(root)))), check


# Files below the root, the environment, whether there is enough, words.
MEMORIES = {
    "no limit": ({"sys/fs/cgroup/memory.max": "max\n"}, {}, True, "8192 MiB"),
    "a limit": ({"sys/fs/cgroup/memory.max": f"{3 << 30}\n"}, {}, True, "3072 MiB, by the cgroup's limit"),
    "the limit of a folder above": ({"proc/self/cgroup": "0::/pod/box\n", "sys/fs/cgroup/pod/memory.max": f"{512 << 20}"}, {}, False, "512 MiB.*SLUICE_ARENA_BYTES"),
    "cgroups of version 1": ({"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{256 << 20}"}, {}, False, "256 MiB"),
    "less for batches": ({"sys/fs/cgroup/memory.max": f"{512 << 20}"}, {"SLUICE_ARENA_BYTES": str(64 << 20)}, True, "512 MiB"),
    "a pod, whose feeder has its own": ({"sys/fs/cgroup/memory.max": f"{512 << 20}"}, {"SLUICE_FEEDER_SOCKET": "/run/x"}, True, "512 MiB"),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_memory_is_that_of_the_tightest_limit(tmp_path, name):
    files, environment, passes, words = MEMORIES[name]
    for path, text in {"proc/meminfo": "MemTotal: 8388608 kB\n", **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    ((said, passed),) = told(examination_of_machine.memory(place(tmp_path, environment=environment)))
    assert passed is passes and re.search(words, said), said


def test_a_quota_of_less_than_a_core_is_named(tmp_path):
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("25000 100000\n")
    ((said, passed),) = told(examination_of_machine.cpus(place(tmp_path)))
    assert passed and re.search(r"0\.25 of \d+ cores.*raise the container's CPU limit", said)


def test_memory_that_a_sandbox_or_a_limit_refuses(monkeypatch):
    monkeypatch.setattr(os, "memfd_create", cannot(OSError(errno.EPERM, "Operation not permitted")))
    ((said, passed),) = told(examination_of_machine.shared_memory(place()))
    assert not passed and "Operation not permitted" in said
    monkeypatch.undo()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    ((said, passed),) = told(examination_of_machine.shared_memory(place()))
    assert not passed and "ulimit -f" in said
    ((said, passed),) = told(examination_of_machine.open_files(place()))
    assert passed


PAGES = {
    "workers": ('sluice_feeder_remote_workers{job="a"} 3\n', True, "3 are connected"),
    "no workers": ("sluice_feeder_remote_workers 0\n", True, "kubectl sluice why vision -n team"),
    "workers of another version": ("sluice_feeder_remote_workers 0\nsluice_feeder_refused_workers_total 2\n", False, "2 connections.*restart"),
    "another exporter": ("otel_scope_info 1\n", True, "at none of its usual ports"),
}


@pytest.mark.parametrize("name", PAGES)
def test_data_workers_are_those_of_which_the_pods_feeder_tells(name):
    page, passes, words = PAGES[name]

    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Metrics) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = place(environment={"SLUICE_JOB": "vision", "SLUICE_NAMESPACE": "team", "SLUICE_FEEDER_SOCKET": "/run/x"})
        ((said, passed),) = told(examination_of_feeder.data_workers(where, range(server.server_port, server.server_port + 1)))
        server.shutdown()
    assert passed is passes and re.search(words, said), said


def test_rows_tell_what_is_well_what_is_missing_and_what_failed():
    rows = doctor.rendered([Check("a", True, "there"), Check("longer", True, "not there", "get it"), Check("b", False, "broken", "mend it")])
    assert rows == ("ok    a       there\nnote  longer  not there\n              get it\nFAIL  b       broken\n              mend it\n")


@pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)
def test_the_command_examines_its_own_process(tmp_path):
    where = {"cwd": tmp_path, "PYTHONPATH": f"{START}:{PACKAGE}", "SLUICE_FEEDER_BINARY": str(REAL_BINARY), "SLUICE_ATTACH": "1"}
    status, out, error = run(["-m", "sluice", "doctor", "-o", "json"], **where)
    checks = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 0, (out, error)
    assert "answers, 512 MiB" in checks["feeder"]["finding"] and checks["native images"]["finding"].endswith(".so")
    assert checks["attached"]["finding"] == "loaders of torch's class are served"
    status, out, _ = run(["-m", "sluice", "doctor"], **where, SLUICE_AHED="off")
    assert status == 1 and re.search("^FAIL  names of settings +unknown: SLUICE_AHED\n +SLUICE_AHED: do you mean SLUICE_AHEAD", out, re.MULTILINE)
    assert run(["-m", "sluice", "doctor", "me"], **where)[0] == 2


def test_every_variable_of_the_programs_is_known():
    files = [*PACKAGE.glob("sluice/**/*.py"), *ROOT.glob("worker-image/*/*.cc"), ROOT / "src/base/logging.cc", *ROOT.glob("operator/act/*.cc")]
    named = {name for file in files if not file.name.endswith("_test.cc") for name in re.findall(r'"(SLUICE(?:_[A-Z]+)*)[="]', file.read_text())}
    assert named - {"SLUICE_VERSION"} <= settings.VARIABLES, named - settings.VARIABLES
    documented = {name for name in settings.VARIABLES if name in (PACKAGE / "README.md").read_text() + (ROOT / "docs/user-guide.md").read_text()}
    by_operator = {"SLUICE_JOB", "SLUICE_NAMESPACE", "SLUICE_USER_PYTHONPATH", "SLUICE_CACHE_SERVICE_FILES", "SLUICE_CACHE_VOLUMES"}
    assert settings.VARIABLES - documented <= by_operator | {"SLUICE_BUILD", "SLUICE_CACHE", "SLUICE_LOG", "SLUICE_LOG_FORMAT"}
