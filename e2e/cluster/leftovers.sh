# leftovers.sh: lists everything of the cluster that exists on the machine; prints nothing when it is really down.
# Sourced after settings.sh and cgroups.sh.
#
# Mounts and nft rules are looked for in the host's namespaces, where the cluster never makes any. Network namespaces
# are found through the processes that hold them: a namespace without a holder and a mount is gone.

# The node's own processes and what they have started, one to a line.
node_processes() { grep -lsxz "SLUICE_CLUSTER_NODE=$STATE" /proc/[0-9]*/environ | cut -d/ -f3 || true; }

leftover_processes() {
  local pid
  for pid in $(node_processes); do
    echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c 1-100)"
  done
}

list_leftovers() {
  local mount
  leftover_processes
  for mount in $(cgroup_mounts); do
    cgroup_processes "$mount" | sed 's/^/process in our cgroup: /'
    find "$mount/$NAME" "$mount/$NAME-host" -maxdepth 0 2>/dev/null | sed 's/^/cgroup /'
  done
  awk -v state="$STATE" 'index($2, state) == 1 || index($4, state) == 1 {print "mount " $2}' /proc/mounts
  awk -v state="${STATE#/}" 'index($4, state) {print "mount " $5}' /proc/self/mountinfo
  if [ -d /run/netns ]; then find /run/netns -name 'cni-*' 2>/dev/null | sed 's/^/network namespace /'; fi
  ip -o link show "$LINK_NAME" 2>/dev/null | sed 's/^/network device /'
  for mount in $LINK.0/30 "$POD_RANGE" "$SERVICE_RANGE"; do ip -o route show root "$mount" | sed 's/^/route /'; done
  nft list tables 2>/dev/null | grep kube-proxy | sed 's/^/nft /'
  if [ -e "$STATE" ]; then echo "folder $STATE"; fi
}

leftovers() {  # fails if there are any
  local list
  list=$(list_leftovers | sort -u)
  if [ -z "$list" ]; then say "nothing of $NAME is left"; return 0; fi
  echo "$list"
  return 1
}
