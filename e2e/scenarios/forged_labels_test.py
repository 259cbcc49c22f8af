"""A pod can say anything of itself: the chart's queries, asked of a real Prometheus, believe the namespace of the scrape."""

import http.server
import json
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
from chart_queries import chart_queries
from conftest import ROOT
from machine import cache_folder

PROMETHEUS = cache_folder() / "packages/prometheus/usr/bin/prometheus"
WINDOW_SECONDS = 4
PATIENCE_SECONDS = 120
SERIES = {
    "sluice_trainer_samples_total": "",
    "sluice_trainer_batches_total": "",
    "sluice_trainer_step_seconds_total": 'phase="compute"',
    "sluice_trainer_step_seconds_total ": 'phase="data_wait"',
    "sluice_trainer_queue_depth": "",
    "sluice_trainer_queue_capacity": "",
    "sluice_trainer_remaining_samples": "",
    "sluice_worker_samples_total": 'placement="remote"',
    "sluice_worker_busy_seconds_total": 'placement="remote"',
    "sluice_worker_bytes_total": 'placement="remote"',
    "sluice_worker_samples_total ": 'placement="remote",executor="native"',
    "sluice_worker_op_bytes_total": 'placement="remote",op="read"',
    "sluice_worker_blocked_seconds_total": 'placement="remote"',
    "sluice_worker_memory_peak_bytes": 'placement="remote"',
    "sluice_cache_node_kept_bytes": 'cache_node="node",asker="1"',
}


QUERIES = chart_queries(f"{WINDOW_SECONDS}s")


class Pod(http.server.BaseHTTPRequestHandler):
    """Its path is the namespace that it claims to be of."""

    def do_GET(self):
        claimed = self.path.strip("/")
        labels = f'namespace="{claimed}",job_namespace="{claimed}",training_job="vision",rank="0"'
        lines = [f"{name.strip()}{{{labels}{',' if more else ''}{more}}} {time.monotonic()}" for name, more in SERIES.items()]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(("\n".join(lines) + "\n").encode())

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """The URL of a Prometheus that scrapes an honest pod of `victim`, and one of `mallory` that claims to be of `victim`."""
    folder = tmp_path_factory.mktemp("prometheus")
    pods = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pod)
    threading.Thread(target=pods.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{pods.server_address[1]}"
    jobs = [
        {"job_name": of, "metrics_path": "/victim", "static_configs": [{"targets": [target], "labels": {"namespace": of}}]}
        for of in ("victim", "mallory")
    ]
    (folder / "prometheus.json").write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [PROMETHEUS, f"--config.file={folder}/prometheus.json", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    yield f"http://{address}"
    process.terminate()
    process.wait()
    pods.shutdown()


def labels_of(url, query):
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=10) as answer:
            return [series["metric"] for series in json.load(answer)["data"]["result"]]
    except OSError:
        return []


@pytest.mark.parametrize("name", QUERIES)
def test_a_pod_counts_for_its_own_namespace_only(prometheus, name):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(labels := labels_of(prometheus, QUERIES[name])) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    # Caches have numbers for jobs. What they say counts in the operator's own namespace alone.
    assert sorted((each["namespace"], each.get("training_job", "vision")) for each in labels) == [("mallory", "vision"), ("victim", "vision")]
    assert (name == "keptBytes") == all("asker" in each for each in labels)


def test_every_query_of_the_chart_is_asked():
    schema = json.loads((ROOT / "helm/sluice/values.schema.json").read_text())
    assert set(QUERIES) == set(schema["properties"]["metrics"]["properties"]["queries"]["properties"])
