"""The demo's view of a cluster: kubectl to apply things, and the API through one `kubectl proxy` to watch them cheaply.

A kubectl process costs 0.1 CPU-seconds; on two cores, with one look a second, that would be part of what is measured.
"""

import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse

from console import DemoError, run


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Cluster:
    """REQUIRES: close() at the end; it ends the proxy."""

    def __init__(self, kubectl, kubeconfig):
        self.kubeconfig = kubeconfig
        self._command = [kubectl, "--kubeconfig", kubeconfig]
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-demo-"))  # mode 0700: the proxy asks for no password
        self._socket = str(self._folder / "api.sock")
        self._proxy = subprocess.Popen(
            [*self._command, "proxy", "--unix-socket", self._socket],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def close(self):
        self._proxy.terminate()
        self._proxy.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def kubectl(self, *arguments, input_text=None, way_out="look at the message above"):
        return run([*self._command, *arguments], way_out, capture="all", input_text=input_text)

    def apply(self, manifest):
        return self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input_text=manifest,
                            way_out="the manifest is in e2e/demo/jobs")  # fmt: skip

    def get(self, path, **query):
        """GET of a JSON object; None where it does not exist or the server does not answer."""
        text = self.get_text(path, **query)
        return None if text is None else json.loads(text)

    def get_text(self, path, **query):
        connection = _UnixConnection(self._socket)
        try:
            connection.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))
            response = connection.getresponse()
            body = response.read()
            return body.decode(errors="replace") if response.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def items(self, path, **query):
        found = self.get(path, **query)
        return found["items"] if found else []

    def wait_for(self, what, condition, timeout_seconds, way_out):
        """Polls until `condition()` is true; raises DemoError at the deadline."""
        deadline = time.monotonic() + timeout_seconds
        while not condition():
            if time.monotonic() > deadline:
                raise DemoError(f"{what}: not within {timeout_seconds} s", way_out)
            time.sleep(0.3)


def jobs_path(namespace, name=""):
    return f"/apis/sluice.dev/v1alpha1/namespaces/{namespace}/trainingjobs" + (f"/{name}" if name else "")


def pods_path(namespace):
    return f"/api/v1/namespaces/{namespace}/pods"


def cores(quantity):
    """A CPU quantity in cores."""
    text = str(quantity)
    return int(text[:-1]) / 1000 if text.endswith("m") else float(text)


def pod_cpu_request(pod):
    """Cores that the scheduler counts for a pod: its own request, else its containers' and sidecars'.

    An init container that ends before the others start counts only where it asks for more than they do together.
    """
    spec = pod["spec"]
    own = spec.get("resources", {}).get("requests", {}).get("cpu")
    if own is not None:
        return cores(own)
    request = lambda container: cores(container.get("resources", {}).get("requests", {}).get("cpu", 0))  # noqa: E731
    initial = spec.get("initContainers", [])
    sidecars = sum(request(container) for container in initial if container.get("restartPolicy") == "Always")
    first = max((request(container) for container in initial if container.get("restartPolicy") != "Always"), default=0)
    return max(sidecars + sum(request(container) for container in spec["containers"]), first)


def cpu_use(cluster):
    """(requested, allocatable) cores of the whole cluster, and what workers alone request."""
    pods = [pod for pod in cluster.items("/api/v1/pods") if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    nodes = cluster.items("/api/v1/nodes")
    workers = [pod for pod in pods if pod["metadata"].get("labels", {}).get("sluice.dev/component") == "worker"]
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    return (
        sum(pod_cpu_request(pod) for pod in placed),
        sum(cores(node["status"]["allocatable"]["cpu"]) for node in nodes),
        sum(pod_cpu_request(pod) for pod in workers),
    )


@contextlib.contextmanager
def connect(kubectl, kubeconfig):
    with Cluster(kubectl, kubeconfig) as cluster:
        cluster.wait_for("the Kubernetes API", lambda: cluster.get("/version"), 20,
                         f"does `kubectl --kubeconfig {kubeconfig} version` work?")  # fmt: skip
        yield cluster
