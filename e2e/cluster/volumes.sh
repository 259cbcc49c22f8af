#!/bin/bash
# volumes.sh NAMESPACE: prints the volumes the demo's pods of a namespace use, for `kubectl apply -f -`.
#
# Two read-only claims: `python`, the virtual environment, to be mounted at its own path $SLUICE_CACHE/venv, and
# `datasets`, to be mounted at /data. Pod Security `restricted` forbids hostPath volumes in pods but not claims, so
# the folders come in as PersistentVolumes, each reserved for one claim.
set -euo pipefail

HERE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
. "$HERE/../../toolchain/say.sh"

volume() {  # NAMESPACE CLAIM FOLDER
  cat <<END
apiVersion: v1
kind: PersistentVolume
metadata: {name: sluice-demo-$1-$2, labels: {app.kubernetes.io/part-of: sluice-demo}}
spec:
  storageClassName: ""
  capacity: {storage: 20Gi}
  accessModes: [ReadOnlyMany]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: $3, type: Directory}
  claimRef: {namespace: $1, name: $2}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: $2, namespace: $1, labels: {app.kubernetes.io/part-of: sluice-demo}}
spec:
  storageClassName: ""
  volumeName: sluice-demo-$1-$2
  accessModes: [ReadOnlyMany]
  resources: {requests: {storage: 20Gi}}
---
END
}

[ $# = 1 ] || { sed -n '2,6p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//'; exit 2; }
volume "$1" python "$SLUICE_CACHE/venv"
volume "$1" datasets "$SLUICE_CACHE/datasets"
