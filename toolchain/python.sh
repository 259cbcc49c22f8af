#!/bin/bash
# python.sh: the Python environment $SLUICE_CACHE/venv with the packages of requirements.txt.
#
# A stamp holds the hash of requirements.txt: with nothing changed this takes no time. PyTorch comes with its CUDA
# libraries, 5.5 GiB on disk, so that the same environment trains for real where there is a GPU.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"

DISK_NEEDED_MIB=9216                 # 5.5 GiB installed, and as many downloaded meanwhile
ENVIRONMENT=$SLUICE_CACHE/venv
STAMP=$ENVIRONMENT/requirements.sha256
PYTHON=/usr/bin/python3              # not one of the user's own: the trainer image holds Debian's

main() {
  local wanted free_mib log
  wanted=$(sha256sum <"$HERE/requirements.txt")
  if [ -f "$STAMP" ] && [ "$(<"$STAMP")" = "$wanted" ]; then return; fi
  mkdir -p "$SLUICE_CACHE" 2>/dev/null || fail "cannot write to $SLUICE_CACHE" "set SLUICE_CACHE to a folder of yours"
  exec 9<"$SLUICE_CACHE"
  flock 9
  if [ -f "$STAMP" ] && [ "$(<"$STAMP")" = "$wanted" ]; then return; fi
  if ! [ -x "$ENVIRONMENT/bin/pip" ]; then
    free_mib=$(($(stat -f -c '%a * %S' "$SLUICE_CACHE") / 1048576))
    [ "$free_mib" -ge $DISK_NEEDED_MIB ] \
      || fail "only $free_mib MiB are free in $SLUICE_CACHE, PyTorch needs $DISK_NEEDED_MIB" "free some, or set SLUICE_CACHE to a folder on a larger disk"
    $PYTHON -m venv "$ENVIRONMENT" || fail "$PYTHON cannot make a virtual environment" "toolchain/install.sh build"
  fi
  log=$(mktemp)
  begin "Python packages of toolchain/requirements.txt into $ENVIRONMENT (PyTorch: one to several minutes)"
  "$ENVIRONMENT/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir -r "$HERE/requirements.txt" >"$log" 2>&1 || {
    tail -n 15 "$log" >&2
    rm -f "$log"
    fail "pip cannot install the packages" "the Python package index must be reachable (pip's settings and proxy variables are honoured)"
  }
  rm -f "$log"
  echo "$wanted" >"$STAMP.new"
  mv "$STAMP.new" "$STAMP"
  finish
}

main "$@"
