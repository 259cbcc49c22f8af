#!/bin/bash
# fuzz.sh SECONDS: `make fuzz`: every fuzz target of src/kube as a libFuzzer program with ASan and UBSan, for so long
# each. New inputs that reach new code stay in $SLUICE_CACHE/fuzz; one that fails is printed and kept there.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. toolchain/say.sh
toolchain/install.sh fuzz
seconds=${1:-60}
build=$SLUICE_CACHE/fuzz/build
mkdir -p "$build"
begin "build the fuzz targets with clang"
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang \
  -DSLUICE_SANITIZE=address -DSLUICE_TESTS=OFF -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link" >"$build.log" 2>&1 || { tail "$build.log"; exit 1; }
ninja -C "$build" fuzz_targets >"$build.log" 2>&1 || { tail -n 30 "$build.log"; exit 1; }
finish
for folder in src/kube/fuzz/corpus/*/; do
  target=$(basename "$folder")
  found=$SLUICE_CACHE/fuzz/$target
  mkdir -p "$found"
  begin "$target for $seconds s"
  (cd "$found" && UBSAN_OPTIONS=print_stacktrace=1 "$build/src/kube/fuzz/sluice_${target}_fuzz" -max_total_time="$seconds" \
    -max_len=65536 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 "$found" "$OLDPWD/$folder") >"$found.log" 2>&1 || {
    tail -n 30 "$found.log"
    fail "$target: an input fails" "it is in $found; put it into $folder once it is mended"
  }
  finish "$(sed -n 's/stat::number_of_executed_units: *//p' "$found.log") runs"
done
