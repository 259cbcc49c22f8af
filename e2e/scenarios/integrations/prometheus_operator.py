"""Sluice beside the real Prometheus operator: its Prometheus scrapes what the chart's PodMonitor selects, and loads the chart's alerts.

`make test-integrations` runs it; `make test` does not, since the operator takes minutes to build.
"""

import json
import subprocess

import pytest
from conftest import JOBS_NAMESPACE, MANY_EPOCHS, RELEASE_NAMESPACE, ROOT
from machine import RELEASE, cache_folder, delete_jobs, run, tool
from watch import condition

NAMESPACE = "monitoring"
STACK = "stack"  # the label by which this Prometheus knows its monitors and rules, as kube-prometheus-stack has it
GROUP = "monitoring.coreos.com"
ACCOUNT = "rbac.authorization.k8s.io/v1"


def image(name):
    """Loads an image with that one program. Returns its name."""
    archive, cluster = cache_folder() / f"images/{name}.tar", ROOT / "e2e/cluster"
    full = f"localhost/{name}:dev"
    run([str(word) for word in ("/usr/bin/python3", cluster / "image.py", "--name", full, "--out", archive, "--add", f"{tool(name)}:/bin/{name}",
                                "--entrypoint", f"/bin/{name}")], "see above", capture="all")  # fmt: skip
    run([str(cluster / "cluster.sh"), "load", str(archive)], "see above", capture="all")
    return full


def named(version, kind, name, namespace=NAMESPACE, **body):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **body}


def account(name, role):
    """A service account with a cluster role."""
    return [named("v1", "ServiceAccount", name),
            named(ACCOUNT, "ClusterRoleBinding", name, None, roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                  subjects=[{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}])]  # fmt: skip


def operator(own_image, reloader_image):
    container = {"name": "operator", "image": own_image, "imagePullPolicy": "Never", "args": [f"--prometheus-config-reloader={reloader_image}"],
                 "resources": {"requests": {"cpu": "10m"}}}  # fmt: skip
    labels = {"app": "operator"}
    template = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "operator", "containers": [container]}}
    return named("apps/v1", "Deployment", "operator", spec={"selector": {"matchLabels": labels}, "template": template})


def prometheus(own_image, version):
    everywhere, ours = {}, {"matchLabels": {"release": STACK}}
    return named(f"{GROUP}/v1", "Prometheus", STACK, spec={
        "image": own_image, "imagePullPolicy": "Never", "version": version, "replicas": 1, "serviceAccountName": "prometheus",
        "podMonitorSelector": ours, "podMonitorNamespaceSelector": everywhere, "ruleSelector": ours, "ruleNamespaceSelector": everywhere,
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}}, "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "fsGroup": 2000},
    })  # fmt: skip


class Monitoring:
    """The real operator and a Prometheus of its making, on the bed's cluster."""

    def __init__(self, bed):
        self.bed = bed

    def install(self):
        version = subprocess.run([tool("prometheus"), "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
        own, *made = [image(name) for name in ("prometheus", "prometheus-operator", "prometheus-config-reloader")]
        self.bed.kubectl("apply", "--server-side", "-f", str(cache_folder() / "charts/prometheus-operator"))
        reader = named(ACCOUNT, "ClusterRole", "pod-reader", None, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}])
        self.apply([named("v1", "Namespace", NAMESPACE, None), reader, *account("operator", "cluster-admin"), *account("prometheus", "pod-reader"),
                    operator(*made)])  # fmt: skip
        self.bed.kubectl("-n", NAMESPACE, "rollout", "status", "deployment/operator", "--timeout=180s")
        self.apply([prometheus(own, f"v{version}")])
        self.bed.wait_for("Prometheus", lambda: self.bed.cluster.get(f"/api/v1/namespaces/{NAMESPACE}/services/prometheus-operated"))
        self.bed.kubectl("-n", NAMESPACE, "rollout", "status", f"statefulset/prometheus-{STACK}", "--timeout=180s")

    def uninstall(self):
        self.bed.kubectl("-n", NAMESPACE, "delete", f"prometheuses.{GROUP}", STACK, "--ignore-not-found", "--timeout=60s")
        self.bed.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s")
        self.bed.kubectl("delete", "clusterrolebinding/operator", "clusterrolebinding/prometheus", "clusterrole/pod-reader")
        self.bed.kubectl("delete", "-f", str(cache_folder() / "charts/prometheus-operator"), "--timeout=60s")

    def apply(self, things):
        self.bed.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": things}))

    def ask(self, path):
        """The `data` of Prometheus' own answer, through the API server."""
        url = f"/api/v1/namespaces/{NAMESPACE}/services/prometheus-operated:9090/proxy/api/v1/{path}"
        return json.loads(self.bed.cluster.get_text(url))["data"]

    def targets(self):
        """The pod and the health of each that is scraped."""
        return [(target["labels"]["pod"], target["health"]) for target in self.ask("targets?state=active")["activeTargets"]]


@pytest.fixture(scope="module")
def monitoring(bed):
    monitoring = Monitoring(bed)
    monitoring.install()
    settings = {"podMonitor.enabled": "true", "podMonitor.labels.release": STACK, "alerts.enabled": "true", "alerts.labels.release": STACK,
                "metrics.url": f"http://prometheus-operated.{NAMESPACE}.svc:9090"}  # fmt: skip
    run([tool("helm"), "upgrade", RELEASE, str(ROOT / "helm/sluice"), "--kubeconfig", bed.cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE,
         "--reuse-values", "--wait", "--timeout", "120s", *(word for each in settings.items() for word in ("--set", "=".join(each)))],
        f"kubectl -n {RELEASE_NAMESPACE} describe pods", capture="all")  # fmt: skip
    yield monitoring
    delete_jobs(bed.cluster)
    bed.machine.install(bed.cluster)
    monitoring.uninstall()


def test_a_starved_job_gets_workers_from_what_the_pod_monitor_scrapes(bed, monitoring):
    bed.start_numbered(MANY_EPOCHS, min_workers=0, digest="sampled")
    bed.wait_for("the metrics", lambda: condition(bed.job(), "MetricsAvailable"), 120)
    bed.wait_for("workers", lambda: bed.ready_workers() > 0, 120)
    pods = {pod["metadata"]["name"] for component in ("trainer", "worker") for pod in bed.pods(component)}
    bed.wait_for("their targets", lambda: {pod for pod, health in monitoring.targets() if health == "up"} >= pods)
    scraped = [pod for pod, _ in monitoring.targets()]
    assert len(scraped) == len(set(scraped)), scraped
    # The operator believes the namespace of the scrape.
    series = monitoring.ask("query?query=sluice_trainer_samples_total")["result"]
    assert series and {each["metric"]["namespace"] for each in series} == {JOBS_NAMESPACE}, series


def test_the_operator_itself_is_scraped_and_its_alerts_are_loaded(bed, monitoring):
    operators = [pod["metadata"]["name"] for pod in bed.cluster.items(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods")]
    bed.wait_for("its target", lambda: {(name, "up") for name in operators} <= set(monitoring.targets()))

    def rules():
        return [rule for group in monitoring.ask("rules")["groups"] for rule in group["rules"]]

    bed.wait_for("the rules", lambda: rules() and all(rule["health"] == "ok" for rule in rules()), 120)
    loaded = {rule["name"] for rule in rules()}
    written = bed.cluster.items(f"/apis/{GROUP}/v1/namespaces/{RELEASE_NAMESPACE}/prometheusrules")[0]
    assert loaded == {rule.get("alert") or rule["record"] for group in written["spec"]["groups"] for rule in group["rules"]}
