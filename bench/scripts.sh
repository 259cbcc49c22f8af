#!/bin/bash
# scripts.sh BUILD [ARGUMENTS]: `make bench-scripts`. See scripts/scripts_bench.py.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
PYTHON=$SLUICE_CACHE/venv/bin/python
photographs=$("$PYTHON" "$ROOT/e2e/datasets/photographs.py" --count 4000)
PYTHONPATH=$ROOT/bench/data_plane:$ROOT/python/tests exec "$PYTHON" "$ROOT/bench/scripts/scripts_bench.py" "$1" "$photographs" "${@:2}"
