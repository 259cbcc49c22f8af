"""What must be there before jobs can run: packages, programs, cluster, images, data sets, the chart.

Every step is quick when its result is already there, and says how long it took. A run takes away the cluster that it made, or on a user's own cluster
the release and the namespaces. Built programs stay cached.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from background import Background
from console import DemoError, run
from jobs import NAMES, NEIGHBOUR, PHOTOS, WORK, local_site, own_cluster_site, scripts_config_map

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "toolchain"))
from cache_folder import cache_folder  # noqa: E402

CLUSTER = ROOT / "e2e/cluster"
BUILD = ROOT / "build"
CONFIGURE = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DSLUICE_TESTS=OFF", "--log-level=WARNING"]
SECOND_NODE_CPU = "600m"
CLUSTER_NAME = os.environ.get("CLUS_NAME", "sluice-demo")
NODE, SECOND_NODE = f"{CLUSTER_NAME}-node", f"{CLUSTER_NAME}-second"
RELEASE, RELEASE_NAMESPACE, JOBS_NAMESPACE = "sluice", "sluice-system", "sluice-demo"


def tool(name):
    """kubectl or helm: the ones built for the local cluster, else those of the user's PATH."""
    built = cache_folder() / "bin" / name
    found = str(built) if built.exists() else shutil.which(name)
    if not found:
        raise DemoError(f"no {name}", f"install {name}, or build it: e2e/cluster/build-binaries.sh")
    return found


class LocalMachine:
    """The local cluster on this machine, from nothing."""

    def __init__(self, console, keep):
        self._console, self._keep = console, keep
        self.started_cluster = False
        self.folders = {}  # data set -> its path in the pods
        self.state = pathlib.Path(os.environ.get("CLUS_STATE") or f"/var/lib/{CLUSTER_NAME}")
        self.kubeconfig = str(self.state / "admin.kubeconfig")

    def prepare(self):
        if os.getuid() != 0:
            raise DemoError("the local cluster needs root (namespaces, cgroups, mounts)",
                            "sudo make demo; or run on a cluster of your own: make demo KUBECONFIG=FILE")  # fmt: skip
        self._step("Debian packages for building and for the cluster",
                   [ROOT / "toolchain/install.sh", "build"], [ROOT / "toolchain/install.sh", "cluster"])  # fmt: skip
        self.show_a_first_result()
        # What takes longest, and is needed last, runs beside the rest.
        binaries = CLUSTER / "build-binaries.sh"
        with Background([[binaries]], f"`{binaries}` shows it again", gives_way=True) as cluster_programs:
            self.build()
            self.make_datasets()
            with self._console.step("Kubernetes, etcd, CoreDNS and Helm from source, begun above (minutes the first time, then cached)"):
                cluster_programs.wait()
        self.start_cluster()
        self.load_images()

    def show_a_first_result(self):
        """Before all that only Kubernetes needs."""
        environment = ROOT / "toolchain/python.sh"
        with Background([[environment], dataset_command(WORK["vision"])], f"{environment} shows it again") as photographs:
            self._step("the feeder", CONFIGURE, ["ninja", "-C", BUILD, "--quiet", "sluice-feeder"])
            with self._console.step("Python environment with PyTorch, and photographs, begun above"):
                photographs.wait()
        self._step("a first result, without Kubernetes: our loader beside PyTorch's", [ROOT / "e2e/demo/try.sh", BUILD])

    def make_datasets(self):
        for work in WORK.values():
            with self._console.step(f"data set {work.dataset}, {work.size} samples"):
                command = dataset_command(work)
                folder = run(command, f"{command[1]} shows it again", capture="stdout")
                self.folders[work.dataset] = "/data/" + pathlib.Path(folder.strip()).name

    def build(self):
        self._step("Sluice's programs and their bundle",
                   CONFIGURE, ["ninja", "-C", BUILD, "--quiet", "kubectl-sluice"], [ROOT / "worker-image/bundle.sh", BUILD])  # fmt: skip

    def start_cluster(self):
        if self._is_up():
            self._console.say(f"the cluster of {self.state} is already up: it is used, and left as it is at the end")
            return
        self.started_cluster = True
        self._step("local Kubernetes", [CLUSTER / "cluster.sh", "up"])

    def load_images(self):
        archive = cache_folder() / "images/sluice.tar"
        self._step("images, without a registry",
                   ["/usr/bin/python3", CLUSTER / "image.py", "--name", "localhost/sluice:dev", "--out", archive,
                    "--add", f"{BUILD / 'bundle'}:/opt/sluice", "--mkdir", "/tmp"],
                   [CLUSTER / "trainer-image.sh"],
                   [CLUSTER / "cluster.sh", "load", archive, cache_folder() / "images/trainer.tar"])  # fmt: skip

    def split(self):
        """Makes a part of the machine's CPU a second node. Returns the name of the first."""
        self._step(f"a second node, of {SECOND_NODE_CPU} of the same CPU",
                   [CLUSTER / "cluster.sh", "second-node", SECOND_NODE_CPU, cache_folder() / "images/sluice.tar", cache_folder() / "images/trainer.tar"])  # fmt: skip
        return NODE

    def unite(self):
        """One node again, as split() found it."""
        run([CLUSTER / "cluster.sh", "one-node"], f"{CLUSTER}/cluster.sh status", capture="all")

    def install(self, cluster):
        """The namespaces, the volumes, the scripts and the chart."""
        volumes = run([CLUSTER / "volumes.sh", JOBS_NAMESPACE], "e2e/cluster/volumes.sh", capture="all")
        install(cluster, self._console, volumes, {
            "image.repository": "localhost/sluice", "image.tag": "dev", "image.pullPolicy": "Never",
            "metrics.url": self.prometheus(),
        })  # fmt: skip
        return local_site(JOBS_NAMESPACE, str(cache_folder() / "venv"), self.folders)

    def uninstall(self, cluster):
        if not self.started_cluster and not self._keep:
            uninstall(cluster, self._console)

    def stop(self):
        if not self.started_cluster:
            return
        if self._keep:
            self._console.say(f"KEEP=1: the cluster stays. export KUBECONFIG={self.kubeconfig}; `make demo-down` removes it")
        else:
            # Also after an interrupted `up`: it cleans up by itself, and `down` finds nothing to do.
            subprocess.run([CLUSTER / "cluster.sh", "down"], check=False, stdin=subprocess.DEVNULL)

    def _is_up(self):
        if not pathlib.Path(self.kubeconfig).exists():
            return False
        return subprocess.run([CLUSTER / "cluster.sh", "status"], capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0

    def prometheus(self):
        index = os.environ.get("CLUS_INDEX", "0")
        return f"http://10.250.{index}.2:9090"

    def _step(self, what, *commands):
        with self._console.step(what):
            for command in commands:
                run([str(word) for word in command], f"`{' '.join(str(word) for word in command)}` shows it again")


class OwnCluster:
    """A cluster of the user's own: only the release and the jobs' namespace are made."""

    def __init__(self, console, keep, kubeconfig):
        self._console, self._keep, self.kubeconfig = console, keep, kubeconfig

    def prepare(self):
        if not pathlib.Path(self.kubeconfig).exists():
            raise DemoError(f"no file {self.kubeconfig}", "KUBECONFIG must name a kubeconfig file")
        for name in ("SLUICE_IMAGE", "SLUICE_TRAINER_IMAGE", "SLUICE_PROMETHEUS"):
            if not os.environ.get(name):
                raise DemoError(f"{name} is not set",
                                "SLUICE_IMAGE and SLUICE_TRAINER_IMAGE name images that the cluster can pull, SLUICE_PROMETHEUS "
                                "the URL of a Prometheus in it: docs/user-guide.md says how to make them")  # fmt: skip

    def install(self, cluster):
        repository, _, tag = os.environ["SLUICE_IMAGE"].rpartition(":")
        install(cluster, self._console, "", {"image.repository": repository, "image.tag": tag, "metrics.url": os.environ["SLUICE_PROMETHEUS"]})
        return own_cluster_site(JOBS_NAMESPACE, os.environ["SLUICE_TRAINER_IMAGE"])

    def uninstall(self, cluster):
        if self._keep:
            self._console.say(f"KEEP=1: release {RELEASE} and namespace {JOBS_NAMESPACE} stay")
        else:
            uninstall(cluster, self._console)

    def stop(self):
        """It is not ours."""


def dataset_command(work):
    """Makes a data set, where it is not there yet, and prints its folder."""
    return [str(cache_folder() / "venv/bin/python"), str(ROOT / f"e2e/datasets/{work.dataset}.py"), "--count", str(work.size)]


def namespace_manifest(name):
    return (f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  labels:\n"
            "    pod-security.kubernetes.io/enforce: restricted\n---\n")  # fmt: skip


def install(cluster, console, volumes, values):
    """helm install (or upgrade) and what the jobs need. Decisions every 3 s and short windows: the demo is short."""
    with console.step("helm install sluice"):
        cluster.apply(namespace_manifest(RELEASE_NAMESPACE) + namespace_manifest(JOBS_NAMESPACE) + volumes)
        cluster.apply(scripts_config_map(JOBS_NAMESPACE))
        # One node: with resizing, feeders would take the cores that data workers are to show themselves on.
        every = {"decisionIntervalSeconds": 3, "metrics.windowSeconds": 15, "metrics.staleSeconds": 20,
                 "feeder.resize.enabled": "false", **values}  # fmt: skip
        settings = [word for key, value in every.items() for word in ("--set", f"{key}={value}")]
        run([tool("helm"), "upgrade", "--install", RELEASE, str(ROOT / "helm/sluice"), "--kubeconfig", cluster.kubeconfig,
             "--namespace", RELEASE_NAMESPACE, "--wait", "--timeout", "120s", *settings],
            f"kubectl -n {RELEASE_NAMESPACE} describe pods", capture="all")  # fmt: skip


def set_resizing(cluster, enabled):
    """Whether the operator resizes feeders from now on."""
    set_values(cluster, {"feeder.resize.enabled": str(enabled).lower()})


def set_values(cluster, values):
    """Of the chart, and leaves the others. What runs of it is ready then; a DaemonSet need not be."""
    settings = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    run([tool("helm"), "upgrade", RELEASE, str(ROOT / "helm/sluice"), "--kubeconfig", cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE,
         "--reuse-values", *settings, "--wait", "--timeout", "120s"],
        f"kubectl -n {RELEASE_NAMESPACE} describe pods", capture="all")  # fmt: skip


def uninstall(cluster, console):
    with console.step("helm uninstall sluice, and the demo's namespaces"):
        delete_jobs(cluster)
        subprocess.run([tool("helm"), "uninstall", RELEASE, "--kubeconfig", cluster.kubeconfig, "--namespace", RELEASE_NAMESPACE],
                       capture_output=True, check=False)  # fmt: skip
        cluster.kubectl("delete", "namespace", JOBS_NAMESPACE, RELEASE_NAMESPACE, "--ignore-not-found", "--timeout=120s")
        cluster.kubectl("delete", "persistentvolume", "-l", "app.kubernetes.io/part-of=sluice-demo", "--ignore-not-found")


def delete_jobs(cluster):
    """Deletes the demo's jobs and waits until their pods are gone."""
    found = cluster.items(f"/apis/sluice.dev/v1alpha1/namespaces/{JOBS_NAMESPACE}/trainingjobs")
    names = [job["metadata"]["name"] for job in found if job["metadata"]["name"] in [*NAMES, NEIGHBOUR, *PHOTOS]]
    if names:
        cluster.kubectl("-n", JOBS_NAMESPACE, "delete", "trainingjob", *names, "--timeout=60s")
    cluster.wait_for("the end of the jobs' pods", lambda: not cluster.items(f"/api/v1/namespaces/{JOBS_NAMESPACE}/pods", labelSelector="sluice.dev/job"),
                     90, f"kubectl -n {JOBS_NAMESPACE} get pods")  # fmt: skip


def interrupt_on_signals():
    """SIGTERM and SIGHUP end the demo as ctrl-C does: through the clean-up."""
    def interrupt(number, _frame):
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)


def ignore_signals():
    """For the clean-up: being half removed is worse than some seconds' wait."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
