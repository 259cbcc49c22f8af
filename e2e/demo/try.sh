#!/bin/bash
# try.sh [BUILD]: `make try`. See try.py.
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
. "$HERE/../../toolchain/say.sh"
exec /usr/bin/python3 "$HERE/try.py" "${1:-$HERE/../../build}" "$SLUICE_CACHE/venv/bin/python"
