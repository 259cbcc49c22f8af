"""store.py finds the benches' store beside it in its pod, and here where the benches have it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench/data_plane"))
