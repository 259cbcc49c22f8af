#!/bin/bash
# try.sh BUILD: `make try`: python/sluice/try.py on the demo's photographs, with the feeder that was just built.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
. "$ROOT/toolchain/say.sh"
PYTHON=$SLUICE_CACHE/venv/bin/python
folder=$("$PYTHON" "$ROOT/e2e/datasets/photographs.py" --count 4000)
OMP_NUM_THREADS=1 PYTHONPATH=$ROOT/python SLUICE_FEEDER_BINARY=$(realpath "$1")/worker-image/sluice-feeder exec "$PYTHON" -m sluice.try "$folder"
