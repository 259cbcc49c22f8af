"""The tests find what the measurements of the data plane share, as bench/loaders.sh has it."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data_plane"))
