#!/bin/bash
# dlio.sh BUILD [ARGUMENTS]: `make bench-dlio`. See dlio/dlio_bench.py.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
PYTHONPATH=$ROOT/bench/dlio:$ROOT/bench/loaders:$ROOT/bench/data_plane:$ROOT/python exec "$SLUICE_CACHE/venv/bin/python" "$ROOT/bench/dlio/dlio_bench.py" "$@"
