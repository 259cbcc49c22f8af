# images.sh: the two images every cluster needs, made without a registry and kept in $SLUICE_CACHE/images.
# Sourced after settings.sh.

IMAGES=$SLUICE_CACHE/images

newer_than() {  # FILE SOURCE...
  local source
  [ -f "$1" ] || return 1
  for source in "${@:2}"; do [ "$1" -nt "$source" ] || return 1; done
}

make_images() {
  local work
  mkdir -p "$IMAGES"
  if ! newer_than "$IMAGES/pause.tar" "$HERE/pause.c" "$HERE/image.py"; then
    work=$(mktemp "$IMAGES/pause-XXXXXX")
    gcc -Os -static -s -o "$work" "$HERE/pause.c" || fail "cannot build pause.c" "toolchain/install.sh cluster (gcc and libc6-dev)"
    python3 "$HERE/image.py" --name localhost/pause:1 --out "$IMAGES/pause.tar" --add "$work:/pause" --entrypoint /pause >/dev/null
    rm "$work"
  fi
  if ! newer_than "$IMAGES/coredns.tar" "$BIN/coredns" "$HERE/image.py"; then
    python3 "$HERE/image.py" --name localhost/coredns:1 --out "$IMAGES/coredns.tar" --add "$BIN/coredns:/coredns" --entrypoint /coredns >/dev/null
  fi
}
