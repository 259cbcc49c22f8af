#!/bin/bash
# unpack.sh PACKAGE...: unpacks Debian packages into $SLUICE_CACHE/packages/PACKAGE without installing them.
#
# For programs that would come with a system service or a conflict (containerd, Prometheus: an installed containerd
# would push out Docker's own), and for data (photographs). Needs no root; nothing outside the cache changes.
# A package that is there already costs nothing.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"
PACKAGES=$SLUICE_CACHE/packages

download() { apt-get download -qq -o APT::Sandbox::User="$(id -un)" "$1"; }

unpack() {  # PACKAGE
  local package=$1
  folder=$(mktemp -d "$PACKAGES/new-XXXXXX")                  # global: the trap removes it after an interrupt
  begin "unpack Debian package $package"
  # Again after an update, where that is allowed: the machine's list may be empty, or name a version that is gone.
  (cd "$folder" && { download "$package" || { apt-get update -qq && download "$package"; }; }) >"$folder/log" 2>&1 || {
    tail -n 5 "$folder/log" >&2
    fail "cannot download the Debian package $package" "a Debian mirror must be reachable; 'apt-get update' as root refreshes the list of packages"
  }
  mkdir "$folder/root"
  dpkg-deb -x "$folder"/*.deb "$folder/root"
  chmod 755 "$folder/root"
  mv -T "$folder/root" "$PACKAGES/$package"
  finish
  rm -rf "$folder"
}

mkdir -p "$PACKAGES" 2>/dev/null || fail "cannot write to $PACKAGES" "set SLUICE_CACHE to a folder of yours"
exec 9>"$PACKAGES/.lock"
flock 9
folder=
trap '[ -z "$folder" ] || rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
for package in "$@"; do
  [ -d "$PACKAGES/$package" ] || unpack "$package"
done
