#!/bin/bash
# cluster.sh: a real single-node Kubernetes without Docker, systemd or a registry.
#
#   cluster.sh up               start everything; returns when the node, CoreDNS and Prometheus are ready
#   cluster.sh up --control-plane
#                               start etcd, the API server, the controllers and the scheduler only: no pod will run
#   cluster.sh down             stop and remove everything
#   cluster.sh status           components, node, pods
#   cluster.sh env              prints `export KUBECONFIG=...`; for eval
#   cluster.sh load FILE...     import OCI archives, e.g. those of image.py
#   cluster.sh exec CMD...      run CMD inside the node (ctr, nft, ip ...)
#   cluster.sh start|stop|kill|restart COMPONENT
#   cluster.sh second-node CPU [FILE...]
#                               so much of the node's CPU (600m) becomes a second node, with these OCI archives
#   cluster.sh freeze|thaw      the second node hangs, with all of its pods, and goes on
#   cluster.sh one-node         takes it away again, and gives the first node its CPU back
#   cluster.sh gpus N           advertise N nvidia.com/gpu on the node (for counting; there is no device)
#   cluster.sh leftovers        list what is on the machine because of the cluster; fails if there is anything
#
# Components: etcd containerd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy
#   pod-targets (tells Prometheus which pods to scrape) prometheus.
# Environment: CLUS_NAME, CLUS_INDEX, CLUS_STATE, CLUS_RESERVED_CPU, CLUS_KUBE_APISERVER (settings.sh), SLUICE_CACHE; CLUS_KEEP_FAILED=1 keeps
# the state folder of a failed `up`.
set -euo pipefail

SELF=$(readlink -f "${BASH_SOURCE[0]}")
HERE=$(dirname "$SELF")
. "$HERE/../../toolchain/say.sh"
for part in settings cgroups node requirements certificates configuration images second_node leftovers; do . "$HERE/$part.sh"; done

api_ready() { curl -sf --max-time 2 --cacert "$PKI/ca.crt" --cert "$PKI/admin.crt" --key "$PKI/admin.key" "$API/readyz"; }
node_ready() { kubectl_admin get node "$NODE" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -q True; }
dns_ready() {
  kubectl_admin -n kube-system get pods -l k8s-app=kube-dns -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}' | grep -q True
}
prometheus_ready() { curl -sf --max-time 2 "$PROMETHEUS/-/ready"; }
gpus_allocatable() { [ "$(kubectl_admin get node "$NODE" -o 'jsonpath={.status.allocatable.nvidia\.com/gpu}')" = "$1" ]; }
containerd_ready() { in_node ctr version; }

is_up() { node_pid >/dev/null && [ -f "$RUN/complete" ]; }

# One cluster action at a time. The lock is on the state folder itself, so it leaves no file.
lock_state() {
  mkdir -p "$STATE"
  exec 8<"$STATE"
  flock -w "$1" 8 || fail "another cluster.sh is at work on $STATE" "wait for it, or end it"
}

undo_unfinished_up() {  # on any way out of an `up` that did not get through
  local status=$?
  trap '' INT TERM HUP
  trap - EXIT
  if [ "${CLUS_KEEP_FAILED:-}" = 1 ]; then stop_node; else remove_all; fi
  say "up was not completed: everything made so far is removed again" >&2
  exit $((status == 0 ? 1 : status))
}

up() {  # [--control-plane]
  local workloads=true
  if [ "${1:-}" = --control-plane ]; then workloads=false; fi
  require_root up
  if is_up; then say "$NAME is already up: export KUBECONFIG=$ADMIN_KUBECONFIG"; return; fi
  if ! node_pid >/dev/null; then check_requirements; fi                # they do not hold beside a half-made cluster
  trap '' INT TERM HUP                                                 # from here to the traps: the folder would stay
  lock_state 1
  trap undo_unfinished_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  clear_state
  mkdir -p "$CONFIGURATION" "$LOG" "$RUN" "$STATE"/var/{containerd,prometheus,prometheus-targets}
  make_certificates
  make_configuration
  make_images
  say "certificates, configuration, images"
  start_node
  connect_node
  in_node "$SELF" __start etcd kube-apiserver
  if $workloads; then start_containerd; fi                             # while the API server starts
  start_control_plane
  if $workloads; then start_workloads; fi
  touch "$RUN/complete"
  trap '' INT TERM HUP                                                 # too late: a shell that dies now would leave a cluster and say it failed
  trap - EXIT
  say "up: export KUBECONFIG=$ADMIN_KUBECONFIG (API $API$($workloads && echo ", Prometheus $PROMETHEUS"))"
}

start_node() {
  SLUICE_CLUSTER_NODE=$STATE setsid unshare --mount --net --pid --uts --ipc --fork --kill-child=KILL \
    "$SELF" __main </dev/null >"$LOG/node.log" 2>&1 8<&- &
  # Written at once: were this script killed now, `down` must still find the node.
  echo "$! $(start_time $!)" >"$RUN/outer.pid"
  disown                                                               # its end is no news to this shell
  wait_for "namespaces of the node" 15 node node_pid
}

# One veth pair and two routes: the host reaches the API server, every pod and every Service directly, and pods reach
# the host at $HOST_IP. There is no default route: nothing can leave the machine.
connect_node() {
  local pid
  pid=$(node_pid)
  ip link add "$LINK_NAME" type veth peer name eth0 netns "$pid"
  ip address add "$HOST_IP/30" dev "$LINK_NAME"
  ip link set "$LINK_NAME" up
  in_node ip address add "$NODE_IP/30" dev eth0
  in_node ip link set eth0 up
  # A packet made on the node is routed before it is translated, so Service addresses need a route as well.
  in_node ip route add "$SERVICE_RANGE" dev eth0
  ip route add "$POD_RANGE" via "$NODE_IP" dev "$LINK_NAME"
  ip route add "$SERVICE_RANGE" via "$NODE_IP" dev "$LINK_NAME"
}

start_containerd() {
  in_node "$SELF" __start containerd
  wait_for "containerd" 30 containerd containerd_ready
  load "$IMAGES/pause.tar" "$IMAGES/coredns.tar"
}

start_control_plane() {
  wait_for "API server" 90 kube-apiserver api_ready
  in_node "$SELF" __start kube-controller-manager kube-scheduler
}

start_workloads() {
  in_node "$SELF" __start kubelet kube-proxy
  kubectl_admin apply --server-side -f "$CONFIGURATION/coredns.yaml" -f "$HERE/configuration/prometheus-access.yaml" >/dev/null
  in_node "$SELF" __start pod-targets prometheus
  wait_for "node $NODE" 90 kubelet node_ready
  wait_for "CoreDNS" 90 kubelet dns_ready
  wait_for "Prometheus" 60 prometheus prometheus_ready
}

stop_node() {
  local pid started attempt pids
  if [ -f "$RUN/outer.pid" ]; then
    read -r pid started <"$RUN/outer.pid"
    if [ "$(start_time "$pid")" = "$started" ]; then kill -KILL "$pid" 2>/dev/null || true; fi
  fi
  if pid=$(node_pid); then kill -KILL "$pid" 2>/dev/null || true; fi   # the kernel ends the rest of its pid namespace
  for attempt in $(seq 100); do                                        # a little later, and until then they make cgroups
    pids=$(node_processes)
    [ -n "$pids" ] || break
    xargs kill -KILL <<<"$pids" 2>/dev/null || true
    sleep 0.05
  done
  cgroup_remove
  if ip link show "$LINK_NAME" >/dev/null 2>&1; then ip link delete "$LINK_NAME" 2>/dev/null || true; fi
  remove_mount_points
  rm -f "$RUN"/{outer.pid,node.pid,mount-points-made,complete}
}

# What a cluster left that was killed, or switched off with its machine. A new one on its etcd would meet the old one's objects:
# jobs that run on, releases half installed, and finalizers that no controller takes away.
clear_state() {
  stop_node
  find "$STATE" -mindepth 1 -delete                                    # the folder itself is what `lock_state` holds
}

remove_all() {
  stop_node
  rm -rf "$STATE"
}

down() {
  require_root down
  if [ -d "$STATE" ]; then lock_state 60; fi
  trap '' INT TERM HUP                                                 # being half down is worse than a second's wait
  remove_all
  say "$NAME is down"
}

load() {
  local file
  for file in "$@"; do
    [ -f "$file" ] || fail "no image archive $file" "build it first (image.py writes such archives)"
    in_node ctr -n k8s.io images import "$(readlink -f "$file")" >/dev/null
  done
}

status() {
  if ! node_pid >/dev/null; then echo "$NAME: down"; return 1; fi
  in_node "$SELF" __status
  kubectl_admin --request-timeout=5s get nodes -o wide
  kubectl_admin --request-timeout=5s get pods --all-namespaces -o wide
}

gpus() {
  kubectl_admin patch node "$NODE" --subresource=status --type=json \
    -p "[{\"op\": \"add\", \"path\": \"/status/capacity/nvidia.com~1gpu\", \"value\": \"$1\"}]" >/dev/null
  wait_for "$1 nvidia.com/gpu allocatable" 30 kubelet gpus_allocatable "$1"
}

component() {  # ACTION COMPONENT
  case " $COMPONENTS " in *" ${2:-} "*) ;; *) fail "no component '${2:-}'" "one of: $COMPONENTS" ;; esac
  case $1 in
    start) in_node "$SELF" __start "$2" ;;
    stop) in_node "$SELF" __stop "$2" ;;
    kill) in_node "$SELF" __stop "$2" KILL ;;
    restart) in_node "$SELF" __stop "$2" && in_node "$SELF" __start "$2" ;;
  esac
}

usage() { sed -n '2,/^set /{/^#/p}' "$SELF" | sed 's/^# \{0,1\}//'; }

main() {
  local action=${1:-}
  [ $# = 0 ] || shift
  case $action in
    up) up "$@" ;;
    down) down ;;
    status) require_root status; status ;;
    env) echo "export KUBECONFIG=$ADMIN_KUBECONFIG" ;;
    load) require_root load; load "$@" ;;
    exec) require_root exec; in_node "$@" ;;
    start | stop | kill | restart) require_root "$action"; component "$action" "$@" ;;
    gpus) gpus "${1:?gpus N}" ;;
    freeze) require_root freeze; in_node "$SELF" __signal_second STOP ;;
    thaw) require_root thaw; in_node "$SELF" __signal_second CONT ;;
    one-node) require_root one-node; one_node ;;
    second-node) require_root second-node; second_node "${1:?second-node CPU}" "${@:2}" ;;
    leftovers) require_root leftovers; leftovers ;;
    __main) node_main ;;                                               # the rest is called inside the node
    __start) for component in "$@"; do component_start "$component"; done ;;
    __stop) component_stop "$@" ;;
    __signal_second) signal_second_node "$1" ;;
    __ended) component_ended ;;
    __status) component_status ;;
    *) usage; exit 2 ;;
  esac
}

main "$@"
exit
