# requirements.sh: everything `up` needs, checked before anything is made; all that is missing is named at once, each
# with the way out. Sourced after settings.sh and cgroups.sh.

DISK_NEEDED_MIB=2048

missing=()
lacks() { missing+=("$1"$'\n'"    way out: $2"); }                     # WHAT WAY_OUT

require_root() {
  [ "$(id -u)" = 0 ] || fail "$1 needs root: namespaces, cgroups and mounts are made" "sudo ${0##*/} $1 (or make demo as root)"
}

check_commands() {
  local entry command
  for entry in ip:iproute2 nft:nftables nsenter:util-linux unshare:util-linux setsid:util-linux flock:util-linux mount:mount \
               openssl:openssl curl:curl awk:mawk gcc:gcc python3:python3 find:findutils xargs:findutils; do
    command=${entry%%:*}
    command -v "$command" >/dev/null || lacks "command $command (Debian package ${entry#*:})" "toolchain/install.sh cluster"
  done
}

check_programs() {
  local program
  for program in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl coredns; do
    [ -x "$BIN/$program" ] || { lacks "cluster programs in $BIN ($program)" "e2e/cluster/build-binaries.sh"; break; }
  done
  [ -x "$BIN/$API_SERVER" ] || lacks "$API_SERVER in $BIN" "e2e/cluster/build-binaries.sh $API_SERVER"
  for program in containerd/usr/bin/containerd runc/usr/sbin/runc containernetworking-plugins/usr/lib/cni/ptp prometheus/usr/bin/prometheus; do
    [ -x "$UNPACKED/$program" ] || { lacks "unpacked Debian packages in $UNPACKED (${program%%/*})" "toolchain/install.sh cluster"; break; }
  done
}

check_cgroups() {
  local controller
  for controller in cpu memory pids; do
    cgroup_has_controller $controller \
      || lacks "cgroup controller $controller" "boot with cgroup_enable=$controller, or pass it to this container or VM (on v2: the parent's cgroup.subtree_control)"
  done
  [ -w /sys/fs/cgroup ] || lacks "write access to /sys/fs/cgroup" "in a container: run it with --privileged and a writable cgroup mount"
}

# Tried rather than looked up: a kernel may have a feature built in, as a module, or forbidden.
check_kernel() {
  [ -e /dev/kmsg ] || lacks "/dev/kmsg (the kubelet reads out-of-memory events there)" "in a container: run it with --privileged, or 'mknod /dev/kmsg c 1 11'"
  grep -qw overlay /proc/filesystems || modprobe overlay 2>/dev/null || lacks "file system overlay" "a kernel with CONFIG_OVERLAY_FS"
  unshare --mount --net --pid --uts --ipc --fork true 2>/dev/null \
    || { lacks "permission to make namespaces" "in a container: run it with --privileged"; return; }
  unshare --net ip link add probe-a type veth peer name probe-b 2>/dev/null || lacks "network device type veth" "a kernel with CONFIG_VETH (modprobe veth)"
  # The rule kube-proxy lives by: translate a destination picked at random from a map.
  unshare --net nft "add table ip probe; add chain ip probe c { type nat hook prerouting priority -100; };
    add rule ip probe c tcp dport 1 dnat to numgen random mod 2 map { 0 : 127.0.0.1, 1 : 127.0.0.2 };" 2>/dev/null \
    || lacks "nftables with NAT in the kernel" "a kernel with CONFIG_NF_TABLES, CONFIG_NFT_NAT and CONFIG_NFT_NUMGEN"
}

check_room() {
  local parent=$STATE free_mib memory_mib range
  while ! [ -d "$parent" ]; do parent=$(dirname "$parent"); done
  free_mib=$(($(stat -f -c '%a * %S' "$parent") / 1048576))
  [ "$free_mib" -ge $DISK_NEEDED_MIB ] || lacks "disk: $free_mib MiB free for $STATE, $DISK_NEEDED_MIB needed" "free some, or set CLUS_STATE to another folder"
  memory_mib=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  [ "$memory_mib" -ge 1536 ] || lacks "memory: $memory_mib MiB available, 1536 needed for the control plane alone" "stop other programs"
  [ ${#LINK_NAME} -le 15 ] || lacks "a shorter name: the network device $LINK_NAME is longer than 15 characters" "CLUS_NAME of at most 13"
  for range in $LINK.0/30 "$POD_RANGE" "$SERVICE_RANGE"; do
    [ -z "$(ip -o route show root "$range" 2>/dev/null)" ] || lacks "address range $range: the machine has routes in it" "set CLUS_INDEX to another number from 0 to 63"
  done
}

check_requirements() {
  check_commands
  check_programs
  if [ ${#missing[@]} = 0 ]; then check_cgroups; check_kernel; check_room; fi
  if [ ${#missing[@]} = 0 ]; then return; fi
  printf '%s: cannot start, missing:\n' "${0##*/}" >&2
  printf '  * %s\n' "${missing[@]}" >&2
  exit 1
}
