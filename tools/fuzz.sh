#!/bin/bash
# The fuzz targets of src/*/fuzz as libFuzzer programs with ASan and UBSan, in build/fuzz (needs the packages of
# toolchain/install.sh sanitizers). A target is a folder of a seed corpus, src/*/fuzz/corpus/TARGET. An input that fails is kept and named, with the command that runs it again.
#
#   fuzz.sh build           compiles them: a minute of CPU time, as they link nothing but the parsers
#   fuzz.sh run TARGET      `make test`: from the seed corpus on, the same inputs every time, FUZZ_RUNS at most
#   fuzz.sh explore SECONDS `make fuzz`: every target for so long, other inputs every time; those that reach new code
#                           stay in $SLUICE_CACHE/fuzz
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
. toolchain/say.sh
BUILD=build/fuzz
FUZZ_RUNS=50000
FUZZ_SECONDS=20                      # a bound, not the usual end

build() {
  mkdir -p build
  cmake -S . -B $BUILD -G Ninja -DCMAKE_BUILD_TYPE=None -DSLUICE_SANITIZE=address -DSLUICE_TESTS=OFF \
    -DCMAKE_CXX_FLAGS="-O1 -g1 -fsanitize=fuzzer-no-link" \
    && ninja -C $BUILD fuzz_targets
}

corpus() { ls -d src/*/fuzz/corpus/"$1"; }  # TARGET

fuzz() {  # TARGET FAILURES OPTION-OR-CORPUS...: one libFuzzer program; what fails goes into the folder FAILURES
  local target=$1 failures=$2 corpus program
  corpus=$(corpus "$1")
  program=$BUILD/${corpus%/corpus/*}/sluice_$1_fuzz
  shift 2
  mkdir -p "$failures"
  UBSAN_OPTIONS=print_stacktrace=1 "$program" -max_len=65536 -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$failures/" "$@" && return
  echo "$target: an input fails: the file that libFuzzer names above. Again: $program FILE"
  echo "Once it is mended, put the file into $corpus"
  return 1
}

run() {  # TARGET
  local target=$1
  scratch=$(mktemp -d)               # new inputs go into the first folder; the checked-in corpus is only read
  trap 'rm -rf "$scratch"' EXIT
  fuzz "$target" "build/fuzz-failures/$target" -seed=20261121 -runs=$FUZZ_RUNS -max_total_time=$FUZZ_SECONDS \
    "$scratch" "$(corpus "$target")"
}

explore() {  # SECONDS
  local seconds=$1 target found log=build/fuzz.log
  begin "build the fuzz targets with clang"
  build >"$log" 2>&1 || { tail -n 30 "$log"; exit 1; }
  finish
  for target in $(ls -d src/*/fuzz/corpus/* | xargs -n 1 basename); do
    found=$SLUICE_CACHE/fuzz/$target
    mkdir -p "$found"
    begin "$target for $seconds s"
    fuzz "$target" "build/fuzz-failures/$target" -max_total_time="$seconds" "$found" "$(corpus "$target")" >"$log" 2>&1 || {
      tail -n 30 "$log"
      exit 1
    }
    finish "$(sed -n 's/stat::number_of_executed_units: *//p' "$log") runs"
  done
}

case "${1:-} $#" in
  "build 1") build ;;
  "run 2") run "$2" ;;
  "explore 2") explore "$2" ;;
  *) fail "usage: fuzz.sh build | run TARGET | explore SECONDS" "see the head of this file" ;;
esac
