"""store.py finds the benches' store beside it in its pod, and here where the benches have it. Scripts run as those of the client's tests do."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "bench/data_plane"), str(ROOT / "python/tests")]

from warm_python import WarmPython  # noqa: E402


@pytest.fixture(scope="module")
def warm_python():
    python = WarmPython()
    yield python
    python.stop()
