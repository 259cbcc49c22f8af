#!/bin/bash
# interpreter.sh VERSION: a CPython that Debian 12 does not have, in $SLUICE_CACHE/pythons/VERSION/usr/bin/pythonVERSION.
#
# It is the Python of another Debian or Ubuntu release, unpacked with all libraries that it needs, its C library included. Nothing is
# installed. apt checks the signatures. patchelf makes the program look for its libraries beside itself.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"
# shellcheck source=toolchain/closure.sh
. "$HERE/closure.sh"

DEBIAN_13="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main"
UBUNTU_KEYRING=$SLUICE_CACHE/pythons/ubuntu-keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg
UBUNTU_22_04="[signed-by=$UBUNTU_KEYRING] http://archive.ubuntu.com/ubuntu jammy main"

# The functions below are called where `set -e` does not count: each step hangs on the one before.

publish() {  # NAME: what was unpacked becomes $SLUICE_CACHE/pythons/NAME
  chmod 755 "$folder/root" && mv -T "$folder/root" "$SLUICE_CACHE/pythons/$1"
}

unpack_python() {  # VERSION SOURCE
  local version=$1 libraries="$SLUICE_CACHE/pythons/$1" loader
  unpack_closure amd64 "$2" "python$version-minimal" "libpython$version-stdlib" libstdc++6 || return
  loader=$(cd "$folder/root" && ls -d {usr/,}lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 2>/dev/null | head -n 1)
  patchelf --set-interpreter "$libraries/$loader" --force-rpath \
    --set-rpath "$libraries/usr/lib/x86_64-linux-gnu:$libraries/lib/x86_64-linux-gnu" "$folder/root/usr/bin/python$version" \
    && publish "$version"
}

make_keyring() {  # SOURCE: by which apt checks it
  if [ "$1" = "$DEBIAN_13" ] || [ -f "$UBUNTU_KEYRING" ]; then return; fi
  unpack_closure amd64 "$DEBIAN_13" ubuntu-keyring && publish ubuntu-keyring
}

source_of() {  # VERSION
  case $1 in
    3.10) echo "$UBUNTU_22_04" ;;
    3.13) echo "$DEBIAN_13" ;;
    *) fail "no release is known that has Python $1" "choose 3.10 or 3.13" ;;
  esac
}

main() {
  local version=$1 source
  source=$(source_of "$version")
  if [ -d "$SLUICE_CACHE/pythons/$version" ]; then return; fi
  mkdir -p "$SLUICE_CACHE/pythons"
  exec 9>"$SLUICE_CACHE/pythons/.lock"
  flock 9
  if [ -d "$SLUICE_CACHE/pythons/$version" ]; then return; fi
  begin "Python $version into $SLUICE_CACHE/pythons"
  folder=$(mktemp -d "$SLUICE_CACHE/pythons/new-XXXXXX")  # global: the trap removes it after an interrupt
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM HUP
  { make_keyring "$source" && unpack_python "$version" "$source"; } >"$folder/log" 2>&1 || {
    tail -n 5 "$folder/log" >&2
    fail "cannot unpack Python $version" "a Debian and an Ubuntu archive must be reachable; only amd64 is supported"
  }
  finish
}

main "$@"
