"""The cache of a node: what one job has read, the next one of its namespace finds; no other namespace does, and no job minds its loss."""

import subprocess

import jobs
import pytest
from cache_daemons import counted, daemon, gained, shown, switched_on
from chart_test import CHART, helm
from conftest import JOBS_NAMESPACE, NUMBERED, RELEASE_NAMESPACE, ROOT
from machine import RELEASE, delete_jobs, namespace_manifest
from watch import condition, log_events

STRANGERS = "sluice-strangers"
EPOCHS = 2
# A file that was never read is asked for as coefficients and as bytes. Hits of a first job tell nothing: the feeder begins the next epoch before it
# knows that there is none, and late batches are made twice. Both find what the epoch has left.
FORMS = 2


def rendered(*settings):
    done = helm("template", "sluice", CHART, "--kube-version", "1.34.0", "--namespace", "there", *(word for each in settings for word in ("--set", each)))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_it_nothing_of_it_is_there():
    objects = [text for text in rendered().split("\n---\n") if "sluice-cache" in text or "component: cache" in text]
    assert len(objects) == 1 and "helm.sh/hook: post-delete,post-upgrade,post-rollback\n" in objects[0]
    assert "kind: Secret\nmetadata:\n  name: sluice-cache-tls\n" in objects[0], "an upgrade takes away what was made while it was on"
    assert "helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded" in objects[0]


def test_the_chart_makes_it_as_large_as_its_values_say():
    here = rendered("cache.enabled=true", "cache.storage.gibibytes=200", "cache.memoryMebibytes=2048", "cache.nodeSelector.disk=fast")
    for expected in ("emptyDir: {sizeLimit: 200Gi}", "ephemeral-storage: 200Gi", f"--bytes={200 * 966367641}", f"--memory-bytes={2048 << 20}",
                     "memory: 3136Mi", "internalTrafficPolicy: Local", "disk: fast", "address: sluice-cache.there.svc:7473"):  # fmt: skip
        assert expected in here, expected
    assert 0.89 < 200 * 966367641 / (200 << 30) < 0.9001
    volume = rendered("cache.enabled=true", "cache.storage.storageClassName=local-disks")
    assert "emptyDir" not in volume and "ephemeral-storage" not in volume
    assert "storageClassName: local-disks" in volume and "requests: {storage: 20Gi}" in volume


def test_nodes_share_their_caches_only_where_the_values_say_so():
    alone, together = rendered("cache.enabled=true"), rendered("cache.enabled=true", "cache.shared=cluster")
    for expected in ("name: sluice-cache-peers", "clusterIP: None", "--peers=sluice-cache-peers.there.svc:7473", "--own-address=$(POD_IP)", "fieldPath: status.podIP"):
        assert expected in together and expected not in alone, expected
    added = [line.strip() for line in together.splitlines() if line not in alone.splitlines()]
    assert len(added) == 6, added


def epochs_of(bed, namespace=JOBS_NAMESPACE, epochs=1, meanwhile=lambda: None):
    """Trains over the numbered images, and gives the digests of all batches by epoch."""
    text = jobs.manifest("vision", jobs.PHASES[2], bed.site, digest="full", arguments=["--data", f"/data/numbered-{NUMBERED}", "--epochs", str(epochs)])
    form = "            env:\n"
    assert text.count(form) == 1 and text.count(f"namespace: {JOBS_NAMESPACE}") == 1
    # The images lie on a fast disk, so only what is dearer to make than to read is kept.
    text = text.replace(form, form + "              - {name: SLUICE_CACHE_FORM, value: transcoded}\n")
    bed.cluster.apply(text.replace(f"namespace: {JOBS_NAMESPACE}", f"namespace: {namespace}"))
    there = f"/apis/sluice.dev/v1alpha1/namespaces/{namespace}/trainingjobs/vision"
    pods = f"/api/v1/namespaces/{namespace}/pods"

    def result():
        meanwhile()
        job = bed.cluster.get(there)
        assert not condition(job, "Failed"), job
        if not condition(job, "Succeeded"):
            return None
        (pod,) = bed.cluster.items(pods, labelSelector="sluice.dev/job=vision,sluice.dev/component=trainer")
        return log_events(bed.cluster.get_text(f"{pods}/{pod['metadata']['name']}/log", container="trainer"))[-1]

    found = bed.wait_for("the job's end", result, 150)
    assert found["complete"] and found["samples"] == epochs * NUMBERED, found
    bed.kubectl("-n", namespace, "delete", "trainingjob", "vision", "--timeout=60s")
    return [epoch["digest"] for epoch in found["epochs"]]


@pytest.fixture(scope="module")
def without(bed):
    """What the batches are without a cache."""
    delete_jobs(bed.cluster)
    return epochs_of(bed, epochs=EPOCHS)


@pytest.fixture(scope="module")
def cache(bed, without):
    secret = f"/api/v1/namespaces/{RELEASE_NAMESPACE}/secrets/{RELEASE}-cache-tls"
    with switched_on(bed) as made:
        yield made
        assert bed.cluster.get(secret)
    assert not bed.cluster.get(secret)


def test_a_second_job_finds_what_the_first_one_has_left(bed, without, cache):
    assert epochs_of(bed) == without[:1]
    first = counted(bed)
    assert first["records"] == NUMBERED and first["misses"] >= FORMS * NUMBERED and first["refused"] == 0, first
    assert epochs_of(bed) == without[:1]
    second = gained(bed, first)
    assert second["hits"] >= NUMBERED and second["records"] == 0, second


def test_the_dashboard_shows_what_the_daemon_does(bed, cache):
    assert shown(bed, of_peers=False) == 3


def test_a_job_of_another_namespace_finds_nothing_of_it(bed, without, cache):
    volumes = subprocess.run([ROOT / "e2e/cluster/volumes.sh", STRANGERS], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True).stdout
    bed.cluster.apply(namespace_manifest(STRANGERS) + volumes)
    bed.cluster.apply(jobs.scripts_config_map(STRANGERS))
    try:
        before = counted(bed)
        assert before["records"] >= NUMBERED
        assert epochs_of(bed, STRANGERS) == without[:1]
        strangers = gained(bed, before)
        assert strangers["records"] == NUMBERED and strangers["misses"] >= FORMS * NUMBERED, strangers
    finally:
        bed.kubectl("delete", "namespace", STRANGERS, "--timeout=120s")
        bed.kubectl("delete", "persistentvolume", f"sluice-demo-{STRANGERS}-python", f"sluice-demo-{STRANGERS}-datasets")


def test_a_job_goes_on_when_the_daemon_is_killed(bed, without, cache):
    before, killed = counted(bed)["hits"], []

    def kill_in_the_middle():
        if not killed and bed.samples() > NUMBERED // 2:
            assert counted(bed)["hits"] > before
            killed.append(daemon(bed)["metadata"]["name"])
            bed.kubectl("-n", RELEASE_NAMESPACE, "delete", "pod", killed[0], "--grace-period=0", "--force")

    assert epochs_of(bed, epochs=EPOCHS, meanwhile=kill_in_the_middle) == without
    assert killed and daemon(bed)["metadata"]["name"] != killed[0]
    assert epochs_of(bed) == without[:1]
    assert counted(bed)["records"] >= NUMBERED  # The pod that came in its place is used.
