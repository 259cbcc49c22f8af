"""Programs that run unedited: a process under `sluice run` or SLUICE_ATTACH=1 is what it is under plain Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REAL_BINARY

PACKAGE = Path(__file__).resolve().parent.parent
START = PACKAGE / "sluice" / "start"


def run(arguments: list, *, cwd: Path, **variables: str) -> tuple[int, str, str]:
    """A process of Python with these arguments. A variable that is "" is not set. Interrupts end it, also where a shell has put
    the tests into the background and they ignore them."""
    env = {name: value for name, value in {**os.environ, **variables}.items() if value}
    ran = subprocess.run([sys.executable, *map(str, arguments)], cwd=cwd, env=env, capture_output=True, text=True, timeout=300,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip
    return ran.returncode, ran.stdout, ran.stderr


def with_and_without(arguments: list, cwd: Path, **variables: str) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    """The same program under plain Python and under Sluice."""
    path = f"{variables.pop('PYTHONPATH', '')}"
    plain = run(arguments, cwd=cwd, PYTHONPATH=path, **variables)
    return plain, run(["-m", "sluice", *arguments], cwd=cwd, PYTHONPATH=os.pathsep.join(filter(None, [path, str(PACKAGE)])), **variables)


KEPT = """import torch, sluice.torch
loader = sluice.torch.DataLoader(torch.utils.data.TensorDataset(torch.arange(8)), num_workers=1, persistent_workers=True)
batches = iter(loader)
next(batches)
"""


@pytest.mark.skipif(REAL_BINARY is None, reason="SLUICE_FEEDER_BINARY is not set")
def test_a_process_ends_without_a_word_while_it_has_an_iterator(tmp_path):
    (tmp_path / "train.py").write_text(KEPT)
    assert run(["train.py"], cwd=tmp_path, PYTHONPATH=str(PACKAGE), SLUICE_FEEDER_BINARY=str(REAL_BINARY)) == (0, "", "")


KEPT_FORKS = """import torch.utils.data, sluice.torch
def prepares(worker_id): torch.utils.data.get_worker_info().dataset.append(worker_id)
loader = sluice.torch.DataLoader([1, 2, 3, 4], num_workers=2, persistent_workers=True, worker_init_fn=prepares)
assert len(list(loader)) == 4
"""


@pytest.mark.skipif(REAL_BINARY is None, reason="SLUICE_FEEDER_BINARY is not set")
def test_a_process_ends_without_a_word_while_it_has_forks(tmp_path):
    """Of what Python takes apart then, torch's queues find a part missing."""
    (tmp_path / "train.py").write_text(KEPT_FORKS)
    status, _, errors = run(["train.py"], cwd=tmp_path, PYTHONPATH=str(PACKAGE), SLUICE_FEEDER_BINARY=str(REAL_BINARY), SLUICE_STEP_ASIDE="on")
    assert status == 0 and "prepares may do more" in errors and errors.count("\n") == 1, errors


TELLS = """import sys
print(__name__, __file__, sys.argv, sys.path[0], sys.flags.dev_mode, type(sys.modules['__main__']), flush=True)
"""
# Each: files, arguments, the exit status.
PROCESSES: dict[str, tuple[dict[str, str], list[str], int]] = {
    "a script and its arguments": ({"train.py": TELLS}, ["train.py", "--lr", "1", "-m", "--"], 0),
    "a script behind two dashes": ({"train.py": TELLS}, ["--", "train.py", "--"], 0),
    "the word run": ({"train.py": TELLS}, ["run", "--", "train.py"], 0),
    "a script in a folder": ({"code/train.py": TELLS + "import beside", "code/beside.py": ""}, ["code/train.py"], 0),
    "a module": ({"package/train.py": TELLS, "package/__init__.py": ""}, ["-m", "package.train", "x"], 0),
    "a folder with __main__": ({"code/__main__.py": TELLS}, ["code"], 0),
    "a statement": ({}, ["-c", "import sys; print(sys.argv, __name__)", "x"], 0),
    "an exit status": ({"train.py": TELLS + "sys.exit(3)"}, ["train.py"], 3),
    "a message at exit": ({"train.py": "raise SystemExit('no data')"}, ["train.py"], 1),
    "an exception": ({"train.py": "def f():\n    return 1 / 0\nf()"}, ["train.py"], 1),
    "a syntax error": ({"train.py": "def"}, ["train.py"], 1),
    "no such script": ({}, ["missing.py"], 2),
    "a signal": ({"train.py": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"}, ["train.py"], -15),
    "an interrupt": ({"train.py": "import os, signal; os.kill(os.getpid(), signal.SIGINT)"}, ["train.py"], -2),
    "a fork": ({"train.py": "import os, sys\nif os.fork() == 0:\n    sys.exit(4)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))"}, ["train.py"], 0),
}


@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_is_as_under_python(name, tmp_path):
    files, arguments, status = PROCESSES[name]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    program = arguments[arguments.index("--") + 1:] if arguments[0] in ("run", "--") else arguments
    path = os.pathsep.join([str(START), str(PACKAGE)])
    expected = run(program, cwd=tmp_path, PYTHONPATH=path)  # Named there too: it is the one difference in sys.path.
    assert run(["-m", "sluice", *arguments], cwd=tmp_path, PYTHONPATH=str(PACKAGE)) == expected
    assert expected[0] == status


def test_a_command_of_the_path_runs_attached(tmp_path):
    command = tmp_path / "bin" / "launch"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import sys; print(sys.argv, \"sluice.attach\" in sys.modules)' \"$@\"\n")
    command.chmod(0o755)
    status, out, _ = run(["-m", "sluice", "launch", "x"], cwd=tmp_path, PYTHONPATH=str(PACKAGE), PATH=f"{command.parent}:{os.environ['PATH']}")
    assert (status, out) == (0, "['-c', 'x'] True\n")


def test_the_options_of_python_are_kept(tmp_path):
    assert run(["-X", "dev", "-m", "sluice", "-c", "import sys; print(sys.flags.dev_mode)"], cwd=tmp_path, PYTHONPATH=str(PACKAGE))[1] == "True\n"


def test_usage_without_a_program(tmp_path):
    assert run(["-m", "sluice"], cwd=tmp_path, PYTHONPATH=str(PACKAGE))[0] == 2
    status, out, _ = run(["-m", "sluice", "--help"], cwd=tmp_path, PYTHONPATH=str(PACKAGE))
    assert status == 0 and "sluice run" in out


ASKS = "import sys; print('sluice.attach' in sys.modules, getattr(sys.modules.get('sitecustomize'), 'MINE', None), 'torch' in sys.modules)"


@pytest.mark.parametrize("variables, expected", [
    ({"SLUICE_ATTACH": "1"}, "True mine False"),
    ({"SLUICE_ATTACH": "on", "SLUICE": "off"}, "False mine False"),
    ({"SLUICE_ATTACH": "off"}, "False mine False"),
    ({}, "False mine False"),
])  # fmt: skip
def test_the_users_own_sitecustomize_works(tmp_path, variables, expected):
    (tmp_path / "sitecustomize.py").write_text("import sys\nMINE = 'mine'\nassert sys.modules[__name__].MINE and __spec__.origin == __file__")
    path = os.pathsep.join([str(START), str(PACKAGE), str(tmp_path)])
    assert run(["-c", ASKS], cwd=tmp_path, PYTHONPATH=path, **variables) == (0, expected + "\n", "")


def test_two_installations_run_the_users_own_once(tmp_path):
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "sitecustomize.py").write_text((START / "sitecustomize.py").read_text())
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    path = os.pathsep.join(map(str, [START, tmp_path / "bundle", PACKAGE, tmp_path]))
    assert run(["-c", "print(1)"], cwd=tmp_path, PYTHONPATH=path, SLUICE_ATTACH="1") == (0, "mine\n1\n", "")


def test_a_sitecustomize_that_fails_does_so_as_under_python(tmp_path):
    for fault in ("1 / 0", "import nothing", "import sys; sys.exit(7)"):
        (tmp_path / "sitecustomize.py").write_text(fault)
        expected = run(["-c", "print(1)"], cwd=tmp_path, PYTHONPATH=str(tmp_path))
        ran = run(["-c", "print(1)"], cwd=tmp_path, PYTHONPATH=f"{START}:{PACKAGE}:{tmp_path}", SLUICE_ATTACH="1")
        assert ran[:2] == expected[:2] and ran[2].splitlines()[-1] == expected[2].splitlines()[-1]


def test_a_process_without_the_package_runs(tmp_path):
    status, out, error = run(["-c", "print(1)"], cwd=tmp_path, PYTHONPATH=str(START), SLUICE_ATTACH="1")
    assert (status, out) == (0, "1\n") and error.startswith("sluice: not attached: ModuleNotFoundError")


def test_torchs_module_is_as_it_was(tmp_path):
    asks = ("import inspect, torch.utils.data.dataloader as m; print(type(m.__loader__).__name__, sorted(vars(m.__loader__)), m.__spec__.loader is m.__loader__,"
            "hasattr(m.DataLoader._get_iterator, 'attached_by_sluice'), inspect.getsource(m.DataLoader._get_iterator).split()[1])")
    status, out, error = run(["-c", asks], cwd=tmp_path, PYTHONPATH=f"{START}:{PACKAGE}", SLUICE_ATTACH="1")
    assert status == 0, error
    assert out == "SourceFileLoader ['name', 'path'] True True _get_iterator(self)\n"


def test_a_torch_of_another_kind_is_left_alone(tmp_path):
    for folder in ("torch", "torch/utils", "torch/utils/data"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "torch/utils/data/dataloader.py").write_text("class DataLoader: pass")
    (tmp_path / "train.py").write_text("from torch.utils.data.dataloader import DataLoader\nprint(vars(DataLoader).keys() >= {'_get_iterator'})")
    assert run(["-m", "sluice", "train.py"], cwd=tmp_path, PYTHONPATH=str(PACKAGE)) == (
        0, "False\n", "sluice: not attached: this torch makes its iterators in another way\n")  # fmt: skip


TRAINS = """
import multiprocessing, os, sys
import torch
from torch.utils.data import DataLoader, TensorDataset, get_worker_info

class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 10
    def __getitem__(self, index):
        return index * index

def train(rank):
    torch.manual_seed(rank)
    print(rank, [batch.tolist() for batch in DataLoader(Squares(), batch_size=4, shuffle=True, num_workers=2)], flush=True)

if __name__ == "__main__":
    train(0)
    child = multiprocessing.get_context("spawn").Process(target=train, args=(1,))
    child.start()
    child.join()
    if os.fork() == 0:
        train(2)
        sys.exit(5)
    print(os.waitstatus_to_exitcode(os.wait()[1]), child.exitcode)
    sys.exit(3)
"""


def test_children_of_a_program_are_attached(tmp_path, make_fake):
    """Spawned and forked ones, of a script whose data set is defined in itself."""
    make_fake()
    (tmp_path / "train.py").write_text(TRAINS)
    expected, ran = with_and_without(["train.py"], tmp_path, SLUICE_REPORT="1")
    assert ran[:2] == expected[:2] and expected[0] == 3 and "sluice:" not in expected[2]
    told = [line for line in ran[2].splitlines() if line.startswith("sluice: DataLoader of Squares")]
    assert len(told) == 3 and all("served in Python" in line for line in told) and "no feeder can run" not in ran[2], ran[2]


BUNDLE = Path(REAL_BINARY).parent.parent / "bundle" / "python" if REAL_BINARY else Path()
COMPILED = BUNDLE / "__pycache__" / f"sitecustomize.{sys.implementation.cache_tag}.pyc"


@pytest.mark.skipif(not COMPILED.exists(), reason="the bundle was built on a machine without this Python")
def test_the_bundles_modules_are_not_compiled_anew_wherever_it_is_installed(tmp_path):
    for file in BUNDLE.rglob("*"):
        if file.is_file():
            copied = tmp_path / file.relative_to(BUNDLE)
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(file.read_bytes())
    status, out, words = run(["-v", "-c", "import sluice.loader.stream; print(sluice.loader.stream.Stream.close.__code__.co_filename)"], cwd=tmp_path,
                             PYTHONPATH=str(tmp_path))  # fmt: skip
    modules = [line for line in words.splitlines() if line.startswith(f"# code object from '{tmp_path}")]
    assert status == 0 and out == f"{tmp_path}/sluice/loader/stream.py\n"
    assert len(modules) > 20 and all("__pycache__" in line for line in modules)
