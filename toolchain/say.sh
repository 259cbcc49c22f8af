# shellcheck shell=bash
# say.sh: how the scripts of this project speak. Sourced; sets and exports SLUICE_CACHE.
#
# Every line carries the seconds since the script began. Every long step prints its purpose before it starts and its
# duration when it ends. Every failure names the missing part and the way out.

if [ -z "${SLUICE_CACHE:-}" ]; then
  if [ "$(id -u)" = 0 ]; then SLUICE_CACHE=/var/cache/sluice; else SLUICE_CACHE=$HOME/.cache/sluice; fi
fi
export SLUICE_CACHE

say_started=${EPOCHREALTIME/[.,]/}
step_started=$say_started

seconds_since() {  # MICROSECONDS: seconds with two decimals
  local passed=$((${EPOCHREALTIME/[.,]/} - $1))
  printf '%d.%02d' $((passed / 1000000)) $((passed % 1000000 / 10000))
}

say() { printf '[%7s s] %s\n' "$(seconds_since "$say_started")" "$*"; }

begin() {  # WHAT: first half of a line about a step
  step_started=${EPOCHREALTIME/[.,]/}
  printf '[%7s s] %s ... ' "$(seconds_since "$say_started")" "$*"
}

finish() {  # [REMARK]: second half of the line
  printf '%s s%s\n' "$(seconds_since "$step_started")" "${1:+, $1}"
}

fail() {  # WHAT WAY_OUT
  printf '\n%s: %s\n  way out: %s\n' "${0##*/}" "$1" "$2" >&2
  exit 1
}
