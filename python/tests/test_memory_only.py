"""Whether a batch was made of memory only: each way in which a process reads is found."""

from __future__ import annotations

import mmap
import os
import socket
import subprocess
from pathlib import Path

import numpy
import pytest
import torch

# A process notices what it maps from then on for good, so each case has one of its own.
PROGRAM = """
import sys, torch
import test_memory_only as cases
from sluice.executor.memory_only import MemoryOnly, listen
torch.arange(1)
listen()
watch, folder = MemoryOnly(), sys.argv[2]
for _ in range(2):
    watch.begin()
    getattr(cases, sys.argv[1])(folder)
    print(watch.holds())
"""

kept = []


def computes(folder: str) -> None:
    kept.append(torch.stack([torch.arange(4) for _ in range(3)]))


def writes(folder: str) -> None:
    Path(folder, "written").write_text("1")


def maps_memory(folder: str) -> None:
    kept.append(mmap.mmap(-1, 4096))


def reads(folder: str) -> None:
    Path(folder, "file").read_bytes()


def keeps_a_file(folder: str) -> None:
    kept.append(os.open(Path(folder, "file"), os.O_RDONLY))


def asks_a_program(folder: str) -> None:
    subprocess.run(["/bin/cat", Path(folder, "file")], stdout=subprocess.DEVNULL, check=True)


def maps_a_file(folder: str) -> None:
    assert numpy.memmap(Path(folder, "file"), dtype=numpy.uint8, mode="r", shape=(4,))[0] == 1


def a_library_maps_a_file(folder: str) -> None:
    kept.append(torch.from_file(str(Path(folder, "file")), size=4, dtype=torch.uint8))


def connects(folder: str) -> None:
    with socket.socket() as asked:
        asked.connect_ex(("127.0.0.1", 9))


@pytest.mark.parametrize("case, expected", [
    (computes, [True, True]),
    (writes, [True, True]),
    (maps_memory, [True, True]),
    (reads, [False, False]),
    (keeps_a_file, [False, False]),
    (asks_a_program, [False, False]),
    (maps_a_file, [False, False]),
    (a_library_maps_a_file, [False, False]),
    (connects, [False, False]),
], ids=lambda value: value.__name__ if callable(value) else "")  # fmt: skip
def test_what_a_process_reads_is_found(warm_python, tmp_path, case, expected):
    (tmp_path / "file").write_bytes(bytes([1] * 4096))
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent)])
    status, told, errors = warm_python.run([tmp_path / "program.py", case.__name__, tmp_path], cwd=tmp_path, imports=("pytest",), PYTHONPATH=path)
    assert status == 0 and told.split() == [str(value) for value in expected], errors
