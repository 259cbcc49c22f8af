#!/bin/bash
# demo.sh: `make demo`. A bare Debian 12 may lack even Python; everything else is demo.py.
#
#   demo.sh [--kubeconfig FILE]    see demo.py --help
set -euo pipefail
HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
. "$HERE/../../toolchain/say.sh"

if [ ! -x /usr/bin/python3 ]; then
  [ "$(id -u)" = 0 ] || fail "no /usr/bin/python3" "apt-get install python3, or run as root"
  begin "apt-get install python3"
  { apt-get update && apt-get install -y --no-install-recommends python3; } >/dev/null || fail "python3 cannot be installed" "check /etc/apt/sources.list and the network"
  finish
fi
exec /usr/bin/python3 "$HERE/demo.py" "$@"
