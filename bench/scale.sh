#!/bin/bash
# scale.sh BUILD JOBS WORKERS: `make bench-scale`. A control plane of its own with fake nodes (kwok), the operator on it with many
# jobs (scale/scale_bench.py), and everything taken down again.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$ROOT/toolchain/say.sh"
build=$1 jobs=$2 workers=$3
"$ROOT/e2e/cluster/build-binaries.sh"
"$ROOT/e2e/cluster/build-binaries.sh" kwok
export CLUS_NAME=${CLUS_NAME:-sluice-scale} CLUS_INDEX=${CLUS_INDEX:-4}
trap '"$ROOT/e2e/cluster/cluster.sh" down' EXIT
"$ROOT/e2e/cluster/cluster.sh" up --control-plane
eval "$("$ROOT/e2e/cluster/cluster.sh" env)"
python3 "$ROOT/bench/scale/scale_bench.py" --operator "$build/operator/sluice-operator" --load "$build/bench/scale/sluice-scale-load" \
  --kwok "$SLUICE_CACHE/bin/kwok" --kubectl "$SLUICE_CACHE/bin/kubectl" --jobs "$jobs" --workers "$workers" "${@:4}" \
  --out "${SCALE_OUT:-$ROOT/bench/results/scale.json}"
