#!/bin/bash
# loaders.sh BUILD [ARGUMENTS]: `make bench-loaders`. See loaders/loaders_bench.py.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
. "$ROOT/toolchain/say.sh"
PYTHON=$SLUICE_CACHE/venv/bin/python
photographs=$("$PYTHON" "$ROOT/e2e/datasets/photographs.py" --count 4000)
text=$("$PYTHON" "$ROOT/e2e/datasets/text.py")
PYTHONPATH=$ROOT/bench/loaders:$ROOT/bench/data_plane:$ROOT/python exec "$PYTHON" "$ROOT/bench/loaders/loaders_bench.py" "$1" "$photographs" "$text" "${@:2}"
