#!/bin/bash
# python.sh [ENVIRONMENT PYTHON REQUIREMENTS]: a Python environment with the packages of a file. Without arguments it is
# $SLUICE_CACHE/venv with the packages of requirements.txt. Those of requirements-apart.txt go into its folder `apart`.
#
# A stamp holds the hash of these files: with nothing changed this takes no time. PyTorch comes with its CUDA
# libraries, 5.8 GiB on disk, so that the same environment trains for real where there is a GPU.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"

DISK_NEEDED_MIB=9216                 # 5.8 GiB installed, and as many downloaded meanwhile
ENVIRONMENT=${1:-$SLUICE_CACHE/venv}
PYTHON=${2:-/usr/bin/python3}        # not one of the user's own: the trainer image holds Debian's
REQUIREMENTS=${3:-$HERE/requirements.txt}
APART=${REQUIREMENTS%.txt}-apart.txt  # there need be none
STAMP=$ENVIRONMENT/requirements.sha256

# An interpreter that was only unpacked finds no pip to put into its environments: pip's own wheel brings it.
make_environment() {
  local wheels
  if "$PYTHON" -m ensurepip --version >/dev/null 2>&1; then
    "$PYTHON" -m venv "$ENVIRONMENT"
    return
  fi
  wheels=$(mktemp -d)
  "$PYTHON" -m venv --without-pip "$ENVIRONMENT" \
    && "$SLUICE_CACHE/venv/bin/pip" download --quiet --disable-pip-version-check --no-cache-dir --no-deps --dest "$wheels" pip \
    && "$ENVIRONMENT/bin/python" "$(echo "$wheels"/pip-*.whl)/pip" install --quiet --no-index "$wheels"/pip-*.whl
  local status=$?
  rm -rf "$wheels"
  return $status
}

install_packages() {
  local pip=("$ENVIRONMENT/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir)
  "${pip[@]}" -r "$REQUIREMENTS" || return
  [ ! -f "$APART" ] || "${pip[@]}" --no-deps --upgrade --target "$ENVIRONMENT/apart" -r "$APART"
}

main() {
  local wanted free_mib log
  wanted=$({ cat "$REQUIREMENTS"; [ ! -f "$APART" ] || cat "$APART"; } | sha256sum)
  if [ -f "$STAMP" ] && [ "$(<"$STAMP")" = "$wanted" ]; then return; fi
  mkdir -p "$SLUICE_CACHE" 2>/dev/null || fail "cannot write to $SLUICE_CACHE" "set SLUICE_CACHE to a folder of yours"
  exec 9<"$SLUICE_CACHE"
  flock 9
  if [ -f "$STAMP" ] && [ "$(<"$STAMP")" = "$wanted" ]; then return; fi
  if ! [ -x "$ENVIRONMENT/bin/pip" ]; then
    free_mib=$(($(stat -f -c '%a * %S' "$SLUICE_CACHE") / 1048576))
    [ "$free_mib" -ge $DISK_NEEDED_MIB ] \
      || fail "only $free_mib MiB are free in $SLUICE_CACHE, PyTorch needs $DISK_NEEDED_MIB" "free some, or set SLUICE_CACHE to a folder on a larger disk"
    make_environment || fail "$PYTHON cannot make a virtual environment" "toolchain/install.sh build"
  fi
  log=$(mktemp)
  begin "Python packages of toolchain/${REQUIREMENTS##*/} into $ENVIRONMENT (PyTorch: one to several minutes)"
  install_packages >"$log" 2>&1 || {
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
