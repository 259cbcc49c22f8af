"""The tests find what the comparison of loaders shares with this one, as bench/dlio.sh has it."""

import pathlib
import sys

for folder in ("loaders", "data_plane"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / folder))
