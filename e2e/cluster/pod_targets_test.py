"""pod_targets.py, against a small API server in this process."""

import http.server
import json
import threading

import pytest

import pod_targets


def pod(name: str, **changes) -> dict:
    """A pod that is to be scraped; `changes` replace annotations, ip, phase, uid or version."""
    return {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": changes.get("uid", name),
            "resourceVersion": changes.get("version", "1"),
            "annotations": changes.get("annotations", {"prometheus.io/scrape": "true", "prometheus.io/port": "9464"}),
        },
        "spec": {"nodeName": "node-1"},
        "status": {"podIP": changes.get("ip", "10.0.0.1"), "phase": changes.get("phase", "Running")},
    }


def test_a_scraped_pod_has_the_labels_queries_rely_on():
    assert pod_targets.target(pod("a")) == {
        "targets": ["10.0.0.1:9464"],
        "labels": {"namespace": "team", "pod": "a", "node": "node-1"},
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"annotations": {}},
        {"annotations": {"prometheus.io/scrape": "false", "prometheus.io/port": "1"}},
        {"annotations": {"prometheus.io/scrape": "true"}},
        {"annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "http"}},
        {"ip": None},
        {"phase": "Succeeded"},
        {"phase": "Failed"},
    ],
    ids=["no annotations", "not wanted", "no port", "port by name", "no address yet", "succeeded", "failed"],
)
def test_other_pods_are_not_targets(changes):
    assert pod_targets.target(pod("a", **changes)) is None


def read(path) -> list[str]:
    return sorted(entry["labels"]["pod"] for entry in json.loads(path.read_text()))


def test_the_file_follows_the_events(tmp_path):
    path = tmp_path / "pods.json"
    targets = pod_targets.Targets(str(path))
    targets.replace([pod("a"), pod("b", annotations={})])
    assert read(path) == ["a"]
    targets.apply("ADDED", pod("c", ip=None))
    assert read(path) == ["a"]
    targets.apply("MODIFIED", pod("c"))
    assert read(path) == ["a", "c"]
    targets.apply("MODIFIED", pod("a", phase="Succeeded"))
    assert read(path) == ["c"]
    targets.apply("DELETED", pod("c"))
    assert read(path) == []


def test_a_pod_made_again_under_its_name_outlives_the_old_ones_deletion(tmp_path):
    path = tmp_path / "pods.json"
    targets = pod_targets.Targets(str(path))
    targets.apply("ADDED", pod("a", uid="old"))
    targets.apply("ADDED", pod("a", uid="new", ip="10.0.0.2"))
    targets.apply("DELETED", pod("a", uid="old"))
    assert json.loads(path.read_text())[0]["targets"] == ["10.0.0.2:9464"]


def test_the_file_is_not_touched_when_nothing_changed(tmp_path):
    path = tmp_path / "pods.json"
    targets = pod_targets.Targets(str(path))
    targets.replace([pod("a")])
    before = path.stat().st_ino
    targets.apply("MODIFIED", pod("a", version="2"))
    assert path.stat().st_ino == before


@pytest.fixture
def server():
    """An API server that answers from `script`: a list of (path's beginning, status, lines)."""
    script, seen = [], []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            status, lines = script.pop(0) if script else (500, [])
            self.send_response(status)
            self.end_headers()
            for line in lines:
                self.wfile.write(json.dumps(line).encode() + b"\n")

        def log_message(self, *_):
            pass

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield pod_targets.Server(f"http://127.0.0.1:{listener.server_port}", None), script, seen
    listener.shutdown()
    listener.server_close()


def pod_list(version: str, *pods: dict) -> tuple[int, list]:
    return 200, [{"metadata": {"resourceVersion": version}, "items": list(pods)}]


def test_a_watch_that_ends_is_resumed_from_the_last_version_seen(tmp_path, server):
    connection, script, seen = server
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}
    script += [
        pod_list("5", pod("a")),
        (200, [{"type": "ADDED", "object": pod("b", version="9")}]),
        (200, [bookmark]),
        (410, []),
    ]
    with pytest.raises(pod_targets.ServerError, match="410"):
        pod_targets.follow(connection, pod_targets.Targets(str(tmp_path / "pods.json")))
    versions = [path.split("resourceVersion=")[1].split("&")[0] for path in seen[1:]]
    assert versions == ["5", "9", "20"]
    assert read(tmp_path / "pods.json") == ["a", "b"]  # what is known stays


def test_an_error_event_leads_to_a_new_list(tmp_path, server):
    connection, script, _ = server
    script += [pod_list("5", pod("a")), (200, [{"type": "ERROR", "object": {"message": "too old resource version"}}])]
    with pytest.raises(pod_targets.ServerError, match="too old"):
        pod_targets.follow(connection, pod_targets.Targets(str(tmp_path / "pods.json")))


def test_a_refusal_is_reported_with_its_reason(tmp_path, server):
    connection, script, _ = server
    script += [(403, [{"message": "pods is forbidden"}])]
    with pytest.raises(pod_targets.ServerError, match="403.*forbidden"):
        pod_targets.follow(connection, pod_targets.Targets(str(tmp_path / "pods.json")))
