# cgroups.sh: the cluster's own cgroups, /NAME/node for the components and /NAME/kubepods for the pods (made by the
# kubelet), on cgroup v1, v1 hybrid and v2. Sourced after settings.sh.
#
# Run so far on v1 hybrid only (each controller its own mount, plus an empty v2 tree). The v2 branch follows
# Documentation/admin-guide/cgroup-v2.rst of the kernel:
#  * a controller works in a cgroup only if every ancestor lists it in cgroup.subtree_control, so it is enabled in the
#    root and in /NAME;
#  * a cgroup with processes cannot enable controllers for its children ("no internal processes"), except the real
#    root. /NAME therefore never holds a process. In a container the visible root is not the real one: its processes
#    are first moved to /NAME-host, and back when the cluster goes;
#  * systemd may switch off controllers that none of its units uses, but not while /NAME has them enabled, so no scope
#    unit is needed;
#  * `nsdelegate` fences cgroup *namespaces*; the node does not make one, so it sees and writes the same tree as the
#    host. Pods get their own from containerd.

V2_CONTROLLERS="cpu cpuset memory pids io hugetlb"       # those of them that exist are passed on
V2_NEEDED="cpu memory pids"

cgroup_is_v2() { [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; }

# Every hierarchy, named ones and an empty v2 tree included. A process must leave the caller's cgroup in all of them,
# or the caller's limits and the caller's end would reach it.
cgroup_mounts() { awk '($3 == "cgroup" || $3 == "cgroup2") && $2 ~ "^/sys/fs/cgroup" {print $2}' /proc/mounts | sort -u; }

cgroup_has_controller() {  # cpu|memory|pids
  if cgroup_is_v2; then grep -qw "$1" /sys/fs/cgroup/cgroup.controllers
  else awk -v name="$1" '$3 == "cgroup" && $4 ~ "(^|,)" name "(,|$)" {found = 1} END {exit !found}' /proc/mounts; fi
}

# The list is read whole before a process moves, and again for processes started meanwhile. Kernel threads and
# processes that end refuse, which is fine.
move_processes() {  # FROM TO
  local pids pid attempt
  for attempt in 1 2 3 4 5; do
    mapfile -t pids <"$1/cgroup.procs"
    [ ${#pids[@]} -gt 0 ] || return 0
    for pid in "${pids[@]}"; do { echo "$pid" >"$2/cgroup.procs"; } 2>/dev/null || true; done
  done
}

v2_enable() {  # CGROUP: passes the controllers on to its children
  local controller
  for controller in $V2_CONTROLLERS; do
    grep -qw "$controller" "$1/cgroup.controllers" || continue
    # One that is refused although it exists (cpu beside real-time processes, say) is missed below, if it is needed.
    grep -qw "$controller" "$1/cgroup.subtree_control" || echo "+$controller" >"$1/cgroup.subtree_control" || true
  done
}

v2_make() {
  local root=/sys/fs/cgroup controller
  cat $root/cgroup.subtree_control >"$RUN/root-controllers"
  if [ -e $root/cgroup.type ] && [ -n "$(cat $root/cgroup.procs)" ]; then   # only cgroups below the real root have a type
    mkdir -p "$root/$NAME-host"
    move_processes $root "$root/$NAME-host"
  fi
  v2_enable $root
  mkdir -p "$root/$NAME"
  v2_enable "$root/$NAME"
  for controller in $V2_NEEDED; do
    grep -qw "$controller" "$root/$NAME/cgroup.subtree_control" \
      || fail "cgroup controller $controller cannot be enabled for /$NAME" "look at $root/cgroup.subtree_control and its processes"
  done
}

cgroup_make() {
  local mount file
  if cgroup_is_v2; then v2_make; fi
  for mount in $(cgroup_mounts); do
    mkdir -p "$mount/$NAME/node"
    if ! [ -e "$mount/cpuset.mems" ] || cgroup_is_v2; then continue; fi
    for file in cpuset.cpus cpuset.mems; do                           # v1 starts with empty sets, which admit none
      cat "$mount/$file" >"$mount/$NAME/$file"
      cat "$mount/$file" >"$mount/$NAME/node/$file"
    done
  done
}

# Joins the node's cgroup in every hierarchy. 0 means "the writer": a host pid means nothing in the node's pid namespace.
cgroup_join() {
  local mount
  for mount in $(cgroup_mounts); do echo 0 >"$mount/$NAME/node/cgroup.procs"; done
}

cgroup_processes() {  # MOUNT: the processes in our tree
  find "$1/$NAME" -name cgroup.procs -exec cat {} + 2>/dev/null
}

cgroup_remove() {
  local mount attempt
  for mount in $(cgroup_mounts); do
    [ -d "$mount/$NAME" ] || continue
    for attempt in $(seq 100); do                                     # the dead leave their cgroup a little later
      [ -n "$(cgroup_processes "$mount")" ] || break
      [ "$attempt" -lt 4 ] || cgroup_processes "$mount" | xargs -r kill -KILL 2>/dev/null || true
      sleep 0.05
    done
    find "$mount/$NAME" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  if cgroup_is_v2 && [ -f "$RUN/root-controllers" ]; then v2_restore_root; fi
}

v2_restore_root() {
  local root=/sys/fs/cgroup controller
  for controller in $(<"$root/cgroup.subtree_control"); do
    # Refused when another process has come to use it meanwhile; then it stays.
    grep -qw "$controller" "$RUN/root-controllers" || { echo "-$controller" >"$root/cgroup.subtree_control"; } 2>/dev/null || true
  done
  rm "$RUN/root-controllers"
  if ! [ -d "$root/$NAME-host" ]; then return; fi
  move_processes "$root/$NAME-host" $root
  rmdir "$root/$NAME-host" || true
}
