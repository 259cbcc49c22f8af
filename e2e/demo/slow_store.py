"""The fifth situation: two jobs read one data set from a slow object store, each in its own random orders.

    1. without a cache: each epoch of each job reads the data set from the store anew
    2. with the cache of the node, and room for all
    3. with room for a part: which photographs it keeps is decided by the orders that the jobs announce

The store is a pod with a link of 20 MB/s for all connections, and waits 50 ms before each answer (train/store.py). It tells who has read what and when.
The size of the data set is such that the whole takes two minutes. The jobs have no data workers, as CPU is not what they lack.
"""

import json
import time

import slow_store_report
from cluster_api import jobs_path, pods_path
from jobs import PHOTOS, Phase, filled, manifest
from machine import JOBS_NAMESPACE, RELEASE, RELEASE_NAMESPACE, delete_jobs, set_values
from running_job import RunningJob
from watch import Watcher

PHASE = Phase("e", "Sluice, two jobs on one data set in a slow object store", "sluice", "Auto", "on")
STORE, PORT = "photo-store", 9000
PHOTOGRAPHS = 400
EPOCHS = 6
STEP_FACTOR = 3
LONGEST_SECONDS = 300
CACHE = f"{RELEASE}-cache"
RECORD_BYTES = 1024  # of a photograph's record in the cache, beside the photograph
ROOM_SHARE = 0.4  # of the data set, in the third arrangement


def run(cluster, console, site):
    """Returns the figures. Afterwards the cluster is as it was; after a failure what is there stays, for a look."""
    console.say(f"--- ({PHASE.key}) {PHASE.title}")
    delete_jobs(cluster)
    store = Store(cluster, site)
    store.stop()  # of a run that failed
    with console.step(f"an object store with {PHOTOGRAPHS} photographs"):
        store.start()
    figures = [train(cluster, console, site, store, "no cache")]
    with console.step("a cache on the node"):
        start_cache(cluster)
    figures.append(train(cluster, console, site, store, "room for all"))
    with console.step(f"a new cache, with room for {ROOM_SHARE:g} of the photographs"):
        shrink_cache(cluster, int(ROOM_SHARE * (store.nbytes + PHOTOGRAPHS * RECORD_BYTES)))
    figures.append(train(cluster, console, site, store, f"room for {ROOM_SHARE:g}"))
    store.stop()
    set_values(cluster, {"cache.enabled": "false"})
    return {"key": PHASE.key, "title": PHASE.title, "photographs": PHOTOGRAPHS, "epochs": EPOCHS, "megabytes": round(store.nbytes / 1e6, 1), "runs": figures}


class Store:
    """The pod."""

    def __init__(self, cluster, site):
        self._cluster, self._site, self.nbytes, self.urls = cluster, site, 0, ""
        self._path = f"{pods_path(JOBS_NAMESPACE)}/{STORE}"

    def start(self):
        arguments = [self._site.folders["photographs"], "--photographs", str(PHOTOGRAPHS), "--port", str(PORT)]
        self._cluster.apply(filled("store", STORE, self._site, arguments))
        self._cluster.wait_for("the object store", lambda: self._asked("objects"), 60, f"kubectl -n {JOBS_NAMESPACE} describe pod {STORE}")
        objects, pod = self._asked("objects"), self._cluster.get(self._path)
        self.nbytes = objects["bytes"]
        self.urls = f"http://{pod['status']['podIP']}:{PORT}{objects['pattern']}"

    def reads(self):
        """[time, address, bytes] of each read so far."""
        return self._asked("reads")

    def stop(self):
        self._cluster.kubectl("-n", JOBS_NAMESPACE, "delete", "pod", STORE, "--ignore-not-found", "--timeout=60s")

    def _asked(self, what):
        text = self._cluster.get_text(f"/api/v1/namespaces/{JOBS_NAMESPACE}/pods/{STORE}:{PORT}/proxy/{what}")
        return None if text is None else json.loads(text)


def train(cluster, console, site, store, name):
    """Both jobs to their end, without a cache or with the one that is there."""
    watcher = Watcher(cluster, JOBS_NAMESPACE, console, f"({PHASE.key}) {name}", PHOTOS, time.time())
    cluster.apply("---\n".join(manifest(job, PHASE, site, arguments=arguments(store, seed)) for seed, job in enumerate(PHOTOS, 1)))
    watcher.follow(LONGEST_SECONDS)
    reads = store.reads()
    jobs = {job: slow_store_report.job_figures(record, *life_of(cluster, record), reads) for job, record in watcher.jobs.items()}
    delete_jobs(cluster)
    return slow_store_report.run_figures(name, jobs, watcher.cpu)


def arguments(store, seed):
    return ["--data", store.urls, "--epochs", str(EPOCHS), "--step-factor", str(STEP_FACTOR), "--seed", str(seed)]


def life_of(cluster, record):
    """The address of the trainer's pod, and what the trainer has told."""
    pod = cluster.get(f"{pods_path(JOBS_NAMESPACE)}/{record.pod}")
    return pod["status"]["podIP"], RunningJob(cluster, record.name).events(pod)


def start_cache(cluster):
    set_values(cluster, {"cache.enabled": "true", "cache.storage.gibibytes": 1, "cache.memoryMebibytes": 0, "cache.cpu.request": "200m"})
    wait_for_cache(cluster)


def shrink_cache(cluster, nbytes):
    """To less than the chart's least. The new pod's cache is empty."""
    container = cluster.get(f"/apis/apps/v1/namespaces/{RELEASE_NAMESPACE}/daemonsets/{CACHE}")["spec"]["template"]["spec"]["containers"][0]
    words = [f"--bytes={nbytes}" if word.startswith("--bytes=") else word for word in container["args"]]
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": words}]
    cluster.kubectl("-n", RELEASE_NAMESPACE, "patch", "daemonset", CACHE, "--type=json", "-p", json.dumps(patch))
    wait_for_cache(cluster)


def wait_for_cache(cluster):
    cluster.kubectl("-n", RELEASE_NAMESPACE, "rollout", "status", f"daemonset/{CACHE}", "--timeout=60s",
                    way_out=f"kubectl -n {RELEASE_NAMESPACE} describe pods")  # fmt: skip
