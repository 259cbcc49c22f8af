"""The TrainingJobs of the demo and their variants: templates in jobs/, filled in here."""

import dataclasses
import json
import pathlib
import re
import string

HERE = pathlib.Path(__file__).resolve().parent
PACED_STORE = HERE.parents[1] / "bench/data_plane/paced_store.py"
NAMES = ["vision", "speech", "text"]
NEIGHBOUR = "neighbour"  # of the fourth situation alone: own_cores.py
NEIGHBOUR_CORES = 0.8  # at least
PHOTOS = ["photos-1", "photos-2"]  # of the fifth: slow_store.py


@dataclasses.dataclass(frozen=True)
class Phase:
    """One way to feed the same jobs."""

    key: str
    title: str
    loader: str
    mode: str
    lowering: str


PHASES = [
    Phase("a", "plain PyTorch DataLoader on the trainer's own CPU share", "torch", "Off", "on"),
    Phase("b", "Sluice, every pipeline in the Python executor", "sluice", "Auto", "off"),
    Phase("c", "Sluice as shipped", "sluice", "Auto", "on"),
]


@dataclasses.dataclass(frozen=True)
class Work:
    """What a job trains on; equal in all phases."""

    dataset: str  # e2e/datasets/<dataset>.py
    size: int     # samples of it
    epochs: float

    def arguments(self, scale=1.0):
        """For train.py. Less than one epoch is an epoch over a part of the data set."""
        total = self.size * self.epochs * scale
        return ["--epochs", str(max(1, round(total / self.size))), "--samples", str(max(64, min(self.size, round(total))))]


# Chosen so that plain PyTorch takes about four minutes on two cores, Sluice about one: long enough to see a steady state.
WORK = {"vision": Work("photographs", 4000, 6), "speech": Work("speech", 1200, 12), "text": Work("text", 5000, 0.4)}


@dataclasses.dataclass(frozen=True)
class Site:
    """Where the jobs run: the namespace, the image with Python and PyTorch, and how data and Python get into the pods."""

    namespace: str
    image: str
    pull_policy: str
    folders: dict  # data set -> its path in the pods
    volumes: list
    mounts: list


def scripts_volume():
    """The training program, from the ConfigMap that scripts_config_map() makes."""
    return {"name": "scripts", "configMap": {"name": "demo-scripts"}}, {"name": "scripts", "mountPath": "/demo", "readOnly": True}


def scripts_config_map(namespace):
    paths = [path for path in sorted((HERE / "train").glob("*.py")) if not path.name.endswith("test.py")]
    files = {path.name: path.read_text() for path in [*paths, PACED_STORE]}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo-scripts", "namespace": namespace}, "data": files})


def local_site(namespace, virtual_environment, folders):
    """The local cluster: the interpreter's environment and the data sets are read-only claims (e2e/cluster/volumes.sh)."""
    claim = lambda name: {"name": name, "persistentVolumeClaim": {"claimName": name, "readOnly": True}}  # noqa: E731
    scripts, scripts_mount = scripts_volume()
    return Site(
        namespace, "localhost/sluice-trainer:demo", "Never", folders,
        [scripts, claim("python"), claim("datasets"), *scratch_volumes()],
        [scripts_mount, {"name": "python", "mountPath": virtual_environment, "readOnly": True},
         {"name": "datasets", "mountPath": "/data", "readOnly": True}, *scratch_mounts()],
    )  # fmt: skip


def own_cluster_site(namespace, image):
    """A cluster of the user's own: the image (e2e/demo/Containerfile) holds PyTorch and the data sets."""
    scripts, scripts_mount = scripts_volume()
    folders = {work.dataset: f"/data/{work.dataset}" for work in WORK.values()}
    return Site(namespace, image, "IfNotPresent", folders, [scripts, *scratch_volumes()], [scripts_mount, *scratch_mounts()])


def scratch_volumes():
    # PyTorch's own workers pass batches through /dev/shm, which containers get only 64 MB of.
    return [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "tmp", "emptyDir": {}}]


def scratch_mounts():
    return [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "tmp", "mountPath": "/tmp"}]


def manifest(name, phase, site, scale=1.0, digest="sampled", arguments=None, min_workers=0, neighbour_cores=NEIGHBOUR_CORES):
    """The TrainingJob `name` as it runs in `phase`, as YAML. `arguments` for train.py replace the demo's own. `neighbour_cores`: what the trainer of
    that job asks for."""
    arguments = arguments or ["--data", site.folders[WORK[name].dataset], *WORK[name].arguments(scale)]
    return filled("photos" if name in PHOTOS else name, name, site, arguments, mode=json.dumps(phase.mode), loader=phase.loader, lowering=phase.lowering,
                  digest=digest, min=min_workers, cpu=f"{1000 * neighbour_cores:.0f}m")  # fmt: skip


def filled(template, name, site, arguments, **further):
    """A template of jobs/ as YAML."""
    return string.Template((HERE / "jobs" / f"{template}.yaml").read_text()).substitute(
        name=name, namespace=site.namespace, image=site.image, pull_policy=site.pull_policy,
        arguments=json.dumps(arguments), mounts=json.dumps(site.mounts), volumes=json.dumps(site.volumes), **further,
    )  # fmt: skip


def without_pod_share(text):
    """A manifest without the share of the pod as a whole: Kubernetes 1.34 resizes no container of a pod that has one."""
    text, found = re.subn(r"(?:\n        #[^\n]*)*\n        resources:\n          requests:[^\n]*\n          limits:[^\n]*", "", text)
    assert found == 1
    return text


def on_node(text, node):
    """A manifest whose trainer runs on that node. Not by nodeSelector: its data workers would inherit that."""
    before = "        securityContext:\n          runAsNonRoot"
    assert text.count(before) == 1
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return text.replace(before, f"        affinity: {json.dumps(affinity)}\n" + before)


def in_two_pods(text):
    """Vision's manifest with a trainer of two ranks, each in a pod of its own: train/ranks.py in train.py's place."""
    for before, after in [
        ("  trainer:\n", "  trainer:\n    replicas: 2\n    backoffLimit: 2\n"),
        ('command: [python, /demo/train.py, vision, --batch-size, "64"]', "command: [python, /demo/ranks.py]"),
        ("      spec:\n        # The share", "      spec:\n        terminationGracePeriodSeconds: 1\n        # The share"),
    ]:
        assert text.count(before) == 1
        text = text.replace(before, after)
    return text
