"""A small world for cluster_facts_test.py: nodes that differ from each other by one fact, and jobs that want workers on them.

No kubelet stands behind these nodes. Their taint keeps all pods away but the data workers of these jobs, which tolerate it. A LimitRange makes the
API server refuse workers with 9 GiB of memory. So such a worker never exists, and every plan names the node that it would have.
"""

import dataclasses
import json
import time

import jobs
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE, ROOT
from console import run
from machine import RELEASE, tool

BUDGETED, QUOTED = "facts-budgeted", "facts-quoted"  # namespaces with a budget and caps, and with a ResourceQuota
BUDGET, NAMESPACE_BUDGET = 3.75, 1.5
CAPS = {"maxPriority": 5, "maxWeight": 200}
GOLD_PRICE = 400
# Vision can read less than the disk gives, and far more than the archive does.
STORAGES = {"disk": {"bytesPerSecond": 1e12, "claims": [f"{JOBS_NAMESPACE}/datasets"]}, "archive": {"bytesPerSecond": 1, "claims": [f"{JOBS_NAMESPACE}/archive"]}}
QUOTA_MILLICORES = 1400  # its trainer and one worker
PRICE, GIGABITS, GATE = "example.com/price", "example.com/gigabits", "example.com/quota"
ZONE, HOST, SPOT, TYPE = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "karpenter.sh/capacity-type", "node.kubernetes.io/instance-type"
REFUSED_MEMORY, ALLOWED_MEMORY, DEFAULT_MEMORY = "9Gi", "8Gi", "48Mi"
EPOCHS = 2000  # that vision announces; it is deleted long before


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    pool: str
    cpu: str = "4"
    memory: str = "64Gi"
    labels: dict = dataclasses.field(default_factory=dict)
    taints: tuple = ()
    cordoned: bool = False
    gpus: int = 0

    def manifest(self, cordoned):
        labels = {"facts": self.pool, HOST: self.name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", **self.labels}
        taints = [{"key": "facts", "value": "only", "effect": "NoSchedule"}, *self.taints]
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}, "spec": {"taints": taints, "unschedulable": cordoned}}

    def state(self):
        """As a kubelet says it every few seconds; the cluster gives a node up that is silent for long."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        resources = {"cpu": self.cpu, "memory": self.memory, "pods": "110", **({"nvidia.com/gpu": str(self.gpus)} if self.gpus else {})}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}, "status": status}


NODES = [
    # Of the job `careful`. Only the first takes its workers, two of them: each other one lacks one thing.
    Node("facts-good", "careful", cpu="3"),
    Node("facts-tainted", "careful", taints=({"key": "maintenance", "value": "yes", "effect": "NoSchedule"},)),
    Node("facts-cordoned", "careful", cordoned=True),
    Node("facts-small", "careful", cpu="900m"),
    Node("facts-forgetful", "careful", memory="4Gi"),
    Node("facts-gold", "careful", labels={TYPE: "gold"}),
    Node("facts-priced", "priced", cpu="8", labels={PRICE: "8"}),
    Node("facts-contested", "contested", cpu="2"),
    Node("facts-a1", "zoned", labels={ZONE: "a"}),
    Node("facts-a2", "zoned", labels={ZONE: "a"}),
    Node("facts-b1", "zoned", cpu="1", labels={ZONE: "b"}),
    Node("facts-steady", "fleeting"),
    Node("facts-spot", "fleeting", labels={SPOT: "spot"}),
    Node("facts-open", "open", cpu="16", gpus=4),
    Node("facts-slow", "linked", labels={GIGABITS: "0.000001"}),
    Node("facts-fast", "linked", cpu="1", labels={GIGABITS: "100"}),
]
# What several jobs want opens at once, when all of them run: who comes first shall not matter.
OPENED = {"priced", "contested"}

# A pod that is on a node, though nothing runs there.
FILLER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "facts-filler", "namespace": BUDGETED},
    "spec": {
        "nodeName": "facts-good",
        "containers": [{"name": "filler", "image": "localhost/none:1", "resources": {"requests": {"cpu": "700m", "memory": "256Mi"}}}],
    },
}
SLEEPER = {
    "name": "trainer", "image": "localhost/sluice-trainer:demo", "imagePullPolicy": "Never",
    "command": ["/usr/bin/python3.11", "-c", "import time; time.sleep(600)"],
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    "resources": {"requests": {"cpu": "10m"}},
}  # fmt: skip


def job(name, namespace, pool, workers, cpu="1", memory=REFUSED_MEMORY, template=None, gpus=0, **spec):
    """A TrainingJob whose trainer runs and computes nothing, and which wants so many workers on the nodes of the pool."""
    resources = {"requests": {"cpu": cpu, **({"memory": memory} if memory else {})}}
    pod = {"nodeSelector": {"facts": pool}, "tolerations": [{"key": "facts", "operator": "Exists"}], **(template or {})}
    trainer = {**SLEEPER, "resources": {**SLEEPER["resources"], "limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else SLEEPER
    security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    # Kubernetes 1.34 resizes no container of a pod with resources of its own: the free CPU of their host is for vision.
    trainer_pod = {"terminationGracePeriodSeconds": 1, "securityContext": security, "resources": {"requests": {"cpu": "40m"}}, "containers": [trainer]}
    data_workers = {"min": workers, "max": 8, "resources": resources, "template": {"metadata": {"labels": {"facts": name}}, "spec": pod}}
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "trainer": {"template": {"spec": trainer_pod}},
            "feeder": {"arena": "16Mi", "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}}},
            **spec,
            "dataWorkers": {**data_workers, **spec.get("dataWorkers", {})},
        },
    }


def of_label(name):
    return {"labelSelector": {"matchLabels": {"facts": name}}}


APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, **of_label("fleeting")}]}}}
BY_ZONE = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **of_label("zoned")}]}
JOBS = [
    job("careful", BUDGETED, "careful", 3),
    job("thrifty", BUDGETED, "priced", 3, priority=9),  # counts as 5, by the cap
    job("first", BUDGETED, "contested", 2, priority=4),
    job("second", BUDGETED, "contested", 2, weight=300),  # counts as 200, by the cap
    job("zoned", BUDGETED, "zoned", 5, template=BY_ZONE),
    job("frugal", QUOTED, "open", 3),
    job("dear", JOBS_NAMESPACE, "priced", 4),
    job("advised", JOBS_NAMESPACE, "open", 2, mode="Recommend"),
    job("fleeting", JOBS_NAMESPACE, "fleeting", 2, cpu="500m", memory=None, template=APART),
    job("gated", JOBS_NAMESPACE, "open", 3, cpu="500m", memory=None, template={"schedulingGates": [{"name": GATE}]}),
    job("idle", JOBS_NAMESPACE, "open", 0, gpus=2, suspend=True, weight=50, dataWorkers={"placement": "Local", "max": 3}),
]
RUNNING = [each["metadata"]["name"] for each in JOBS if "suspend" not in each["spec"]]


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def limits(name):
    bounds = {"type": "Container", "max": {"memory": ALLOWED_MEMORY}, "default": {"memory": "2Gi"}, "defaultRequest": {"memory": DEFAULT_MEMORY}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "facts", "namespace": name}, "spec": {"limits": [bounds]}}


QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "facts", "namespace": QUOTED},
    "spec": {"hard": {"requests.cpu": f"{QUOTA_MILLICORES}m"}},
}


def vision(site):
    """The job that trains. Its feeder takes the free CPU of the cluster's own node."""
    arguments = ["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(EPOCHS), "--announce", str(EPOCHS)]
    return jobs.without_pod_share(jobs.manifest("vision", jobs.PHASES[2], site, arguments=arguments))


def documents(objects):
    return "\n---\n".join(json.dumps(each) for each in objects)


def helm(bed, *arguments):
    run([tool("helm"), *arguments, "--kubeconfig", bed.machine.kubeconfig, "--namespace", RELEASE_NAMESPACE, "--wait", "--timeout", "120s"],
        f"kubectl -n {RELEASE_NAMESPACE} describe pods", capture="all")  # fmt: skip


def set_values(bed):
    values = {"scheduler.budgetPerHour": BUDGET, "scheduler.namespaceBudgets": {BUDGETED: NAMESPACE_BUDGET}, "scheduler.namespaceCaps": {BUDGETED: CAPS},
              "nodes.priceLabel": PRICE, "nodes.prices": {"gold": GOLD_PRICE}, "nodes.networkLabel": GIGABITS,
              "scheduler.storages": STORAGES, "feeder.resize.enabled": True}  # fmt: skip
    settings = [word for key, value in values.items() for word in ("--set-json", f"{key}={json.dumps(value)}")]
    helm(bed, "upgrade", RELEASE, str(ROOT / "helm/sluice"), "--reuse-values", *settings)


def show_life(bed):
    bed.kubectl("apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-", input_text=documents(node.state() for node in NODES))


def make(bed):
    bed.cluster.apply(documents([namespace(BUDGETED), namespace(QUOTED), QUOTA, *(limits(name) for name in (JOBS_NAMESPACE, BUDGETED, QUOTED)),
                                 *(node.manifest(node.cordoned or node.pool in OPENED) for node in NODES)]))  # fmt: skip
    show_life(bed)
    bed.cluster.apply(vision(bed.site))
    bed.cluster.apply(documents([FILLER, *JOBS]))


def say_ready(bed, names):
    """Of pods on these nodes."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}})
    bed.kubectl("-n", JOBS_NAMESPACE, "patch", "pod", *names, "--subresource=status", "--type=strategic", "-p", ready)


def open_contested(bed):
    bed.cluster.apply(documents(node.manifest(False) for node in NODES if node.pool in OPENED))


def remove(bed):
    """Whatever of it is there. Pods on these nodes have no kubelet that would end them."""
    for each in (JOBS_NAMESPACE, BUDGETED, QUOTED):
        names = [made["metadata"]["name"] for made in JOBS if made["metadata"]["namespace"] == each]
        bed.kubectl("-n", each, "delete", "trainingjob", *names, "--ignore-not-found", "--wait=false")
    bed.kubectl("delete", "node", *(node.name for node in NODES), "--ignore-not-found", "--wait=false")
    for each in (JOBS_NAMESPACE, BUDGETED):
        bed.kubectl("-n", each, "delete", "pods", "-l", "facts", "--force", "--grace-period=0", "--ignore-not-found")
    bed.kubectl("-n", BUDGETED, "delete", "pod", FILLER["metadata"]["name"], "--force", "--grace-period=0", "--ignore-not-found")
    bed.kubectl("-n", JOBS_NAMESPACE, "delete", "limitrange", "facts", "--ignore-not-found")
    bed.kubectl("delete", "namespace", BUDGETED, QUOTED, "--ignore-not-found", "--timeout=60s")
