# node.sh: what runs inside the node, which is one set of namespaces (mount, net, pid, uts, ipc), the same shape as a
# container. Sourced after settings.sh and cgroups.sh.
#
# Its pid 1 is this script. Killing that one process makes the kernel end every other process of the node and drop all
# its mounts, rules and interfaces. So `down` is quick and complete.

MOUNT_POINTS="/var/lib/kubelet /var/lib/cni /var/log"

node_pid() {  # the host's number of the node's pid 1, if that is still the process we started
  local pid started
  [ -f "$RUN/node.pid" ] || return 1
  read -r pid started <"$RUN/node.pid"
  [ "$(start_time "$pid")" = "$started" ] || return 1                 # else the number was given to another process
  echo "$pid"
}

start_time() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# nsenter, not `ip netns exec`: the latter mounts /sys anew and so hides the cgroups.
in_node() {
  local pid
  pid=$(node_pid) || { echo "$NAME: not running" >&2; return 1; }
  nsenter -t "$pid" -m -n -p -u -i -- "$@"
}

# ---- below: called inside the node only

node_main() {  # becomes pid 1
  local pid
  read -r pid _ </proc/self/stat                                      # /proc is still the host's: the host's number
  local started
  started=$(start_time "$pid")
  cgroup_make
  cgroup_join
  node_mounts
  node_kernel_settings
  hostname "$NODE"
  ip link set lo up
  echo "$pid $started" >"$RUN/node.pid.new"
  mv "$RUN/node.pid.new" "$RUN/node.pid"
  trap 'exit 0' TERM
  while :; do sleep 86400 & wait $! || true; done                     # bash reaps the orphans of containerd's shims
}

# The paths that the kubelet and the CNI library have built in become mounts of the state folder that only the node
# sees. They do not clash with the machine's own, and removing the state folder on the host cannot reach into a pod's
# volumes.
node_mounts() {
  local folder
  mount --make-rprivate /
  mount --make-rshared /                                              # the kubelet's own expectation, within the node
  mount -t proc proc /proc
  for folder in $MOUNT_POINTS; do
    if ! [ -d "$folder" ]; then echo "$folder" >>"$RUN/mount-points-made"; mkdir -p "$folder"; fi
    mkdir -p "$STATE/var${folder#/var}"
    mount --bind "$STATE/var${folder#/var}" "$folder"
  done
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/containerd /run/pids /run/netns /run/lock /run/cni-addresses
}

# Called on the host, when the node is gone. Not while another cluster's node has the folder as a mount point: removing
# it would unmount it there.
remove_mount_points() {
  local folder
  [ -f "$RUN/mount-points-made" ] || return 0
  while read -r folder; do
    grep -qs " $folder " /proc/[0-9]*/mountinfo || rmdir "$folder" 2>/dev/null || true
  done <"$RUN/mount-points-made"
}

# The kubelet sets a few machine-wide sysctls. It is shown plain files that hold what it wants, so the machine keeps its own.
node_kernel_settings() {
  local setting file
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
                 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=/run/sysctl/${setting%%=*}
    mkdir -p "${file%/*}"
    echo "${setting#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${setting%%=*}"
  done
  # These belong to the network namespace, hence to the node alone.
  echo 1 >/proc/sys/net/ipv4/ip_forward
  echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
  echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
}

component_alive() {
  local pid
  pid=$(cat "/run/pids/$1" 2>/dev/null) || return 1
  [ -d "/proc/$pid" ] && ! grep -q '^State:[[:space:]]*Z' "/proc/$pid/status" 2>/dev/null
}

component_start() {  # COMPONENT: with none of the caller's open files, 8 being the lock of cluster.sh
  local arguments
  component_alive "$1" && return 0
  mapfile -t arguments <"$COMMANDS/$1"
  export SLUICE_CLUSTER_NODE=$STATE                                   # by this `leftovers` knows our processes
  (
    cgroup_join                                                       # nsenter left us in the caller's cgroups
    ulimit -n "$(ulimit -Hn)"
    exec setsid "${arguments[@]}" 8<&- </dev/null >>"$LOG/$1.log" 2>&1
  ) &
  echo $! >"/run/pids/$1"
}

component_stop() {  # COMPONENT [SIGNAL]: KILL after 5 s
  local pid signal
  component_alive "$1" || return 0
  pid=$(<"/run/pids/$1")
  for signal in "${2:-TERM}" KILL; do
    kill -"$signal" "$pid"
    if component_gone_within_5_seconds "$1"; then rm "/run/pids/$1"; return; fi
  done
  echo "$1 (process $pid of the node) does not end" >&2
  return 1
}

component_gone_within_5_seconds() {
  local attempt
  for attempt in $(seq 100); do component_alive "$1" || return 0; sleep 0.05; done
  return 1
}

component_ended() {  # the first component that was started and is no more
  local file
  for file in /run/pids/*; do
    component_alive "${file##*/}" || { echo "${file##*/}"; return; }
  done
}

component_status() {
  local component pid
  for component in $COMPONENTS; do
    if component_alive "$component"; then
      pid=$(<"/run/pids/$component")
      printf '%-26s up    %4d MiB\n' "$component" $(($(awk '/VmRSS/ {print $2}' "/proc/$pid/status") / 1024))
    else
      printf '%-26s DOWN\n' "$component"
    fi
  done
}
