#!/bin/bash
# compile.sh ARCHITECTURE BUILD_DIR: the programs and their bundle for amd64 or arm64, in BUILD_DIR/bundle. Programs for arm64 may be compiled on amd64.
set -euo pipefail

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
. "$ROOT/toolchain/say.sh"
[ $# = 2 ] || fail "usage: compile.sh ARCHITECTURE BUILD_DIR" "the architecture as Kubernetes calls it: amd64, arm64"
options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo -DSLUICE_TESTS=OFF)
here=$(dpkg --print-architecture)

"$ROOT/toolchain/install.sh" build
if [ "$1" != "$here" ]; then
  [ "$here $1" = "amd64 arm64" ] || fail "programs for $1 cannot be compiled on $here" "compile them on a machine of theirs"
  "$ROOT/toolchain/install.sh" arm64
  "$ROOT/toolchain/arm64.sh"
  options+=(-DCMAKE_TOOLCHAIN_FILE="$ROOT/toolchain/arm64.cmake")
fi
cmake -S "$ROOT" -B "$2" -G Ninja "${options[@]}" >/dev/null
exec "$ROOT/worker-image/bundle.sh" "$2"
