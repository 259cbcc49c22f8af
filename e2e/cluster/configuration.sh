# configuration.sh: writes the configuration files from the templates in configuration/, and the command line of every
# component. Sourced after settings.sh.
#
# The command lines are files, so that a component restarted hours later gets the very same arguments.

render() {  # TEMPLATE: replaces @WORD@ by the setting of that name
  local words=() word
  for word in NAME STATE NODE NODE_IP PKI CONFIGURATION CNI_PLUGINS POD_SUBNET POD_RANGE DNS_IP RESERVED_CPU SNAPSHOTTER OPEN_FILES; do
    words+=(-e "s#@$word@#${!word}#g")
  done
  sed "${words[@]}" "$HERE/configuration/$1"
}

make_configuration() {
  local SNAPSHOTTER=overlayfs OPEN_FILES template
  OPEN_FILES=$(ulimit -Hn)
  if [ "$(stat -f -c %T "$STATE")" = overlayfs ]; then SNAPSHOTTER=native; fi     # overlay does not stack on overlay
  mkdir -p "$CONFIGURATION/pod-network" "$COMMANDS"
  for template in kubelet.yaml containerd.toml kube-proxy.yaml coredns.yaml prometheus.yaml; do
    render "$template" >"$CONFIGURATION/$template"
  done
  render pods.conflist >"$CONFIGURATION/pod-network/10-pods.conflist"
  : >"$CONFIGURATION/resolv.conf"                            # nothing outside the cluster is to be asked
  make_commands
}

command_line() {  # COMPONENT ARGUMENT...
  printf '%s\n' "${@:2}" >"$COMMANDS/$1"
}

make_commands() {
  command_line etcd "$BIN/etcd" --name "$NODE" --data-dir "$STATE/var/etcd" --log-level warn --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 --listen-metrics-urls http://127.0.0.1:2381 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster "$NODE=http://127.0.0.1:2380"

  command_line containerd containerd --config "$CONFIGURATION/containerd.toml" --log-level warn

  command_line kube-apiserver "$BIN/$API_SERVER" --etcd-servers=http://127.0.0.1:2379 \
    --bind-address="$NODE_IP" --advertise-address="$NODE_IP" --secure-port=6443 --service-cluster-ip-range="$SERVICE_RANGE" \
    --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
    --kubelet-client-certificate="$PKI/apiserver-kubelet.crt" --kubelet-client-key="$PKI/apiserver-kubelet.key" \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-signing-key-file="$PKI/service-accounts.key" --service-account-key-file="$PKI/service-accounts.pub" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true --anonymous-auth=true \
    --requestheader-client-ca-file="$PKI/front-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-extra-headers-prefix=X-Remote-Extra- --requestheader-group-headers=X-Remote-Group \
    --requestheader-username-headers=X-Remote-User \
    --proxy-client-cert-file="$PKI/front-client.crt" --proxy-client-key-file="$PKI/front-client.key" --profiling=false

  # The client limits matter: with the built-in 20 requests a second, 500 pods take 90 s instead of 4. So does the
  # binder's period: a claim that is seen before its volume waits for the next one, 15 s by default.
  local limits=(--leader-elect=false --kube-api-qps=300 --kube-api-burst=600 --profiling=false --bind-address=127.0.0.1)
  local file=$CONFIGURATION/controller-manager.kubeconfig
  command_line kube-controller-manager "$BIN/kube-controller-manager" "${limits[@]}" \
    --kubeconfig="$file" --authentication-kubeconfig="$file" --authorization-kubeconfig="$file" --use-service-account-credentials=true \
    --service-account-private-key-file="$PKI/service-accounts.key" --root-ca-file="$PKI/ca.crt" --client-ca-file="$PKI/ca.crt" \
    --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" --requestheader-client-ca-file="$PKI/front-ca.crt" \
    --pvclaimbinder-sync-period=1s --allocate-node-cidrs=false --flex-volume-plugin-dir=/var/lib/kubelet/volumeplugins

  file=$CONFIGURATION/scheduler.kubeconfig
  command_line kube-scheduler "$BIN/kube-scheduler" "${limits[@]}" \
    --kubeconfig="$file" --authentication-kubeconfig="$file" --authorization-kubeconfig="$file"

  command_line kubelet "$BIN/kubelet" --config="$CONFIGURATION/kubelet.yaml" --kubeconfig="$CONFIGURATION/kubelet.kubeconfig" \
    --hostname-override="$NODE" --node-ip="$NODE_IP" --v=1

  command_line kube-proxy "$BIN/kube-proxy" --config="$CONFIGURATION/kube-proxy.yaml" --v=1

  command_line prometheus "$UNPACKED/prometheus/usr/bin/prometheus" --config.file="$CONFIGURATION/prometheus.yaml" \
    --storage.tsdb.path="$STATE/var/prometheus" --storage.tsdb.retention.time=1d --web.listen-address="$NODE_IP:9090" \
    --web.console.templates=/nonexistent --web.console.libraries=/nonexistent --log.level=warn

  command_line pod-targets /usr/bin/python3 "$HERE/pod_targets.py" --server "$API" --ca "$PKI/ca.crt" \
    --certificate "$PKI/prometheus.crt" --key "$PKI/prometheus.key" --out "$STATE/var/prometheus-targets/pods.json"
}
