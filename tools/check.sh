#!/bin/bash
# `make check`: style and consistency without running the product. Each step prints its name, time and verdict.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
BUILD=build/check                    # of its own: without precompiled headers, which are a compiler's own format
failures=0

step() { # NAME COMMAND...
  local name=$1 began=$SECONDS output
  shift
  if output=$("$@" 2>&1); then
    printf 'ok     %-24s %3d s\n' "$name" $((SECONDS - began))
  else
    printf 'FAILED %-24s %3d s\n%s\n' "$name" $((SECONDS - began)) "$output"
    failures=$((failures + 1))
  fi
}

sources() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while read -r file; do [ -f "$file" ] && echo "$file"; done; }
format() { sources '*.h' '*.cc' | xargs clang-format --dry-run -Werror; }
# Every header compiles alone, so that an include list says what a file needs.
headers() { sources '*.h' | xargs -P "$(nproc)" -I{} g++ -std=c++20 -I. -I$BUILD -fsyntax-only -x c++ -Wno-pragma-once-outside-header {}; }
# Of what a first run reads, torch is the most: 25 CPU-seconds. Later ones read it from the cache.
types() { (cd python && "$SLUICE_CACHE/venv/bin/python" -m mypy --cache-dir "$SLUICE_CACHE/mypy"); }
chart() { "$SLUICE_CACHE/bin/helm" lint --strict helm/sluice; }

step "toolchain" toolchain/install.sh build
step "format" format
step "tidy" tools/tidy/tidy.py
step "configure" cmake -S . -B $BUILD -G Ninja -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DSLUICE_COMPILE_TOGETHER=OFF
step "generated headers" ninja -C $BUILD generated
step "headers stand alone" headers
step "clang-tidy" tools/clang_tidy.py $BUILD
step "cluster binaries" e2e/cluster/build-binaries.sh
step "helm lint" chart
step "python environment" toolchain/python.sh
step "types" types
step "CRD schema" tools/crd_schema.py crds/*.yaml
[ "$failures" = 0 ] && echo "check: ok" || { echo "check: $failures failed"; exit 1; }
