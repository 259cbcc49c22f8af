# certificates.sh: two certificate authorities, the leaf certificates of every component and the kubeconfigs made of
# them. Sourced after settings.sh. EC P-256 throughout: all of it takes about a second.

certificate() {  # NAME COMMON_NAME ORGANISATION ALTERNATIVE_NAMES [AUTHORITY]
  local name=$1 common_name=$2 organisation=$3 alternatives=$4 authority=${5:-ca}
  if [ -f "$PKI/$name.crt" ]; then return; fi
  openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$name.key"
  openssl req -new -key "$PKI/$name.key" -subj "${organisation:+/O=$organisation}/CN=$common_name" -out "$PKI/$name.csr"
  openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/$authority.crt" -CAkey "$PKI/$authority.key" -CAcreateserial -days 3650 -sha256 \
    -out "$PKI/$name.crt" 2>/dev/null \
    -extfile <(printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature,keyEncipherment\nextendedKeyUsage=clientAuth,serverAuth\n%s' \
                      "${alternatives:+subjectAltName=$alternatives}")
  rm "$PKI/$name.csr"
}

authority() {  # NAME
  if [ -f "$PKI/$1.crt" ]; then return; fi
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=$NAME-$1" \
    -addext keyUsage=critical,keyCertSign,cRLSign -addext basicConstraints=critical,CA:TRUE \
    -keyout "$PKI/$1.key" -out "$PKI/$1.crt" 2>/dev/null
}

kubeconfig() {  # FILE CERTIFICATE
  (umask 077 && cat >"$1") <<END
apiVersion: v1
kind: Config
clusters: [{name: $NAME, cluster: {server: "$API", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}}]
users: [{name: $2, user: {client-certificate-data: $(base64 -w0 "$PKI/$2.crt"), client-key-data: $(base64 -w0 "$PKI/$2.key")}}]
contexts: [{name: $NAME, context: {cluster: $NAME, user: $2}}]
current-context: $NAME
END
}

make_certificates() {
  local service=kubernetes.default.svc component
  mkdir -p "$PKI"
  chmod 700 "$PKI"
  authority ca
  authority front-ca
  if ! [ -f "$PKI/service-accounts.key" ]; then
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/service-accounts.key"
    openssl ec -in "$PKI/service-accounts.key" -pubout -out "$PKI/service-accounts.pub" 2>/dev/null
  fi
  certificate apiserver kube-apiserver "" \
    "DNS:kubernetes,DNS:kubernetes.default,DNS:$service,DNS:$service.cluster.local,DNS:localhost,IP:127.0.0.1,IP:$NODE_IP,IP:$SERVICE_IP"
  certificate apiserver-kubelet kube-apiserver-kubelet-client system:masters ""
  certificate front-client front-proxy-client "" "" front-ca
  certificate admin kubernetes-admin system:masters ""
  certificate controller-manager system:kube-controller-manager "" ""
  certificate scheduler system:kube-scheduler "" ""
  certificate proxy system:kube-proxy "" ""
  certificate kubelet "system:node:$NODE" system:nodes ""
  certificate kubelet-server "$NODE" "" "DNS:$NODE,IP:$NODE_IP,IP:127.0.0.1"
  certificate prometheus sluice-demo-prometheus "" ""       # may only read pods: configuration/prometheus-access.yaml
  for component in controller-manager scheduler proxy kubelet; do
    kubeconfig "$CONFIGURATION/$component.kubeconfig" "$component"
  done
  kubeconfig "$ADMIN_KUBECONFIG" admin
}
