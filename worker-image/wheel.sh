#!/bin/bash
# wheel.sh BUILD_DIR: makes BUILD_DIR/wheel/sluice-VERSION-py3-none-manylinux_2_N_MACHINE.whl from BUILD_DIR/bundle: the Python package, the feeder, the worker,
# the cache and their libraries. The same bundle gives the same bytes (SOURCE_DATE_EPOCH: the time of all files in it).
#
# The N of the name is what the files need of the machine that installs them. The programs bring their C library and its loader, so they need none
# there. `libsluice_images.so`, `libsluice_audio.so` and the libjpeg beside them are loaded by the user's Python, with the C library of that one: N is the newest version of it
# whose symbols they ask for. Any Python 3 will do, as the library is called through ctypes.
set -euo pipefail

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
BUILD=$(cd "${1:?usage: wheel.sh BUILD_DIR}" && pwd)
. "$ROOT/toolchain/say.sh"
PYTHON=$SLUICE_CACHE/venv/bin/python
BUNDLE=$BUILD/bundle
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-315532800}  # 1980, the first year that a zip file can hold

# The newest version of the C library that a shared object of the bundle, or one that it loads from there, wants: 34 for GLIBC_2.34.
newest_glibc() {  # NAME IN lib/
  local library=$BUNDLE/lib/$1 needed
  readelf --version-info --wide "$library" | grep -o 'GLIBC_2\.[0-9]*' | sort -u | cut -d. -f2
  for needed in $(readelf --dynamic --wide "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $needed in
      libc.so.* | libm.so.* | ld-linux*) ;;  # Parts of the C library: those of the user's Python are there already.
      *) newest_glibc "$needed" ;;
    esac
  done
}

# What `pip wheel` packs: python/ with the bundle's programs in sluice/bundle/.
lay_out() {  # FOLDER
  cp "$ROOT"/python/{pyproject.toml,README.md,entry_points.txt} "$1/"
  cp -r "$BUNDLE/python/sluice" "$1/"
  find "$1/sluice" -name __pycache__ -prune -exec rm -r {} +
  mkdir -p "$1/sluice/bundle/bin"
  cp "$BUNDLE"/bin/sluice-{feeder,worker,cache} "$1/sluice/bundle/bin/"
  cp -r "$BUNDLE/lib" "$1/sluice/bundle/"
  find "$1" -type f -exec chmod 644 {} +
  find "$1/sluice/bundle" -type f -exec chmod 755 {} +
}

[ -x "$BUNDLE/bin/sluice-feeder" ] || fail "there is no bundle in $BUILD" "make bundle"
case $(readlink "$BUNDLE/lib/loader") in
  ld-linux-x86-64.so.2) machine=x86_64 ;;
  ld-linux-aarch64.so.1) machine=aarch64 ;;
  *) fail "the bundle in $BUILD is for no machine that is known" "make bundle" ;;
esac
glibc=$({ newest_glibc libsluice_images.so; newest_glibc libsluice_audio.so; } | sort -n | tail -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/python"
lay_out "$folder/python"
rm -rf "$BUILD/wheel"
log=$folder/log
"$PYTHON" -m pip --disable-pip-version-check wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir "$BUILD/wheel" \
  --config-settings="--build-option=--plat-name=manylinux_2_${glibc}_$machine" "$folder/python" >"$log" 2>&1 || { cat "$log" >&2; fail "pip cannot build the wheel" "the lines above are pip's"; }
echo "wheel: $(ls "$BUILD"/wheel/*.whl), $(du -h "$BUILD"/wheel/*.whl | cut -f1)"
