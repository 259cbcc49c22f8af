"""The caches of the nodes, as the scenarios see them."""

import contextlib
import json

from conftest import RELEASE_NAMESPACE, ROOT
from machine import SECOND_NODE, delete_jobs, set_values
from slow_store import Store
from watch import condition

PODS = f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods"
CACHE = "app.kubernetes.io/component=cache"
COUNTED = {"hits": "hits_total{", "misses": "misses_total", "records": 'records{tier="disk"}', "refused": "refused_total{",
           "peers": "peers", "peer_hits": "peer_hits_total", "peer_errors": "peer_errors_total{", "announced": "announced_epochs_total"}  # fmt: skip


def daemon(bed, node=None):
    """The one pod, or the one of that node, once it is ready."""
    def ready():
        pods = [pod for pod in bed.cluster.items(PODS, labelSelector=CACHE) if not pod["metadata"].get("deletionTimestamp")]
        pods = [pod for pod in pods if node in (None, pod["spec"].get("nodeName"))]
        return pods[0] if pods and condition(pods[0], "Ready") else None

    return bed.wait_for("the cache's pod", ready)


@contextlib.contextmanager
def switched_on(bed):
    """The daemon's pod of a release that has the cache inside."""
    set_values(bed.cluster, {"cache.enabled": "true", "cache.storage.gibibytes": 1, "cache.memoryMebibytes": 128, "cache.cpu.request": "10m"})
    yield daemon(bed)
    set_values(bed.cluster, {"cache.enabled": "false"})


@contextlib.contextmanager
def on_two_nodes(bed, shared):
    """The first of two nodes, each of which has a daemon. `shared`: as the chart's cache.shared."""
    set_values(bed.cluster, {"cache.enabled": "true", "cache.shared": shared, "cache.storage.gibibytes": 1, "cache.memoryMebibytes": 0, "cache.cpu.request": "10m"})
    first = bed.machine.split()
    for each in (first, SECOND_NODE):
        daemon(bed, each)
    yield first
    delete_jobs(bed.cluster)
    bed.kubectl("cordon", SECOND_NODE)  # The operator's new pod would end with it.
    set_values(bed.cluster, {"cache.enabled": "false", "cache.shared": "node"})
    bed.wait_for("the end of the daemons", lambda: not bed.cluster.items(PODS, labelSelector=CACHE))
    bed.machine.unite()


@contextlib.contextmanager
def store_of_photographs(bed):
    """Slow, and the only one that has them. No job of an earlier test reads from it."""
    delete_jobs(bed.cluster)
    made = Store(bed.cluster, bed.site)
    made.stop()
    made.start()
    yield made
    made.stop()


def counted(bed, node=None):
    """What the daemon says of itself: sums over all labels."""
    text = bed.cluster.get_text(f"{PODS}/{daemon(bed, node)['metadata']['name']}:9464/proxy/metrics")
    values = dict.fromkeys(COUNTED, 0)
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        for key, series in COUNTED.items():
            if name == f"sluice_cache_node_{series}" or (series.endswith("{") and name.startswith(f"sluice_cache_node_{series}")):
                values[key] += float(value)
    return values


def gained(bed, before, node=None):
    return {key: value - before[key] for key, value in counted(bed, node).items()}


def shown(bed, of_peers):
    """How many queries the dashboard has of the daemons, or of what they ask each other. Each is answered in the end."""
    panels = json.loads((ROOT / "helm/sluice/dashboards/cluster.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"] if "sluice_cache_node_" in target["expr"]]
    expressions = [expression for expression in expressions if of_peers == any(name in expression for name in ("_peer", "_forwarded"))]
    for expression in expressions:
        bed.wait_for(expression, lambda asked=expression.replace("$__rate_interval", "60s"): bed.query(asked))
    return len(expressions)
