"""Every field of both kinds is changed to another valid value, to nothing, to an invalid value, and back (as Acto does).

After each change the children are those of a job that was made like that, and the status belongs to the new spec. After the way back everything is as
before. A refused change leaves no trace. The tables name every field of the schemas: a new field without a line in them fails.

Most of a change's time is waiting. So a few jobs share the fields, each changed by a thread of its own.
"""

import concurrent.futures
import copy
import json
import queue
import time

import pytest
from cluster_api import jobs_path
from conftest import JOBS_NAMESPACE
from console import DemoError

NAMES = [f"changed-{number}" for number in range(4)]
# The image does not exist: the trainer's pod waits, and nothing but our changes happens.
BASE = {
    "trainer": {"template": {"spec": {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "trainer", "image": "localhost/none:1", "imagePullPolicy": "Never", "resources": {"requests": {"cpu": "10m"}},
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}},
    "dataWorkers": {"max": 4, "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}, "template": {"metadata": {}, "spec": {}}},
    "mode": "Recommend",
}  # fmt: skip
IMMUTABLE = "immutable"
REST_SECONDS = 0.4  # two looks: what the operator does after it has called a spec observed would show in the second

# Of a pod template: field -> (valid, invalid).
POD_FIELDS = {
    "initContainers": ([{"name": "first", "image": "localhost/none:2"}], "x"),
    "volumes": ([{"name": "other", "emptyDir": {}}], {"a": {}}),
    "securityContext": ({"runAsUser": 65533}, "root"),
    "imagePullSecrets": ([{"name": "pull"}], "pull"),
    "tolerations": ([{"operator": "Exists"}], ["all"]),
    "hostAliases": ([{"ip": "127.0.0.1", "hostnames": ["x"]}], {"x": "127.0.0.1"}),
    "nodeSelector": ({"a": "b"}, {"a": 1}),
    "dnsConfig": ({"nameservers": ["127.0.0.1"]}, "127.0.0.1"),
}  # fmt: skip
# Of spec.dataWorkers.template, too, where these are the workers'.
WORKER_FIELDS = POD_FIELDS | {
    "initContainers": ([{"name": "sluice-bundle", "resources": {"limits": {"cpu": "1"}}}], "x"),
    "containers": ([{"name": "sluice-worker", "env": [{"name": "A", "value": "B"}]}], [{"name": 7}]),
    "affinity": ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}, "here"),
    "topologySpreadConstraints": ([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}], "zone"),
    "priorityClassName": ("low", 1),
    "serviceAccountName": ("trainer", ["trainer"]),
    "schedulerName": ("other", {}),
}  # fmt: skip
OF_OURS = ("initContainers", "volumes", "securityContext")  # what a worker's template says itself; the rest is "theirs"

# field -> (valid', invalid, what an empty one means). Empty: "default" (accepted), or a part of the refusal.
JOB_FIELDS = {
    "trainer.replicas": (2, 0, "default"),
    "trainer.container": ("trainer", "other", "default"),
    "trainer.elasticPolicy.minReplicas": (1, 2, "default"),
    "trainer.backoffLimit": (2, -1, "default"),
    "trainer.activeDeadlineSeconds": (60, 0, "default"),
    "trainer.ttlSecondsAfterFinished": (60, -1, "default"),
    "trainer.podFailurePolicy.rules": ([{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}], [{"action": "FailIndex"}], "default"),
    "trainer.successPolicy.rules": ([{"succeededIndexes": "0"}], [], "default"),
    "trainer.template.metadata.labels": ({"a": "b"}, "text", "default"),
    "trainer.template.metadata.annotations": ({"a": "b"}, {"a": 1}, "default"),
    "trainer.template.spec.restartPolicy": ("OnFailure", "Always", "default"),
    "trainer.template.spec.containers": ([{"name": "trainer", "image": "localhost/none:2"}], [], "Required"),
    "feeder.resources.requests": ({"cpu": "300m"}, {"cpu": "half"}, "default"),
    "feeder.resources.limits": ({"cpu": "500m"}, {"cpu": "1m"}, "default"),
    "feeder.arena": ("64Mi", "1Ki", "default"),
    "dataWorkers.min": (1, 9, "default"),
    "dataWorkers.max": (2, -1, "default"),
    "dataWorkers.resources.requests": ({"cpu": "20m"}, {"cpu": "0"}, "requests.cpu"),
    "dataWorkers.resources.limits": ({"cpu": "1"}, {"cpu": "1m"}, "default"),
    "dataWorkers.autoResources.cpu": ("500m", "1m", "default"),
    "dataWorkers.autoResources.firstMemory": ("64Mi", "much", "default"),
    "dataWorkers.autoResources.minMemory": ("64Mi", "1Mi", "default"),
    "dataWorkers.autoResources.maxMemory": ("2Gi", "1Mi", "default"),
    "dataWorkers.placement": ("Remote", "Elsewhere", "default"),
    "mode": ("Auto", "auto", "default"),
    "priority": (7, 1000001, "default"),
    "weight": (200, 0, "default"),
    "suspend": (True, "perhaps", "default"),
    **{f"trainer.template.spec.{name}": (*values, "default") for name, values in POD_FIELDS.items()},
    "dataWorkers.template.metadata.labels": ({"a": "b"}, "text", "default"),
    "dataWorkers.template.metadata.annotations": ({"a": "b"}, {"a": 1}, "default"),
    **{f"dataWorkers.template.spec.{name}": (*values, "default") for name, values in WORKER_FIELDS.items()},
}  # fmt: skip
# Of these, what is built into the trainer's pods when they are made does not follow later; all else does.
OF_THE_START = ("feeder.", "dataWorkers.placement")
POOL_FIELDS = {
    "jobName": ("other", "", "Required"),
    "replicas": (1, -1, "default"),
    "workerResources.requests": ({"cpu": "30m"}, {"cpu": "half"}, "restored"),
    "workerResources.limits": ({"cpu": "1"}, {"cpu": "half"}, "restored"),
    "template.metadata.labels": ({"a": "b"}, "text", "restored"),
    "template.metadata.annotations": ({"a": "b"}, {"a": 1}, "restored"),
    "template.spec.containers": ([{"name": "other", "image": "localhost/none:2"}], [], "Required"),
    **{f"template.spec.{name}": (*values, "restored" if name in OF_OURS else "theirs") for name, values in POD_FIELDS.items()},
}


def schema(bed, plural):
    crd = bed.cluster.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.sluice.dev")
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def fields(node, path=""):
    """The schema's leaves: what has no named members of its own; a list is one, whatever is in it."""
    found = []
    for name, child in node.get("properties", {}).items():
        found += fields(child, f"{path}.{name}" if path else name) if child.get("properties") else [f"{path}.{name}" if path else name]
    return found


def at(path, value):
    """The merge patch that sets spec.PATH."""
    for name in reversed(path.split(".")):
        value = {name: value}
    return {"spec": value}


def merged(base, patch):
    result = copy.deepcopy(base)
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merged(result[name], value)
        else:
            result[name] = value
    return result


class Subject:
    """A TrainingJob, its children, and what people do to them."""

    def __init__(self, bed, name):
        self.bed, self.name = bed, name

    def create(self, spec):
        manifest = {"apiVersion": "sluice.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": self.name, "namespace": JOBS_NAMESPACE}, "spec": spec}
        self.bed.cluster.apply(json.dumps(manifest))

    def delete(self):
        self.bed.kubectl("-n", JOBS_NAMESPACE, "delete", "trainingjob", self.name, "--ignore-not-found", "--cascade=foreground")

    def refusal(self, kind, patch):
        """Patches; the refusal's text, or an empty one."""
        try:
            self.bed.kubectl("-n", JOBS_NAMESPACE, "patch", kind, self.name, "--type=merge", "-p", json.dumps(patch))
        except DemoError as refused:
            return str(refused)
        return ""

    def get(self, group, plural, name=None):
        return self.bed.cluster.get(f"{group}/namespaces/{JOBS_NAMESPACE}/{plural}/{name or self.name}") or {}

    def job(self):
        return self.bed.cluster.get(jobs_path(JOBS_NAMESPACE, self.name)) or {}

    def pool(self):
        return self.get("/apis/sluice.dev/v1alpha1", "dataworkerpools")

    def workers(self):
        return [pod for pod in self.bed.pods("worker", self.name) if not pod["metadata"].get("deletionTimestamp")]

    def children(self):
        """What the operator made of the spec, without what differs from one job to the next."""
        trainer, service, pool = self.get("/apis/batch/v1", "jobs"), self.get("/api/v1", "services", f"{self.name}-workers"), self.pool()
        pod = trainer.get("spec", {}).get("template", {}).get("spec", {})
        text = json.dumps({
            "trainer's pods": pod,
            "trainer": {name: trainer.get("spec", {}).get(name) for name in ("completions", "parallelism", "suspend")},
            "service": {name: service.get("spec", {}).get(name) for name in ("ports", "selector")},
            "pool": pool.get("spec"), "workers": len(self.workers()),
        }, sort_keys=True)  # fmt: skip
        return json.loads(text.replace(f'"{self.name}', '"NAME'))

    def is_current(self):
        """Status and pool have caught up with the spec."""
        job, pool = self.job(), self.pool()
        caught_up = lambda item: item.get("status", {}).get("observedGeneration") == item.get("metadata", {}).get("generation", 0)  # noqa: E731
        return bool(pool) and caught_up(job) and caught_up(pool) and len(self.workers()) == pool["spec"]["replicas"]

    def settled(self):
        """The children, once the status is current and they have not changed for a moment."""
        seen = {"children": None, "since": 0.0}

        def holds():
            now = self.children()
            if now != seen["children"] or not self.is_current():
                seen.update(children=now, since=time.monotonic())
            return time.monotonic() - seen["since"] >= REST_SECONDS

        self.bed.wait_for(f"{self.name} to come to rest", holds, 60)
        return seen["children"]


@pytest.fixture(scope="module")
def subjects(bed):
    made = [Subject(bed, name) for name in NAMES]
    for subject in made:
        subject.delete()
        subject.create(BASE)
    for subject in made:
        bed.wait_for("the pool", subject.pool)
    yield made
    for subject in made:
        subject.delete()


@pytest.fixture(scope="module")
def subject(subjects, changes):
    """Of tests that change no field of a table: they begin when all of those are over."""
    concurrent.futures.wait(changes.values())
    return subjects[0]


@pytest.fixture(scope="module")
def changes(request, bed, subjects):
    """What comes of the change of each field, by its test and path: a future."""
    free = queue.SimpleQueue()
    for subject in subjects:
        free.put(subject)

    def change(function, path):
        subject = free.get()
        try:
            function(bed, subject, path)
        finally:
            free.put(subject)

    functions = {test_a_field_of_a_training_job: change_field_of_job, test_what_the_operator_owns_of_a_pool_is_put_right: change_field_of_pool}
    chosen = [(item.function, item.callspec.params["path"]) for item in request.session.items if getattr(item, "function", None) in functions]
    pool = concurrent.futures.ThreadPoolExecutor(len(subjects))
    yield {(test, path): pool.submit(change, functions[test], path) for test, path in chosen}
    pool.shutdown(cancel_futures=True)


def fresh_children(bed, subject, spec):
    """Of a job that was made like that."""
    twin = Subject(bed, f"{subject.name}-twin")
    twin.create(spec)
    try:
        bed.wait_for("the twin's pool", twin.pool)
        return twin.settled()
    finally:
        twin.delete()
        bed.wait_for("the twin's end", lambda: not twin.job() and not twin.pool())


def test_the_tables_name_every_field(bed):
    assert sorted(fields(schema(bed, "trainingjobs"))) == sorted(JOB_FIELDS)
    assert sorted(fields(schema(bed, "dataworkerpools"))) == sorted(POOL_FIELDS)


@pytest.mark.parametrize("path", JOB_FIELDS)
def test_a_field_of_a_training_job(changes, path):
    changes[test_a_field_of_a_training_job, path].result()


@pytest.mark.parametrize("path", [path for path in POOL_FIELDS if path != "replicas"])
def test_what_the_operator_owns_of_a_pool_is_put_right(changes, path):
    changes[test_what_the_operator_owns_of_a_pool_is_put_right, path].result()


def change_field_of_job(bed, subject, path):
    valid, invalid, empty = JOB_FIELDS[path]
    before, generation = subject.settled(), subject.job()["metadata"]["generation"]
    original = subject.job()["spec"]

    def refused_without_a_trace(patch, part):
        refusal = subject.refusal("trainingjob", patch)
        assert part in refusal, f"{patch}: {refusal or 'accepted'}"
        assert subject.job()["metadata"]["generation"] == generation and subject.children() == before

    refused_without_a_trace(at(path, invalid), path.split(".")[0])
    if path.startswith("trainer."):
        refused_without_a_trace(at(path, valid), IMMUTABLE)
        return
    if path.startswith("dataWorkers.autoResources."):
        refused_without_a_trace(at(path, valid), "leave one of them out")
        return

    # To another value: the children of a job that was changed are those of one that was made so.
    assert subject.refusal("trainingjob", at(path, valid)) == ""
    changed = subject.settled()
    fresh = fresh_children(bed, subject, merged(BASE, at(path, valid)["spec"]))
    if path.startswith(OF_THE_START):
        fresh["trainer's pods"] = before["trainer's pods"]
    assert changed == fresh

    # To nothing.
    refusal = subject.refusal("trainingjob", at(path, None))
    assert refusal == "" if empty == "default" else empty in refusal
    subject.settled()

    # And back, member by member, because a patch merges.
    value = original
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(valid, dict) and isinstance(value, dict):
        value = {**{name: None for name in valid}, **value}
    assert subject.refusal("trainingjob", at(path, value)) == ""
    assert subject.settled() == before
    assert subject.job()["spec"] == original


def test_workers_whose_size_is_left_to_sluice_and_back(bed, subject):
    before, resources = subject.settled(), BASE["dataWorkers"]["resources"]
    bounds = {path.split(".")[-1]: values[0] for path, values in JOB_FIELDS.items() if path.startswith("dataWorkers.autoResources.")}
    assert subject.refusal("trainingjob", at("dataWorkers", {"resources": None, "autoResources": bounds})) == ""
    changed = subject.settled()
    assert changed["pool"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "64Mi"}
    assert changed == fresh_children(bed, subject, {**BASE, "dataWorkers": {"max": 4, "autoResources": bounds}})
    assert subject.refusal("trainingjob", at("dataWorkers", {"resources": resources, "autoResources": None})) == ""
    assert subject.settled() == before


def test_the_number_of_workers_follows_and_comes_back(bed, subject):
    before = subject.settled()
    for replicas in (2, 1, None, 0):
        assert subject.refusal("dataworkerpool", at("replicas", replicas)) == ""
        bed.wait_for(f"{replicas} workers", lambda wanted=replicas or 0: len(subject.workers()) == wanted)
    assert "spec.replicas" in subject.refusal("dataworkerpool", at("replicas", -1))
    assert subject.settled() == before


def change_field_of_pool(bed, subject, path):
    valid, invalid, empty = POOL_FIELDS[path]
    # The operator restores the same pool more slowly each time. With another spec of its own it begins anew.
    assert subject.refusal("trainingjob", at("dataWorkers.template.metadata.annotations", {"sluice.test/field": path})) == ""
    before = subject.settled()
    refusal = subject.refusal("dataworkerpool", at(path, invalid))
    assert path.split(".")[0] in refusal, refusal or "accepted"
    assert subject.settled() == before
    refusal = subject.refusal("dataworkerpool", at(path, None))
    assert refusal == "" if empty in ("restored", "theirs") else empty in refusal
    bed.wait_for("the pool's template", lambda: subject.settled() == before)
    refusal = subject.refusal("dataworkerpool", at(path, valid))
    if path == "jobName":
        assert IMMUTABLE in refusal
    elif path.startswith("template.metadata.") or empty == "theirs":
        # What others add is theirs: it stays beside ours until they take it away.
        assert refusal == "" and subject.refusal("dataworkerpool", at(path, None if empty == "theirs" else {"a": None})) == ""
    bed.wait_for("the pool as it was", lambda: subject.settled() == before)
    assert subject.refusal("trainingjob", at("dataWorkers.template.metadata.annotations", None)) == ""
