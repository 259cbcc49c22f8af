# second_node.sh: a second Kubernetes node beside the first, of the same machine and in the same namespaces: a kubelet and a
# containerd of its own. It takes its CPU from the first: both together offer what the first one did. `down` needs nothing
# more for it, since it ends with the namespaces. Sourced after configuration.sh.

SECOND_NODE=$NAME-second
SECOND=$STATE/var/second                                              # what the second kubelet and containerd write
SECOND_SOCKET=/run/second/containerd.sock

second_ready() { kubectl_admin get node "$SECOND_NODE" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True; }
second_containerd_ready() { in_node ctr -a "$SECOND_SOCKET" version; }
first_offers() { [ "$(kubectl_admin get node "$NODE" -o 'jsonpath={.status.allocatable.cpu}')" = "${1}m" ]; }

second_node() {  # CPU [IMAGE...]
  local cpu=${1%m} reserved=${RESERVED_CPU%m} cores file
  if second_ready 2>/dev/null; then return; fi
  cores=$(nproc)
  mkdir -p "$SECOND"/{containerd,kubelet,logs}
  certificate second-kubelet "system:node:$SECOND_NODE" system:nodes ""
  kubeconfig "$CONFIGURATION/second-kubelet.kubeconfig" second-kubelet
  make_second_configuration $((1000 * cores - cpu))
  make_second_cgroup
  in_node mkdir -p "${SECOND_SOCKET%/*}"
  in_node "$SELF" __start second-containerd
  wait_for "containerd of $SECOND_NODE" 30 second-containerd second_containerd_ready
  for file in "$IMAGES/pause.tar" "${@:2}"; do in_node ctr -a "$SECOND_SOCKET" -n k8s.io images import "$(readlink -f "$file")" >/dev/null; done
  in_node "$SELF" __start second-kubelet
  first_node_reserves $((reserved + cpu))
  wait_for "node $SECOND_NODE" 60 second-kubelet second_ready
}

# What a machine that hangs is to the others: its connections stay, and nothing answers on them. `thaw` lets it go on.
signal_second_node() {  # STOP|CONT, inside the node
  local mount
  mount=$(cgroup_mounts | head -n 1)
  { cat /run/pids/second-kubelet /run/pids/second-containerd; find "$mount/$NAME/second" -name cgroup.procs -exec cat {} +; } |
    xargs kill -"$1"
}

one_node() {
  in_node "$SELF" __stop second-kubelet
  kubectl_admin delete node "$SECOND_NODE" --ignore-not-found >/dev/null   # its pods end with it
  in_node "$SELF" __stop second-containerd
  first_node_reserves "${RESERVED_CPU%m}"
}

first_node_reserves() {  # MILLICORES
  sed -i "s#^systemReserved: .*#systemReserved: {cpu: ${1}m}#" "$CONFIGURATION/kubelet.yaml"
  in_node "$SELF" __stop kubelet
  in_node "$SELF" __start kubelet
  wait_for "node $NODE with ${1}m reserved" 60 kubelet first_offers $((1000 * $(nproc) - $1))
}

make_second_configuration() {  # RESERVED_MILLICORES
  sed -e "s#$STATE/var/containerd#$SECOND/containerd#" -e "s#/run/containerd#${SECOND_SOCKET%/*}#" "$CONFIGURATION/containerd.toml" \
    >"$CONFIGURATION/second-containerd.toml"
  sed -e "s#^containerRuntimeEndpoint: .*#containerRuntimeEndpoint: unix://$SECOND_SOCKET#" -e "s#^cgroupRoot: .*#cgroupRoot: /$NAME/second#" \
    -e "s#^systemReserved: .*#systemReserved: {cpu: ${1}m}#" -e "s#^volumePluginDir: .*#volumePluginDir: $SECOND/kubelet/volumeplugins#" \
    "$CONFIGURATION/kubelet.yaml" >"$CONFIGURATION/second-kubelet.yaml"
  printf 'port: 10252\nhealthzPort: 10258\npodLogsDir: %s\n' "$SECOND/logs" >>"$CONFIGURATION/second-kubelet.yaml"
  command_line second-containerd containerd --config "$CONFIGURATION/second-containerd.toml" --log-level warn
  command_line second-kubelet "$BIN/kubelet" --config="$CONFIGURATION/second-kubelet.yaml" --root-dir="$SECOND/kubelet" \
    --kubeconfig="$CONFIGURATION/second-kubelet.kubeconfig" --hostname-override="$SECOND_NODE" --node-ip="$NODE_IP" --v=1
}

make_second_cgroup() {
  local mount file
  for mount in $(cgroup_mounts); do
    mkdir -p "$mount/$NAME/second"
    if ! [ -e "$mount/cpuset.mems" ] || cgroup_is_v2; then continue; fi
    for file in cpuset.cpus cpuset.mems; do cat "$mount/$NAME/$file" >"$mount/$NAME/second/$file"; done
  done
  if cgroup_is_v2; then v2_enable "/sys/fs/cgroup/$NAME/second"; fi
}
