"""Scripts as people write them (python/examples), unmodified under `sluice run`: every loss is the one that plain PyTorch gives, bit for bit.

All run under the command itself where processes are killed, and the one that a launcher starts. The others are forks of a warm Python, attached as
the command attaches a process, and share a feeder: their imports and those of their executors would be most of what the tests cost.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import NO_REAL_FEEDER, REAL_BINARY, eventually
from script_data import arguments_of, write_shards, write_text, write_words
from test_run import PACKAGE, run
from warm_python import WarmPython

EXAMPLES = PACKAGE / "examples"
pytestmark = pytest.mark.skipif(REAL_BINARY is None, reason=NO_REAL_FEEDER)


@dataclass(frozen=True)
class Script:
    """`losses`: how many lines tell of one at least. `told`: of each kind of loader, how the report's line begins and what it says of who made the
    batches. `imports`: what takes long of its imports beside torch, and may not be installed. `options`: behind the script's arguments."""

    losses: int
    told: dict[str, str]
    imports: tuple[str, ...] = ("torchvision",)
    ranks: int = 0  # That torchrun starts.
    options: tuple[str, ...] = ()


SERVED = ": served"
TRAINER = ("datasets", "transformers.trainer")
SCRIPTS = {
    "plain_loop": Script(8, {"DataLoader of Subset, batch_size 4": SERVED, "DataLoader of Subset, batch_size 8": SERVED}),
    "lightning_images": Script(14, {"DataLoader of ImageFolder, batch_size 4": SERVED, "DataLoader of ImageFolder, batch_size 8": SERVED}, ("torchvision", "pytorch_lightning")),
    "lightning_datamodule": Script(18, {"DataLoader of Subset, batch_size 8, num_workers 2": SERVED, "DataLoader of Subset, batch_size 15": SERVED}, ("pytorch_lightning",)),
    "accelerate_images": Script(8, {"DataLoader of Pets": SERVED}, ("torchvision", "accelerate")),
    "trainer_images": Script(10, {"DataLoader": SERVED}, ("torchvision", *TRAINER)),
    "trainer_text": Script(12, {"DataLoader": SERVED}, TRAINER),
    "loader_factory": Script(10, {"DataLoader of Pictures": SERVED}),
    "loader_factory, one iterator": Script(10, {"OneIteratorLoader of Pictures": SERVED}, options=("--one-iterator",)),
    "reference_recipe": Script(12, {"DataLoader of ImageFolder": SERVED}),
    "speech_commands": Script(12, {"DataLoader of Words": SERVED}, ()),
    "webdataset_shards": Script(8, {"DataLoader of WebDataset": SERVED}, ("torchvision", "webdataset")),
    "streamed_text": Script(8, {"DataLoader of IterableDataset": SERVED}, ("datasets",)),
    "distributed": Script(16, {"DataLoader of ImageFolder": SERVED}, ranks=2),
    "length_buckets": Script(8, {"DataLoader of Sentences": SERVED}, ()),
}


@pytest.fixture(scope="session")
def data(tmp_path_factory, image_root) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "images").symlink_to(image_root)
    write_words(folder / "words")
    write_shards(folder / "shards", image_root)
    write_text(folder / "text")
    return folder


def variables(folder: Path, *, sluice: bool) -> dict[str, str]:
    """Executors of the feeder from the first batch on, and torch's draws; nothing is fetched from anywhere."""
    return {"PYTHONPATH": str(PACKAGE), "SLUICE_FEEDER_BINARY": str(REAL_BINARY), "SLUICE_RANDOMNESS": "torch", "SLUICE_REPORT": "1", "SLUICE_STEP_ASIDE": "off",
            "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "huggingface"), "OMP_NUM_THREADS": "1", "SLUICE": "on" if sluice else "off"}  # fmt: skip


def losses(out: str) -> list[str]:
    return [line for line in out.splitlines() if "loss " in line or "evaluation" in line or "accuracy" in line]


def program_of(name: str, data: Path) -> list[str]:
    script = SCRIPTS[name]
    for package in (module.partition(".")[0] for module in script.imports):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    file = name.partition(",")[0]
    return [str(EXAMPLES / f"{file}.py"), *arguments_of(file, data), *script.options]


def of_fork(python: WarmPython, name: str, data: Path, cwd: Path, *, sluice: bool, **more: str) -> tuple[str, str]:
    """The script's output and errors. It is a fork of `python`."""
    imports = ("torch._dynamo", *SCRIPTS[name].imports)  # torch's optimizers import its compiler when they are first used.
    settings = {**variables(cwd, sluice=sluice), **more}
    status, out, errors = python.run(program_of(name, data), cwd=cwd, imports=imports, attached=sluice, ranks=SCRIPTS[name].ranks, **settings)
    assert status == 0, errors
    return out, errors


@functools.cache
def losses_by_torch(python: WarmPython, name: str, data: Path) -> list[str]:
    folder = data / f"by torch, {name}"
    folder.mkdir()
    out, _ = of_fork(python, name, data, folder, sluice=False)
    assert len(losses(out)) >= SCRIPTS[name].losses
    return losses(out)


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses_are_those_of_plain_pytorch(warm_python, shared_real_feeder, name, data, tmp_path):
    script = SCRIPTS[name]
    if script.ranks:
        torchrun = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={script.ranks}"]
        status, out, errors = run(["-m", "sluice", "run", *torchrun, *program_of(name, data)], cwd=tmp_path, **variables(tmp_path, sluice=True))
        assert status == 0, errors
    else:
        out, errors = of_fork(warm_python, name, data, tmp_path, sluice=True, SLUICE_FEEDER_SOCKET=shared_real_feeder.path)
    assert losses(out) == losses_by_torch(warm_python, name, data)
    told = [line for line in errors.splitlines() if line.startswith("sluice: ")]
    for loader, who in script.told.items():
        assert any(loader in line and who in line for line in told), errors


# The word of a process's command line that tells what it is.
EXECUTOR, FEEDER = "sluice.executor", "sluice-feeder"
MOST_KILLS = 3


def with_kills(program: list, in_turn: tuple[str, ...], *, cwd: Path, **more: str) -> tuple[int, str, str, list[str]]:
    """As `run`, of a program under Sluice. Meanwhile one of its processes is killed whenever the losses have gone on. Returns also the victims'
    names. No process is left behind."""
    mark = f"TEST_OF_SCRIPTS={cwd}"
    names = {**os.environ, **more, **dict([mark.split("=", 1)]), "PYTHONUNBUFFERED": "1"}
    out, victims, told = cwd / "out", [], 0

    def strike() -> bool:
        """Whether the program has ended."""
        nonlocal told
        seen = len(losses(out.read_text()))
        if seen > told and len(victims) < MOST_KILLS and (victim := find_victim()):
            told = seen
            with contextlib.suppress(ProcessLookupError):  # It has just ended by itself.
                os.kill(victim, signal.SIGKILL)
                victims.append(in_turn[len(victims) % len(in_turn)])
        return process.poll() is not None

    def find_victim() -> int | None:
        wanted = in_turn[len(victims) % len(in_turn)]
        return next((pid for pid in reversed(marked()) if wanted in of_process(pid, "cmdline")), None)

    def marked() -> list[int]:
        """The program's processes, the oldest first: the feeder is no descendant of it."""
        return [pid for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc")))) if mark in of_process(pid, "environ")]

    with out.open("w") as lines, (cwd / "errors").open("w") as errors, subprocess.Popen(
        [sys.executable, "-m", "sluice", "run", *program], cwd=cwd, env={name: value for name, value in names.items() if value}, stdout=lines, stderr=errors
    ) as process:
        try:
            eventually(strike, seconds=300)
        finally:
            process.kill()
    eventually(lambda: not marked())
    return process.returncode, out.read_text(), (cwd / "errors").read_text(), victims


def of_process(pid: int, file: str) -> list[str]:
    try:
        return [Path(word).name if file == "cmdline" else word for word in Path(f"/proc/{pid}/{file}").read_text(errors="replace").split("\0")]
    except OSError:  # It has ended, or is another user's.
        return []


@pytest.mark.parametrize("name", ["plain_loop", "speech_commands", "lightning_images", "trainer_images"])
def test_losses_are_the_same_while_executors_and_the_feeder_are_killed(warm_python, name, data, tmp_path):
    status, out, errors, victims = with_kills(program_of(name, data), (EXECUTOR, FEEDER), cwd=tmp_path, **variables(tmp_path, sluice=True))
    assert status == 0, errors
    assert losses(out) == losses_by_torch(warm_python, name, data)
    assert victims[:2] == [EXECUTOR, FEEDER], victims


@pytest.mark.parametrize("name", ["speech_commands"])
def test_losses_are_the_same_with_any_number_of_executors(warm_python, name, data, tmp_path):
    """Where each sample has a seed of its own, as without SLUICE_RANDOMNESS."""
    seen = {}
    for executors in (0, 1, 4, 8):
        number = {"SLUICE_THREADS": str(executors)} if executors > 0 else {"SLUICE_STEP_ASIDE": "on"}
        out, _ = of_fork(warm_python, name, data, tmp_path, sluice=True, SLUICE_RANDOMNESS="", **number)
        seen[executors] = losses(out)
    assert len(seen[0]) >= SCRIPTS[name].losses and list(seen.values()) == 4 * [seen[0]]


def until_killed(folder: Path, data: Path, *, after: str) -> list[str]:
    """The lines of the script, whose process is killed without warning when one begins with `after`, with those that it wrote meanwhile."""
    environment = {name: value for name, value in {**os.environ, **variables(folder, sluice=True)}.items() if value}
    command = [sys.executable, "-m", "sluice", "run", EXAMPLES / "resumed.py", data / "images", folder / "checkpoint.pt"]
    lines = []
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(after):
                process.send_signal(signal.SIGKILL)
    return lines


def test_a_script_that_was_killed_goes_on_from_its_checkpoint(warm_python, data, tmp_path):
    (tmp_path / "torch").mkdir()
    program = [str(EXAMPLES / "resumed.py"), str(data / "images")]
    by_torch = {"imports": ("torch._dynamo", "torchvision"), **variables(tmp_path, sluice=False)}
    status, expected, errors = warm_python.run([*program, "torch/checkpoint.pt"], cwd=tmp_path, **by_torch)
    assert status == 0, errors
    before = until_killed(tmp_path, data, after="epoch 1 step 2")
    status, after, errors, victims = with_kills([*program, "checkpoint.pt"], (FEEDER,), cwd=tmp_path, **variables(tmp_path, sluice=True))
    assert status == 0 and victims, errors
    steps = {line.partition(" loss ")[0]: line for line in before + after.splitlines()}
    assert len(before) < len(expected.splitlines()) and not after.startswith("epoch 0 ")  # It may have come further before it was killed.
    assert list(steps.values()) == expected.splitlines() and all(steps[line.partition(" loss ")[0]] == line for line in before)
