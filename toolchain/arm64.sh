#!/bin/bash
# arm64.sh: what compiling for arm64 on amd64 needs beside the compiler of the group "arm64": the libraries of the group "build", for arm64, in
# $SLUICE_CACHE/arm64.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"
# shellcheck source=toolchain/closure.sh
. "$HERE/closure.sh"

DEBIAN_12="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main"
ROOT=$SLUICE_CACHE/arm64
STAMP=$ROOT/packages.sha256

# And gRPC's compiler, without which its CMake files are taken for broken.
libraries() { sed -n '/^\[build\]/,/^\[/s/^\(lib[^ ]*-dev\|[^ ]*-cpp-dev\|zlib1g-dev\|nlohmann[^ ]*\|coinor-[^ ]*\|catch2\|protobuf-compiler-grpc\) .*/\1/p' "$HERE/debian-packages.txt"; }

# As the linker finds them from within the folder.
make_links_relative() {
  local link target
  find "$folder/root" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do
    ln -sfn "$(realpath --canonicalize-missing --no-symlinks --relative-to="$(dirname "$link")" "$folder/root$target")" "$link"
  done
}

sum() { libraries | sha256sum; }

[ "$(cat "$STAMP" 2>/dev/null)" != "$(sum)" ] || exit 0
begin "libraries for arm64 into $ROOT"
mkdir -p "$SLUICE_CACHE"
folder=$(mktemp -d "$SLUICE_CACHE/arm64-new-XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
# shellcheck disable=SC2046  # one word a package
{ unpack_closure arm64 "$DEBIAN_12" $(libraries) && make_links_relative; } >"$folder/log" 2>&1 || {
  tail -n 5 "$folder/log" >&2
  fail "cannot unpack the libraries for arm64" "a Debian archive with arm64 must be reachable; the lines above are apt-get's"
}
sum >"$folder/root/packages.sha256"
rm -rf "$ROOT"
chmod 755 "$folder/root" && mv -T "$folder/root" "$ROOT"
finish
