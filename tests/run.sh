#!/bin/bash
# Everything `make test` does, from a bare Debian 12 machine on. Options: see tests/run.py --help.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
toolchain/install.sh build sanitizers cluster
toolchain/python.sh
exec /usr/bin/python3 tests/run.py "$@"
