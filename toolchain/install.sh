#!/bin/bash
# install.sh GROUP...: installs what is missing of a group of debian-packages.txt: build, cluster (default: both), sanitizers, loaders, arm64.
#
# With everything there it takes a fraction of a second and needs neither root nor a network. Services that come with
# a package are not started. The group cluster includes the packages that are only unpacked (unpack.sh).
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source=toolchain/say.sh
. "$HERE/say.sh"

group() { sed -n "/^\[$1\]/,/^\[/{/^\[/d;s/[[:space:]]*#.*//;/./p}" "$HERE/debian-packages.txt"; }

missing_of() {  # PACKAGE...: those that are not installed
  local installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p') || true
  printf '%s\n' "$@" | sort | comm -23 - <(sort <<<"$installed")
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "installing Debian packages needs root, and there is no sudo" "run this as root: apt-get install $missing"; fi
}

apt() { as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120 "$@"; }

# Debian's own way to say "start no services": a policy-rc.d that refuses. An existing one is left alone.
without_services() {
  local policy=/usr/sbin/policy-rc.d status=0
  if [ -e $policy ]; then "$@"; return; fi
  as_root sh -c "printf '#!/bin/sh\\nexit 101\\n' >$policy && chmod 755 $policy"
  trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
  trap 'exit 130' INT TERM HUP
  "$@" || status=$?
  as_root rm -f $policy
  trap - EXIT INT TERM HUP
  return $status
}

install() {  # PACKAGE...
  local log way_out="a Debian mirror must be reachable (/etc/apt/sources.list, proxy in /etc/apt/apt.conf.d); the lines above are from apt-get"
  log=$(mktemp)
  begin "install $# Debian packages ($*)"
  # The list of packages is only fetched anew when apt does not know them, or no longer has them on offer.
  if ! without_services apt install -y --no-install-recommends "$@" >"$log" 2>&1; then
    { apt update && without_services apt install -y --no-install-recommends "$@"; } >"$log" 2>&1 || {
      tail -n 15 "$log" >&2
      rm -f "$log"
      fail "cannot install: $*" "$way_out"
    }
  fi
  rm -f "$log"
  finish
}

main() {
  local name packages
  command -v dpkg-query >/dev/null || fail "this is not a Debian machine" "Debian 12, or install the equivalents of toolchain/debian-packages.txt by hand"
  [ $# -gt 0 ] || set -- build cluster
  packages=$(for name in "$@"; do
    case $name in build | cluster | sanitizers | loaders | arm64) group "$name" ;; *) fail "no group '$name'" "build, cluster, sanitizers, loaders or arm64" ;; esac
  done | sort -u)
  # shellcheck disable=SC2086  # one word a package
  missing=$(missing_of $packages | tr '\n' ' ')
  # shellcheck disable=SC2086
  if [ -n "$missing" ]; then install $missing; fi
  case " $* " in *" cluster "*) group unpacked | xargs "$HERE/unpack.sh" ;; esac
}

main "$@"
