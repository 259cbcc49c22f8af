# settings.sh: the names, addresses and folders of one local cluster. Sourced after say.sh.
#
# CLUS_NAME and CLUS_INDEX together make a second cluster on the same machine possible.

NAME=${CLUS_NAME:-sluice-demo}            # also the names of the cgroup, of the veth's host end and of the node
STATE=${CLUS_STATE:-/var/lib/$NAME}       # everything the cluster writes; `down` removes it
INDEX=${CLUS_INDEX:-0}                    # 0..63: which address ranges
API_SERVER=kube-apiserver${CLUS_KUBE_APISERVER:+-$CLUS_KUBE_APISERVER}   # that of another version, from build-binaries.sh
RESERVED_CPU=${CLUS_RESERVED_CPU:-300m}   # kept for the control plane: allocatable = cores - this
LINK=10.250.$INDEX
HOST_IP=$LINK.1
NODE_IP=$LINK.2
POD_RANGE=10.$((200 - INDEX)).0.0/16
POD_SUBNET=10.$((200 - INDEX)).0.0/20     # of this one node: 4,000 addresses
SERVICE_RANGE=10.$((100 - INDEX)).0.0/16
SERVICE_IP=10.$((100 - INDEX)).0.1
DNS_IP=10.$((100 - INDEX)).0.10
NODE=$NAME-node
API=https://$NODE_IP:6443
PROMETHEUS=http://$NODE_IP:9090
LINK_NAME=$NAME-h                         # host end of the veth pair; Linux allows 15 characters

BIN=$SLUICE_CACHE/bin                     # build-binaries.sh
UNPACKED=$SLUICE_CACHE/packages           # toolchain/unpack.sh: Debian packages that are used without being installed
PKI=$STATE/pki
CONFIGURATION=$STATE/configuration
COMMANDS=$CONFIGURATION/commands          # one file per component, one argument per line
LOG=$STATE/log
RUN=$STATE/run
ADMIN_KUBECONFIG=$STATE/admin.kubeconfig
PATH=$UNPACKED/containerd/usr/bin:$UNPACKED/runc/usr/sbin:$PATH:/usr/sbin:/sbin
CNI_PLUGINS=$UNPACKED/containernetworking-plugins/usr/lib/cni

# Garbage collection is 15 % of the API server's CPU time, and a quarter of kubectl's. A fourth as often, it costs 0.4 GiB of memory more.
export GOGC=400
COMPONENTS="etcd containerd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy pod-targets prometheus"

kubectl_admin() { "$BIN/kubectl" --kubeconfig "$ADMIN_KUBECONFIG" "$@"; }

# Polls COMMAND. At the deadline, or as soon as a component has ended, shows the guilty log and fails.
wait_for() {  # WHAT SECONDS COMPONENT COMMAND...
  local what=$1 seconds=$2 component=$3 deadline attempt=0 ended
  shift 3
  deadline=$((${EPOCHREALTIME/[.,]/} + seconds * 1000000))
  until "$@" >/dev/null 2>&1; do
    if [ "${EPOCHREALTIME/[.,]/}" -gt $deadline ]; then give_up "$what: not within $seconds s" "$component"; fi
    attempt=$((attempt + 1))
    if [ $((attempt % 20)) = 0 ] && ended=$(in_node "$SELF" __ended 2>/dev/null) && [ -n "$ended" ]; then
      give_up "$what: $ended ended" "$ended"
    fi
    sleep 0.05
  done
  say "$what"
}

give_up() {  # WHAT COMPONENT
  printf '\n--- last lines of %s\n' "$LOG/$2.log" >&2
  tail -n 20 "$LOG/$2.log" >&2 || true
  fail "$1" "the lines above are from $2; CLUS_KEEP_FAILED=1 keeps $STATE for a look"
}
