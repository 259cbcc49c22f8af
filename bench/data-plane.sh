#!/bin/bash
# data-plane.sh BUILD: `make bench-data-plane`. See data_plane/data_plane_bench.py.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
. "$ROOT/toolchain/say.sh"
PYTHON=$SLUICE_CACHE/venv/bin/python
folder=$("$PYTHON" "$ROOT/e2e/datasets/photographs.py" --count 4000)
speech=$("$PYTHON" "$ROOT/e2e/datasets/speech.py" --count 1200)
OMP_NUM_THREADS=1 PYTHONPATH=$ROOT/python exec "$PYTHON" "$ROOT/bench/data_plane/data_plane_bench.py" "$1" "$folder" "$speech"
