"""The chart: lint, refusal of wrong values, least privilege, install and upgrade on the real cluster."""

import json
import re
import shutil
import subprocess

import pytest
from conftest import JOBS_NAMESPACE, RELEASE_NAMESPACE, ROOT
from console import DemoError
from machine import tool

CHART = str(ROOT / "helm/sluice")


def helm(*arguments):
    return subprocess.run([tool("helm"), *arguments], capture_output=True, text=True, check=False)


def test_lint():
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("setting, field", [
    ("replica=2", "replica"),
    ("replicas=0", "replicas"),
    ("decisionIntervalSeconds=0", "decisionIntervalSeconds"),
    ("metrics.url=prometheus:9090", "url"),
    ("metrics.queries.samples=up", "queries"),
    ("metrics.connection.token=x", "connection"),
    ("metrics.connection.headers.X Scope=a", "X Scope"),
    ("metrics.namespaceLabel=a-b", "namespaceLabel"),
    ("metrics.connection.serviceAccountToken=true,metrics.connection.bearerTokenSecret.name=t", "bearerTokenSecret"),
    ("metrics.connection.caSecret.name=a,metrics.connection.caConfigMap.name=b", "caConfigMap"),
    ("log.format=xml", "format"),
    ("image.pullPolicy=Sometimes", "pullPolicy"),
    ("watchNamespaces={Team_A}", "watchNamespaces"),
    ("scheduler.namespaceCaps.team-a.maxWeight=0", "maxWeight"),
    ("scheduler.namespaceCaps.team-a.workers=4", "workers"),
    ("scheduler.storages.nas.bytesPerSecond=1", "claims"),
    ("scheduler.storages.nas.claims={photos}", "bytesPerSecond"),
    ("bundle.resources.limits.memory=much", "memory"),
    (r"commonLabels.app\.kubernetes\.io/name=mine", "commonLabels"),
    (r"podLabels.app\.kubernetes\.io/component=mine", "podLabels"),
    ("image.jobPullSecrets={Mirror_Key}", "jobPullSecrets"),
    ("replicas=2,leaderElection.enabled=false", "leaderElection.enabled"),
    ("leaderElection.leaseSeconds=7", "leaseSeconds must exceed renewSeconds"),
    ("leaderElection.retrySeconds=9", "renewSeconds 1.2 times retrySeconds"),
    ("leaderElection.leaseSeconds=100000", "leaseSeconds"),
    ("metrics.staleSeconds=100000", "staleSeconds"),
    ("metrics.connection.username=reader", "passwordSecret.name"),
    ("metrics.connection.passwordSecret.name=reader", "username"),
    ("metrics.connection.username=a,metrics.connection.passwordSecret.name=b,metrics.connection.serviceAccountToken=true", "token"),
    ("metrics.connection.caSecret.name=a", "https://"),
    ("metrics.connection.proxyUrl=socks5://proxy:1080", "proxyUrl"),
    ("metrics.connection.clientCertificateSecret=a", "https://"),
    ("nodes.networkGigabits=10000000000", "networkGigabits"),
    ("scheduler.budgetPerHour=10000000000", "budgetPerHour"),
    ("resources.limits.memory=much", "/resources/limits/memory"),
    ("resources.limits.cpu.a=1", "/resources/limits/cpu"),
    ("resources.requests.cpu=true", "/resources/requests/cpu"),
    ("resources=7", "/resources"),
    ("tolerations.key=gpu", "/tolerations"),
    ("bundle.resources.limits.cpu=-1", "/bundle/resources/limits/cpu"),
    ("cache.storage.gibibytes=0", "gibibytes"),
    ("cache.storage.gibibytes=10Gi", "gibibytes"),
    ("cache.shared=nodes", "cache"),
    ("cache.memory=1Gi", "cache"),
    ("cache.rooms.vision.percent=140,cache.rooms.vision.namespaces={a}", "percent"),
    ("cache.rooms.vision.percent=40", "namespaces"),
])  # fmt: skip
def test_wrong_values_are_refused(setting, field):
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", setting)
    assert done.returncode != 0 and field in done.stderr


def test_a_null_is_as_if_nothing_had_been_said():
    groups = {key: None for key in ("resources", "log", "leaderElection", "nodes", "scheduler", "workers", "cache", "tolerations", "replicas")}
    as_it_is, nulls = (subprocess.run([tool("helm"), "template", "sluice", CHART, "--kube-version", "1.34.0", "-f", "-"], input=json.dumps(values),
                                      capture_output=True, text=True, check=False) for values in ({}, groups))  # fmt: skip
    assert nulls.returncode == 0 and nulls.stdout == as_it_is.stdout, nulls.stderr


def test_a_cluster_without_prometheus_is_taken():
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", "metrics.url=")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shared", ["node", "cluster"])
def test_rooms_reach_the_cache(shared):
    rooms = {"vision": {"percent": 40, "namespaces": ["a", "b"], "shared": True}, "audio": {"percent": 5, "namespaces": ["c"]}}
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", f"cache.enabled=true,cache.shared={shared}", "--set-json", f"cache.rooms={json.dumps(rooms)}")
    assert '- "--rooms=audio:5:c;vision:40:a,b:shared"' in done.stdout, done.stderr


def configuration(*settings):
    """The operator's configuration file, as the chart renders it."""
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--show-only", "templates/configmap.yaml", *settings)
    assert done.returncode == 0, done.stderr
    return [line.strip() for line in done.stdout.splitlines()]


@pytest.mark.parametrize("registry, image", [
    ("", "hub/sluice:1.2"),
    ("mirror.example:5000/cache", "mirror.example:5000/cache/hub/sluice:1.2"),
    ("mirror.example/", "mirror.example/hub/sluice:1.2"),
])  # fmt: skip
def test_a_mirror_is_named_once_for_all_pods(registry, image):
    settings = ("--set", f"image.registry={registry},image.repository=hub/sluice,image.tag=1.2,image.jobPullSecrets={{mirror}}")
    assert f'image: "{image}"' in configuration(*settings)
    assert 'imagePullSecrets: ["mirror"]' in configuration(*settings)
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--show-only", "templates/deployment.yaml", *settings)
    assert f'image: "{image}"' in done.stdout and "imagePullSecrets" not in done.stdout


def test_caps_and_sizes_reach_the_operator():
    lines = configuration("--set", "bundle.resources.requests.cpu=100m", "--set-json", 'scheduler.namespaceCaps={"team-a": {"maxWorkerCores": 2.5}}')
    assert lines[lines.index("namespaceCaps:") + 1 :][:2] == ["team-a:", "maxWorkerCores: 2.5"]
    assert 'bundle: {"limits":{"cpu":"250m","memory":"128Mi"},"requests":{"cpu":"100m","memory":"32Mi"}}' in lines


# What `helm upgrade --reuse-values` brings from the first release: none of the groups that came later.
FIRST_VALUES = {
    "image": {"repository": "sluice"},
    "decisionIntervalSeconds": 15,
    "metrics": {
        "url": "http://prometheus-operated.monitoring.svc:9090",
        "windowSeconds": 30,
        "staleSeconds": 60,
        "queries": {"samplesPerSecond": "sum by (job_namespace, training_job) (rate(sluice_trainer_samples_total[$window]))"},
    },
}


@pytest.fixture
def chart_with(tmp_path):
    """The chart as --reuse-values renders it: with exactly these values."""

    def render(values):
        chart = tmp_path / "chart"
        shutil.rmtree(chart, ignore_errors=True)
        shutil.copytree(CHART, chart)
        if values is not None:
            (chart / "values.yaml").write_text(json.dumps(values))
        done = helm("template", "sluice", str(chart), "--kube-version", "1.34.0")
        assert done.returncode == 0, done.stderr
        return done.stdout

    return render


def test_values_of_an_older_chart_are_completed(chart_with):
    assert chart_with(FIRST_VALUES) == chart_with(None)


@pytest.mark.parametrize("group, kept", [
    ({"networkPolicy": {"enabled": False}}, "kind: NetworkPolicy"),
    ({"dashboards": {"enabled": False}}, "kind: ConfigMap\nmetadata:\n  name: sluice-dashboard"),
    ({"workers": {"priorityClass": {"create": False}}}, "kind: PriorityClass"),
    ({"feeder": {"resize": {"enabled": False}}}, "pods/resize"),
    ({"workers": {"networkPolicy": {"enabled": False}}}, "networkPolicy: {enabled: true}"),
])  # fmt: skip
def test_what_an_older_release_switched_off_stays_off(chart_with, group, kept):
    assert kept in chart_with(FIRST_VALUES)
    assert kept not in chart_with(FIRST_VALUES | group)


def test_queries_of_the_users_are_kept_if_they_answer_with_the_namespace_of_the_scrape(chart_with):
    metrics = FIRST_VALUES["metrics"]
    own = {"samplesPerSecond": "my_rule"}
    assert "my_rule" in chart_with(FIRST_VALUES | {"metrics": metrics | {"queries": own, "namespaceLabel": "namespace"}})
    assert "my_rule" not in chart_with(FIRST_VALUES | {"metrics": metrics | {"queries": own}})


def test_every_template_completes_its_values():
    templates = [path for path in (ROOT / "helm/sluice/templates").iterdir() if path.suffix != ".tpl"]
    assert templates and not [path.name for path in templates if not path.read_text().startswith('{{- include "sluice.complete" . ')]


CONNECTION = {
    "metrics.url": "https://mimir.example/prometheus",
    "metrics.connection.bearerTokenSecret.name": "reader",
    "metrics.connection.caConfigMap.name": "authorities",
    "metrics.connection.clientCertificateSecret": "operator-tls",
    "metrics.connection.headers.X-Scope-OrgID": "team-a",
    "metrics.connection.proxyUrl": "http://proxy:3128",
}


def test_a_guarded_prometheus_is_reached_with_mounted_secrets():
    def made(template, settings):
        done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", ",".join(f"{k}={v}" for k, v in settings.items()), "--show-only", f"templates/{template}.yaml")
        assert done.returncode == 0, done.stderr
        return done.stdout

    configuration, deployment = made("configmap", CONNECTION), made("deployment", CONNECTION)
    connection = json.loads(next(line for line in configuration.splitlines() if "connection: " in line).split("connection: ")[1])
    assert connection.pop("headers") == {"X-Scope-OrgID": "team-a"}
    assert connection.pop("proxyUrl") == "http://proxy:3128"
    mounted = {f"/etc/sluice-prometheus/{file}" for file in ("token", "ca.crt", "tls.crt", "tls.key")}
    assert set(connection.values()) == mounted
    assert "mountPath: /etc/sluice-prometheus" in deployment
    for source in ("secret: {name: reader,", "configMap: {name: authorities,", "secret: {name: operator-tls,"):
        assert source in deployment
    assert "sluice-prometheus" not in made("deployment", {"metrics.url": "http://prometheus:9090"})


@pytest.mark.parametrize("settings, made, named", [
    ("replicas=1", "sluice-workers", "sluice-workers"),
    ("workers.priorityClass.name=idle", "idle", "idle"),
    ("workers.priorityClass.create=false,workers.priorityClass.name=idle", None, "idle"),
    ("workers.priorityClass.create=false", None, ""),
])  # fmt: skip
def test_workers_have_a_class_that_buys_no_nodes_and_takes_no_places(settings, made, named):
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", settings)
    assert done.returncode == 0, done.stderr
    classes = [text for text in done.stdout.split("\n---\n") if "kind: PriorityClass" in text]
    assert [f"\n  name: {made}\n" in text for text in classes] == ([True] if made else [])
    assert all("\nvalue: -100\npreemptionPolicy: Never\n" in text for text in classes)
    assert f'workers:\n      priorityClassName: "{named}"\n' in done.stdout


def test_alerts_are_the_rules_as_they_stand():
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--set", "alerts.enabled=true,alerts.labels.release=prom,alerts.runbookUrl=https://git.example/runbooks/", "--show-only", "templates/alerts.yaml")
    assert done.returncode == 0, done.stderr
    assert "runbook_url: https://git.example/runbooks/operator-does-not-decide.md" in done.stdout
    assert "kind: PrometheusRule" in done.stdout and "release: prom" in done.stdout
    rules, made = (" ".join(text.split()) for text in ((ROOT / "helm/sluice/alerts/sluice.yaml").read_text(), done.stdout))
    for word in ("SluiceDoesNotDecide", "SluiceJobWaitsForData", "{{ $labels.job_namespace }}", "{{ $value | humanizePercentage }}"):
        assert word in rules and word in made


def test_an_install_makes_no_map_of_what_was_learnt():
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--show-only", "templates/learnt.yaml")
    assert done.returncode == 0, done.stderr
    assert "name: sluice-learnt" in done.stdout and "helm.sh/hook: post-delete" in done.stdout
    assert "helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded" in done.stdout


def test_what_the_operator_has_learnt_outlives_upgrades_and_goes_with_the_release(bed):
    path = "/api/v1/namespaces/default/configmaps/other-learnt"
    learnt = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other-learnt", "namespace": "default"}, "data": {"a": "1"}})

    def change(verb, *arguments):
        done = helm(verb, "other", *arguments, "--kubeconfig", bed.cluster.kubeconfig, "--namespace", "default")
        assert done.returncode == 0, done.stderr
        return (bed.cluster.get(path) or {}).get("data")

    settings = (CHART, "--set", "crds.enabled=false,image.repository=registry.invalid/sluice")
    bed.kubectl("create", "-f", "-", input_text=learnt)  # of an earlier release of that name
    assert change("install", *settings) == {"a": "1"}
    bed.kubectl("delete", "configmap", "other-learnt", "-n", "default")
    as_operator = ("--as=system:serviceaccount:default:other-operator", "--field-manager=sluice-operator")
    bed.kubectl("apply", "--server-side", *as_operator, "-f", "-", input_text=learnt)  # without it the operator learns anew
    assert change("upgrade", *settings, "--set", "decisionIntervalSeconds=4") == {"a": "1"}
    assert change("rollback", "1") == {"a": "1"}
    assert change("uninstall") is None


def rendered(bed, *settings):
    """The chart's objects as the API server would store them."""
    done = helm("template", "other", CHART, "--kube-version", "1.34.0", "--namespace", "default", "--set", "crds.enabled=false", *settings)
    assert done.returncode == 0, done.stderr
    text, objects = bed.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", input_text=done.stdout), []
    while text := text.lstrip():  # kubectl prints one object after the other, not a list
        item, end = json.JSONDecoder().raw_decode(text)
        objects.append(item)
        text = text[end:]
    return objects


def rules(objects):
    return [rule for item in objects if item["kind"] in ("Role", "ClusterRole") for rule in item["rules"]]


def test_rights_hold_no_wildcard_and_no_listing_of_secrets(bed):
    for rule in rules(rendered(bed)):
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        if "secrets" in rule["resources"]:
            assert not {"list", "watch", "delete"} & set(rule["verbs"])


def test_with_named_namespaces_only_capacity_and_token_reviews_are_cluster_wide(bed):
    objects = rendered(bed, "--set", "watchNamespaces={default,kube-public}")
    cluster_wide = [item["roleRef"]["name"] for item in objects if item["kind"] == "ClusterRoleBinding"]
    assert sorted(cluster_wide) == ["other-operator-capacity", "other-operator-plan"]
    reviews = next(item for item in objects if item["kind"] == "ClusterRole" and item["metadata"]["name"].endswith("-plan"))
    assert rules([reviews]) == [{"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}]
    bound = [item["metadata"]["namespace"] for item in objects if item["kind"] == "RoleBinding" and item["roleRef"]["name"].endswith("-jobs")]
    assert bound == ["default", "kube-public"]
    capacity = next(item for item in objects if item["kind"] == "ClusterRole" and item["metadata"]["name"].endswith("-capacity"))
    assert rules([capacity]) == [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list", "watch"]}]


def test_every_container_of_the_chart_has_requests_and_limits(bed):
    deployments = [item for item in rendered(bed) if item["kind"] == "Deployment"]
    assert deployments
    for container in deployments[0]["spec"]["template"]["spec"]["containers"]:
        for bounds in ("requests", "limits"):
            assert set(container["resources"][bounds]) == {"cpu", "memory"}


def test_labels_and_annotations_that_a_cluster_demands(bed):
    settings = ["commonLabels.team=ml", "podLabels.inject=no", r"podAnnotations.prometheus\.io/scrape=false", r"serviceAccount.annotations.role=arn"]
    objects = rendered(bed, *(argument for setting in settings for argument in ("--set-string", setting)))
    own = [item for item in objects if item["kind"] != "CustomResourceDefinition"]
    assert own and not [item["metadata"]["name"] for item in own if item["metadata"]["labels"].get("team") != "ml"]
    (deployment,) = [item for item in own if item["kind"] == "Deployment"]
    pod, plain = deployment["spec"]["template"]["metadata"], next(item for item in rendered(bed) if item["kind"] == "Deployment")
    assert deployment["spec"]["selector"] == plain["spec"]["selector"] and pod["labels"]["inject"] == "no"
    assert pod["annotations"] == plain["spec"]["template"]["metadata"]["annotations"] | {"prometheus.io/scrape": "false"}
    accounts = [item["metadata"].get("annotations") for item in own if item["kind"] == "ServiceAccount"]
    assert {"role": "arn"} in accounts


def test_two_replicas_keep_apart_and_are_drained_one_by_one(bed):
    def of_kind(kind, *settings):
        return [item["spec"] for item in rendered(bed, *settings) if item["kind"] == kind]

    assert of_kind("PodDisruptionBudget") == [] and "affinity" not in of_kind("Deployment")[0]["template"]["spec"]
    two = ("--set", "replicas=2")
    budget, deployment = of_kind("PodDisruptionBudget", *two)[0], of_kind("Deployment", *two)[0]
    assert budget["maxUnavailable"] == 1 and budget["selector"] == deployment["selector"]
    (term,) = deployment["template"]["spec"]["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"] == deployment["selector"]
    preference = {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]}}
    own = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}
    assert of_kind("Deployment", *two, "--set-json", f"affinity={json.dumps(own)}")[0]["template"]["spec"]["affinity"] == own


@pytest.mark.parametrize("role, may, may_not", [
    ("view", ["get trainingjobs.sluice.dev", "list dataworkerpools.sluice.dev"], ["create trainingjobs.sluice.dev", "patch dataworkerpools.sluice.dev/scale"]),
    ("edit", ["get dataworkerpools.sluice.dev", "delete trainingjobs.sluice.dev", "patch dataworkerpools.sluice.dev/scale"],
     ["patch dataworkerpools.sluice.dev", "patch trainingjobs.sluice.dev/status"]),
])  # fmt: skip
def test_people_who_may_view_or_edit_a_namespace_may_so_with_its_training_jobs(bed, role, may, may_not):
    person = f"{role}er"
    bed.kubectl("create", "rolebinding", person, f"--clusterrole={role}", f"--user={person}", "-n", JOBS_NAMESPACE)
    try:
        for question in may:
            bed.wait_for(f"{question} by {person}", lambda question=question: allowed(bed, person, *question.split()))
        assert not [question for question in may_not if allowed(bed, person, *question.split())]
    finally:
        bed.kubectl("delete", "rolebinding", person, "-n", JOBS_NAMESPACE)


def allowed(bed, user, verb, resource):
    resource, _, subresource = resource.partition("/")
    question = [verb, resource, *([f"--subresource={subresource}"] if subresource else [])]
    try:
        return bed.kubectl("auth", "can-i", *question, f"--as={user}", "-n", JOBS_NAMESPACE).strip().endswith("yes")
    except DemoError:
        return False


def test_the_operator_may_do_what_it_needs_and_no_more(bed):
    account = f"system:serviceaccount:{RELEASE_NAMESPACE}:sluice-operator"
    assert allowed(bed, account, "create", "pods") and allowed(bed, account, "patch", "trainingjobs.sluice.dev/status")
    assert allowed(bed, account, "delete", "jobs.batch")  # A gang of which a rank fails is started again as a whole.
    assert allowed(bed, account, "patch", "secrets")  # Certificates are renewed.
    assert allowed(bed, account, "get", "persistentvolumeclaims")  # Workers elsewhere may not be able to mount them.
    assert allowed(bed, account, "get", "resourceclaimtemplates.resource.k8s.io")  # They say how many accelerators a trainer gets.
    assert allowed(bed, account, "delete", "networkpolicies.networking.k8s.io")  # They can be switched off.
    assert not any(allowed(bed, account, verb, resource) for verb, resource in [
        ("patch", "pods"), ("delete", "trainingjobs.sluice.dev"), ("delete", "services"), ("delete", "secrets"), ("list", "secrets"), ("list", "persistentvolumeclaims"), ("list", "resourceclaims.resource.k8s.io"), ("delete", "nodes"), ("update", "trainingjobs.sluice.dev"), ("create", "clusterroles"), ("get", "configmaps"), ("create", "pods/exec"),
    ])  # fmt: skip


def test_an_upgrade_restarts_the_operator_only_if_its_configuration_changed(bed):
    def operator_pod():
        pods = bed.cluster.items(f"/api/v1/namespaces/{RELEASE_NAMESPACE}/pods", labelSelector="app.kubernetes.io/component=operator")
        return {pod["metadata"]["name"] for pod in pods if not pod["metadata"].get("deletionTimestamp")}

    def upgrade(*settings):
        done = helm("upgrade", "sluice", CHART, "--kubeconfig", bed.cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE, "--reuse-values", "--wait", *settings)
        assert done.returncode == 0, done.stderr
        return operator_pod()

    before = operator_pod()
    assert upgrade("--set", "dashboards.folder=Other") == before
    assert not upgrade("--set", "decisionIntervalSeconds=4") & before
    upgrade("--set", "decisionIntervalSeconds=3")


@pytest.mark.parametrize("namespace", [JOBS_NAMESPACE, RELEASE_NAMESPACE])
def test_namespaces_enforce_restricted_pods(bed, namespace):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "root", "namespace": namespace}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    with pytest.raises(DemoError, match="violates PodSecurity"):
        bed.kubectl("create", "--dry-run=server", "-f", "-", input_text=json.dumps(pod))
