#!/bin/bash
# trainer-image.sh: the image the demo's training jobs run in, localhost/sluice-trainer:demo, as an OCI archive.
#
#   trainer-image.sh            writes $SLUICE_CACHE/images/trainer.tar and prints its path
#
# It holds Debian's Python 3.11 and the system libraries PyTorch needs, but not PyTorch: packing 5 GiB and storing them
# three times over takes minutes. The virtual environment is mounted at its own path instead (volumes.sh).
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
. "$HERE/../../toolchain/say.sh"
. "$HERE/settings.sh"
. "$HERE/images.sh"

PYTHON_FOLDER=/usr/lib/python3.11
ENVIRONMENT=$SLUICE_CACHE/venv
PACKAGES=$ENVIRONMENT/lib/python3.11/site-packages
OUT=$IMAGES/trainer.tar

python_files() {  # the standard library without what only builds of Python itself use
  local entry
  for entry in "$PYTHON_FOLDER"/*; do
    case ${entry##*/} in config-* | test | idlelib | turtledemo | dist-packages) continue ;; esac
    printf '%s\n' --add "$entry:$entry"
  done
}

library_closures() {
  local library
  for library in /usr/bin/python3.11 /usr/bin/dash "$PYTHON_FOLDER"/lib-dynload/*.so "$PACKAGES"/torch/_C.*.so \
                 "$PACKAGES"/torch/lib/libtorch_{cpu,python}.so "$PACKAGES"/numpy/_core/_multiarray_umath.*.so \
                 "$PACKAGES"/PIL/_imaging.*.so; do
    printf '%s\n' --closure "$library"
  done
}

main() {
  local work arguments
  [ -x /usr/bin/python3.11 ] || fail "no /usr/bin/python3.11" "this image is made of Debian 12's Python: toolchain/install.sh build"
  [ -d "$PACKAGES/torch" ] || fail "no PyTorch in $ENVIRONMENT" "toolchain/python.sh"
  mkdir -p "$IMAGES"
  if newer_than "$OUT" "$HERE/image.py" "$SELF" "$ENVIRONMENT/pyvenv.cfg" /usr/bin/python3.11; then echo "$OUT"; return; fi
  work=$(mktemp -d "$IMAGES/trainer-XXXXXX")
  # shellcheck disable=SC2064  # the folder of now
  trap "rm -rf '$work'" EXIT
  # PyTorch asks for the user's name, and for a home to keep caches in.
  echo "trainer:x:65532:65532:trainer:/tmp:/usr/sbin/nologin" >"$work/passwd"
  echo "trainer:x:65532:" >"$work/group"
  mapfile -t arguments < <(python_files; library_closures)
  /usr/bin/python3 "$HERE/image.py" --name localhost/sluice-trainer:demo --out "$OUT" --keep-times --exclude "$SLUICE_CACHE" \
    --add /usr/bin/python3.11:/usr/bin/python3.11 --add /usr/bin/python3:/usr/bin/python3 --add /usr/bin/dash:/bin/sh \
    --add "$work/passwd:/etc/passwd" --add "$work/group:/etc/group" "${arguments[@]}" \
    --mkdir /tmp --mkdir /data --mkdir /opt/sluice --mkdir /run/sluice --mkdir "$ENVIRONMENT" \
    --env "PATH=$ENVIRONMENT/bin:/usr/bin:/bin" --env HOME=/tmp --env PYTHONUNBUFFERED=1 --entrypoint /usr/bin/python3 >&2
  echo "$OUT"
}

SELF=$(readlink -f "${BASH_SOURCE[0]}")
main "$@"
