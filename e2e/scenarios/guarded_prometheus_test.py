"""A real Prometheus with a web configuration, asked by the operator's own client: a password, an authority, client certificates, a path.

Prometheus' web configuration knows no bearer tokens. Where people use them, a proxy stands before it, and so one does here.
"""

import base64
import http.server
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.request

import pytest
from conftest import ROOT
from machine import cache_folder, tool

PROMETHEUS = cache_folder() / "packages/prometheus/usr/bin/prometheus"
PROGRAM = ROOT / "build/asan/operator/sluice_operator_test"
USER, PASSWORD, TOKEN = "operator", "old", "a-token"
HASH_OF_PASSWORD = "$2b$04$abcdefghijklmnopqrstuu3C6u2sQjFttrT16nmXgxlk/de0mfCmu"  # bcrypt
PATIENCE_SECONDS = 120


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def make_authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", 1, "-subj", f"/CN={name}",
            "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt")  # fmt: skip


def make_certificate(folder, name, authority, alternative=""):
    """NAME.crt and NAME.key, of the authority."""
    request, extension = folder / f"{name}.csr", folder / f"{name}.ext"
    extension.write_text(f"subjectAltName={alternative}\n" if alternative else "")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", request)
    openssl("x509", "-req", "-in", request, "-CA", folder / f"{authority}.crt", "-CAkey", folder / f"{authority}.key", "-days", 1, "-extfile", extension,
            "-out", folder / f"{name}.crt")  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    for authority in ("authority", "stranger"):
        make_authority(folder, authority)
    make_certificate(folder, "prometheus", "authority", "DNS:prometheus.example")
    make_certificate(folder, "client", "authority")
    return folder


def tls_of(folder):
    context = ssl.create_default_context(cafile=folder / "authority.crt")
    context.check_hostname = False
    context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return context


def ask(url, folder):
    """As the proxy and the test's own wait do."""
    credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(url, headers={"Authorization": f"Basic {credentials}"})
    with urllib.request.urlopen(request, timeout=10, context=tls_of(folder)) as answer:
        return answer.read()


@pytest.fixture(scope="module")
def prometheus(folder):
    """The address of a Prometheus that wants a client certificate and a password, below the path /metrics-store."""
    web = {
        "tls_server_config": {"cert_file": "prometheus.crt", "key_file": "prometheus.key", "client_ca_file": "authority.crt", "client_auth_type": "RequireAndVerifyClientCert"},
        "basic_auth_users": {USER: HASH_OF_PASSWORD},
    }
    (folder / "web.json").write_text(json.dumps(web))
    (folder / "prometheus.json").write_text(json.dumps({"global": {"scrape_interval": "1s"}}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [PROMETHEUS, f"--config.file={folder}/prometheus.json", f"--web.config.file={folder}/web.json", f"--storage.tsdb.path={folder}/data",
               f"--web.listen-address={address}", "--web.external-url=https://prometheus.example/metrics-store"]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    url = f"https://{address}/metrics-store"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            ask(f"{url}/-/ready", folder)
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-4000:]
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def proxy(prometheus, folder):
    """The address of a proxy that asks for a token and for a tenant, and passes on to that Prometheus."""

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            welcome = self.headers["Authorization"] == f"Bearer {TOKEN}" and self.headers["X-Scope-OrgID"] == "team-a"
            body = ask(prometheus + self.path, folder) if welcome else b""
            self.send_response(200 if welcome else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def problem(url, values, files, place):
    """What the operator says when it asks, as the chart configures it; `files` are those of its Secrets. Empty: it is answered."""
    settings = [f"{name}={value}" for name, value in {"metrics.url": url, **values}.items()]
    done = subprocess.run([tool("helm"), "template", "sluice", ROOT / "helm/sluice", "--kube-version", "1.34.0", "--show-only", "templates/configmap.yaml",
                           "--set", ",".join(settings)], capture_output=True, text=True, check=True)  # fmt: skip
    configuration = done.stdout.split("config.yaml: |\n")[1].replace("/etc/sluice-prometheus", str(place))
    (place / "config.yaml").write_text("".join(line.removeprefix("    ") for line in configuration.splitlines(keepends=True)))
    for name, content in files.items():
        (place / name).write_bytes(content)
    environment = {**os.environ, "SLUICE_TEST_PROMETHEUS_CONFIG": str(place / "config.yaml"), "SLUICE_TEST_PROMETHEUS_PROBLEM": str(place / "problem")}
    assert PROGRAM.exists(), f"build it: ninja -C build/asan {PROGRAM.name} (make test does)"
    run = subprocess.run([PROGRAM, "a real Prometheus*"], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-4000:]
    return (place / "problem").read_text()


PASSWORD_VALUES = {"metrics.connection.username": USER, "metrics.connection.passwordSecret.name": "p"}
AUTHORITY_VALUES = {"metrics.connection.caSecret.name": "a", "metrics.connection.serverName": "prometheus.example"}
CLIENT_VALUES = {"metrics.connection.clientCertificateSecret": "c"}
ALL_VALUES = PASSWORD_VALUES | AUTHORITY_VALUES | CLIENT_VALUES


@pytest.mark.parametrize("values, changed, words", [
    (ALL_VALUES, {}, ""),
    (ALL_VALUES, {"password": b"wrong"}, "wants credentials"),
    (AUTHORITY_VALUES | CLIENT_VALUES, {}, "wants credentials"),
    (PASSWORD_VALUES | AUTHORITY_VALUES, {}, "clientCertificateSecret"),
    (PASSWORD_VALUES | CLIENT_VALUES, {}, "SSL handshake; is it up, and do caSecret"),
    (ALL_VALUES, {"ca.crt": "stranger.crt"}, "SSL handshake; is it up, and do caSecret"),
    (ALL_VALUES | {"metrics.connection.serverName": "another.example"}, {}, "serverName"),
], ids=["all", "wrong password", "no password", "no client certificate", "no authority", "strange authority", "other name"])  # fmt: skip
def test_a_guarded_prometheus_answers_who_shows_all_that_it_asks_for(prometheus, folder, tmp_path, values, changed, words):
    files = {"password": PASSWORD.encode() + b"\n"}
    for name, source in {"ca.crt": "authority.crt", "tls.crt": "client.crt", "tls.key": "client.key"}.items():
        files[name] = (folder / source).read_bytes()
    for name, content in changed.items():
        files[name] = content if isinstance(content, bytes) else (folder / content).read_bytes()
    said = problem(prometheus, values, files, tmp_path)
    assert words in said and bool(said) == bool(words), said


@pytest.mark.parametrize("token, tenant, words", [(TOKEN, "team-a", ""), ("another", "team-a", "wants credentials"), (TOKEN, "team-b", "wants credentials")])
def test_a_proxy_before_it_gets_token_and_headers(proxy, tmp_path, token, tenant, words):
    values = {"metrics.connection.bearerTokenSecret.name": "t", "metrics.connection.headers.X-Scope-OrgID": tenant}
    said = problem(proxy, values, {"token": token.encode()}, tmp_path)
    assert words in said and bool(said) == bool(words), said
