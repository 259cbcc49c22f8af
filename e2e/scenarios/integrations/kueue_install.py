"""The real Kueue on the local cluster: it is installed, given queues and removed. e2e/cluster/build-binaries.sh builds it."""

import json
import subprocess
import time

from console import DemoError
from machine import CLUSTER, JOBS_NAMESPACE, cache_folder, run, tool
from watch import condition

KUEUE_NAMESPACE = "kueue-system"
QUEUES = "kueue.x-k8s.io/v1beta2"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def configuration(every_job):
    return json.dumps({
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "manageJobsWithoutQueueName": every_job,
        "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": JOBS_NAMESPACE}},
        "integrations": {"frameworks": ["batch/job", "pod"]},
    })  # fmt: skip


class Kueue:
    """The real one, on the local cluster."""

    def __init__(self, cluster):
        self._cluster = cluster

    def load_image(self):
        archive = cache_folder() / "images/kueue.tar"
        run([str(word) for word in ("/usr/bin/python3", CLUSTER / "image.py", "--name", "localhost/kueue:dev", "--out", archive,
                                    "--add", f"{tool('kueue')}:/manager", "--entrypoint", "/manager")], "see above", capture="all")  # fmt: skip
        run([str(CLUSTER / "cluster.sh"), "load", str(archive)], "see above", capture="all")

    def install(self, every_job=False):
        image = "controllerManager.manager.image"
        values = {f"{image}.repository": "localhost/kueue", f"{image}.tag": "dev", f"{image}.pullPolicy": "Never",
                  "controllerManager.manager.resources.requests.cpu": "20m"}  # fmt: skip
        settings = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
        run([tool("helm"), "upgrade", "--install", "kueue", str(cache_folder() / "charts/kueue"), "--kubeconfig", self._cluster.kubeconfig,
             "--namespace", KUEUE_NAMESPACE, "--create-namespace", "--wait", "--timeout", "300s", *settings,
             "--set-literal", f"managerConfig.controllerManagerConfigYaml={configuration(every_job)}"],
            f"kubectl -n {KUEUE_NAMESPACE} describe pods", capture="all")  # fmt: skip

    def uninstall(self):
        """First the objects that Kueue itself must let go, by their finalizers."""
        for kind in ("localqueues", "clusterqueues", "resourceflavors"):
            self._cluster.kubectl("delete", f"{kind}.kueue.x-k8s.io", "--all", "--all-namespaces", "--timeout=60s")
        subprocess.run([tool("helm"), "uninstall", "kueue", "--kubeconfig", self._cluster.kubeconfig, "--namespace", KUEUE_NAMESPACE],
                       capture_output=True, check=False)  # fmt: skip

    def queue(self, name, millicores, priorities=False):
        """A queue of the jobs' namespace with so much CPU. `priorities`: who is more important takes it from the others."""
        resources = [{"name": "cpu", "nominalQuota": f"{millicores}m"}, {"name": "memory", "nominalQuota": "100Gi"}]
        preemption = {"withinClusterQueue": "LowerPriority"} if priorities else {}
        for kind, namespaced, spec in [
            ("ResourceFlavor", None, {}),
            ("ClusterQueue", None, {"namespaceSelector": {}, "preemption": preemption, "resourceGroups": [
                {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": resources}]}]}),
            ("LocalQueue", JOBS_NAMESPACE, {"clusterQueue": name}),
        ]:  # fmt: skip
            metadata = {"name": name, **({"namespace": namespaced} if namespaced else {})}
            self.apply({"apiVersion": QUEUES, "kind": kind, "metadata": metadata, "spec": spec})

    def apply(self, thing):
        """Kueue's webhook answers a moment after its Deployment is ready."""
        deadline = time.monotonic() + 120
        while True:
            try:
                return self._cluster.apply(json.dumps(thing))
            except DemoError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(2)

    def admitted(self, kind):
        """The names of the objects of that kind whose Workload has its quota."""
        workloads = self._cluster.items(f"/apis/{QUEUES}/namespaces/{JOBS_NAMESPACE}/workloads")
        return {owner["name"] for workload in workloads if condition(workload, "Admitted")
                for owner in workload["metadata"].get("ownerReferences", []) if owner["kind"] == kind}  # fmt: skip


def queued(text, queue, workers_queue=None):
    """A manifest of the demo's whose trainer, and maybe whose workers, wait in a queue."""
    assert text.count("metadata:\n  name: vision\n") == 1 and text.count("  dataWorkers:\n") == 1
    if queue:
        text = text.replace("metadata:\n  name: vision\n", f"metadata:\n  name: vision\n  labels: {{{QUEUE_LABEL}: {queue}}}\n")
    if workers_queue:
        labels = {"metadata": {"labels": {QUEUE_LABEL: workers_queue}}}
        text = text.replace("  dataWorkers:\n", f"  dataWorkers:\n    template: {json.dumps(labels)}\n")
    return text
