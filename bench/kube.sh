#!/bin/bash
# kube.sh BUILD PODS SECONDS OUT [OPTIONS]: `make bench-kube`, `make soak-kube`. Builds the client-go informer, starts a
# control plane of its own, measures on it (kube/kube_bench.py), and takes everything down again. KUBECONFIG=... uses a
# cluster that is there.
set -euo pipefail
ROOT=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
. "$ROOT/toolchain/say.sh"
build=$1 pods=$2 seconds=$3 out=$4
CLIENT_GO=0.34.4
client_go=$SLUICE_CACHE/bench/client-go-observe-$CLIENT_GO

build_client_go() {
  [ ! -x "$client_go" ] || [ "$ROOT/bench/kube/client-go/main.go" -nt "$client_go" ] || return 0
  "$ROOT/e2e/cluster/build-binaries.sh"
  begin "build the client-go informer ($CLIENT_GO)"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cp "$ROOT/bench/kube/client-go/main.go" "$folder"
  go=$(command -v go || ls /usr/local/go/bin/go "$SLUICE_CACHE/go/venv/bin/go" 2>/dev/null | head -n 1) || true
  [ -n "$go" ] || fail "no Go" "install Go, or run e2e/cluster/build-binaries.sh from an empty cache"
  mkdir -p "$(dirname "$client_go")"
  (cd "$folder" && export GOMODCACHE=$folder/modules GOCACHE=$folder/cache GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0 GOFLAGS="-mod=mod -modcacherw -trimpath"
    "$go" mod init sluice.local/bench && "$go" get "k8s.io/client-go@v$CLIENT_GO" "k8s.io/api@v$CLIENT_GO" && "$go" build -o "$client_go" .) >"$folder/log" 2>&1 \
    || { tail -n 20 "$folder/log"; fail "cannot build it" "a Go module proxy must be reachable"; }
  finish
}

# A soak runs Sluice's client alone.
[[ "$*" == *--soak-minutes* ]] || build_client_go
if [ -z "${KUBECONFIG:-}" ]; then
  export CLUS_NAME=${CLUS_NAME:-sluice-kbench} CLUS_INDEX=${CLUS_INDEX:-6}
  trap '"$ROOT/e2e/cluster/cluster.sh" down; rm -rf "${folder:-}"' EXIT
  "$ROOT/e2e/cluster/cluster.sh" up --control-plane
  eval "$("$ROOT/e2e/cluster/cluster.sh" env)"
fi
python3 "$ROOT/bench/kube/kube_bench.py" --ours "$build/bench/kube/sluice-kube-bench" --client-go "$client_go" \
  --kubectl "$SLUICE_CACHE/bin/kubectl" --pods "$pods" --seconds "$seconds" --out "$ROOT/bench/results/$out" "${@:5}"
