#!/bin/bash
# bundle.sh BUILD_DIR: makes BUILD_DIR/bundle, the relocatable bundle: bin/ lib/ python/. What belongs into it is built first.
#
# It holds the programs, every library they load, the dynamic loader that belongs to them, and the
# Python package. Nothing of the machine it runs on is used, whatever its C library, so the same files serve a FROM-scratch
# image, an init container that drops them into the user's image, and a wheel:
#   lib/loader --library-path lib bin/sluice-feeder ...
# A tree that was compiled for arm64 elsewhere (toolchain/arm64.cmake) is tried under an emulator.
set -euo pipefail

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
BUILD=$(cd "${1:?usage: bundle.sh BUILD_DIR}" && pwd)
PROGRAMS=(worker-image/sluice-feeder worker-image/sluice-worker worker-image/sluice-cache operator/sluice-operator)
# Loaded by the user's own Python, with that one's C library.
LIBRARIES=(worker-image/libsluice_jpeg.so.62 worker-image/libsluice_images.so worker-image/libsluice_audio.so)
NEW=$BUILD/bundle.new
SYSROOT= EMULATOR=() STRIP=strip LOADER=ld-linux-x86-64.so.2

fail() { echo "bundle: $1" >&2; exit 1; }

know_machine() {
  local machine
  machine=$(LC_ALL=C readelf -h "$BUILD/${PROGRAMS[0]}" | sed -n 's/^ *Machine: *//p')
  case $machine in
    *X86-64) ;;
    AArch64) LOADER=ld-linux-aarch64.so.1 ;;
    *) fail "programs for $machine are not supported" ;;
  esac
  if [ "$machine" = AArch64 ] && [ "$(uname -m)" != aarch64 ]; then
    SYSROOT=${SLUICE_CACHE:?}/arm64 STRIP=aarch64-linux-gnu-strip
    EMULATOR=(qemu-aarch64-static -L "$SYSROOT")
  fi
}

copy_program() {  # PATH
  "$STRIP" -o "$NEW/bin/$(basename "$1")" "$1"
}

# Every shared object that a program loads, the loader included; linux-vdso has no file.
libraries_of() {  # PATH
  { if [ -n "$SYSROOT" ]; then "${EMULATOR[@]}" "$SYSROOT/lib/$LOADER" --list "$1"; else ldd "$1"; fi; } | awk '/=> \//{print $3} $1 ~ /^\/.*ld-linux/{print $1} /not found/{print "missing:" $1}'
}

copy_libraries() {  # PATH
  local library
  for library in $(libraries_of "$1"); do
    case $library in
      missing:*) fail "$1 needs ${library#missing:}, which is not installed" ;;
      *) [ -e "$NEW/lib/$(basename "$library")" ] || cp -L "$SYSROOT${library#"$SYSROOT"}" "$NEW/lib/" ;;
    esac
  done
}

copy_python() {
  mkdir -p "$NEW/python"
  (cd "$ROOT/python" && find sluice \( -name __pycache__ -o -path sluice/bundle \) -prune -o -type f -print0 |
    xargs -0 cp --parents -t "$NEW/python")
  # Found by every Python process of the trainer's container: the operator puts this folder on PYTHONPATH.
  cp "$ROOT/python/sluice/start/sitecustomize.py" "$NEW/python/"
  # So that Lightning finds the package's entry points along PYTHONPATH.
  local version information
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$ROOT/python/pyproject.toml")
  information=$NEW/python/sluice-$version.dist-info
  mkdir "$information"
  cp "$ROOT/python/entry_points.txt" "$information/"
  printf 'Metadata-Version: 2.1\nName: sluice\nVersion: %s\n' "$version" >"$information/METADATA"
}

# A trainer mounts the bundle read-only, so each of its processes would compile the package anew: 60 ms of CPU. The bytecode is for
# the Pythons of this machine. It goes unchecked, as installing the bundle gives its files new times.
compile_python() {
  local python
  for python in python3.10 python3.11 python3.12 python3.13; do
    if "$python" -c "import compileall" 2>/dev/null; then
      "$python" -m compileall -q --invalidation-mode unchecked-hash -s "$NEW" -p /opt/sluice "$NEW/python"
    fi
  done
}

ninja -C "$BUILD" --quiet "${PROGRAMS[@]}" "${LIBRARIES[@]}"
know_machine
rm -rf "$NEW"
mkdir -p "$NEW/bin" "$NEW/lib"
for program in "${PROGRAMS[@]}"; do
  copy_program "$BUILD/$program"
  copy_libraries "$BUILD/$program"
done
for library in "${LIBRARIES[@]}"; do
  cp "$BUILD/$library" "$NEW/lib/"
  copy_libraries "$BUILD/$library"
done
ln -s "$LOADER" "$NEW/lib/loader"  # under one name, whatever the machine
chmod u+w "$NEW"/lib/*
find "$NEW/lib" -name '*.so*' ! -name 'ld-linux*' -exec "$STRIP" --strip-unneeded {} +
chmod 755 "$NEW"/lib/* "$NEW"/bin/*
if [ -d "$ROOT/python/sluice" ]; then
  copy_python
  compile_python
fi
# Proof that it stands alone: each program prints its help through the bundle's loader.
for program in "$NEW"/bin/*; do
  "${EMULATOR[@]}" "$NEW/lib/loader" --library-path "$NEW/lib" "$program" --help >/dev/null 2>&1 || fail "$(basename "$program") does not start from the bundle"
done
rm -rf "$BUILD/bundle"
mv "$NEW" "$BUILD/bundle"
echo "bundle: $BUILD/bundle, $(du -sh "$BUILD/bundle" | cut -f1), $(find "$BUILD/bundle/lib" -type f | wc -l) libraries"
