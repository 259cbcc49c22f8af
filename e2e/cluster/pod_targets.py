#!/usr/bin/env python3
"""Tells Prometheus which pods to scrape: watches the API server's pods and keeps a file_sd target file up to date.

Debian builds its Prometheus without Kubernetes discovery, so this small process does for the local cluster what
`kubernetes_sd_configs: [{role: pod}]` with the usual relabelling does elsewhere: a pod with the annotations
prometheus.io/scrape: "true" and prometheus.io/port: "PORT" is a target with the labels namespace, pod and node.

    pod_targets.py --server https://10.250.0.2:6443 --ca ca.crt --certificate c.crt --key c.key --out targets.json

While the API server does not answer, the file stays as it is: scraping goes on with the last known pods.
"""

import argparse
import http.client
import json
import os
import ssl
import sys
import time
import urllib.parse
from collections.abc import Iterator

RETRY_SECONDS = 1.0
WATCH_SECONDS = 60  # the server ends the watch then, and it is resumed from the last version seen
SILENCE_SECONDS = 10.0  # beyond the watch's own end: then the connection is taken for dead


class ServerError(Exception):
    """The API server refused or broke off; the way out is always to list again."""


def target(pod: dict) -> dict | None:
    """The file_sd entry of a pod, or None if it is not to be scraped (now)."""
    annotations = pod["metadata"].get("annotations", {})
    status = pod.get("status", {})
    port = annotations.get("prometheus.io/port", "")
    address = status.get("podIP")
    if annotations.get("prometheus.io/scrape") != "true" or not port.isdigit() or not address:
        return None
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    return {
        "targets": [f"{address}:{port}"],
        "labels": {
            "namespace": pod["metadata"]["namespace"],
            "pod": pod["metadata"]["name"],
            "node": pod.get("spec", {}).get("nodeName", ""),
        },
    }


class Targets:
    """The target file. Holds one entry per pod UID, so a pod that was made again under its old name is a new one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._entries: dict[str, dict] = {}
        self._written: str | None = None

    def replace(self, pods: list[dict]) -> None:
        self._entries = {pod["metadata"]["uid"]: entry for pod in pods if (entry := target(pod))}
        self._write()

    def apply(self, kind: str, pod: dict) -> None:
        entry = None if kind == "DELETED" else target(pod)
        if entry:
            self._entries[pod["metadata"]["uid"]] = entry
        else:
            self._entries.pop(pod["metadata"]["uid"], None)
        self._write()

    def _write(self) -> None:
        text = json.dumps([self._entries[uid] for uid in sorted(self._entries)], indent=1)
        if text == self._written:
            return
        with open(self._path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self._path + ".new", self._path)  # Prometheus never sees half a file
        self._written = text


class Server:
    """The two requests that are needed, over one connection each."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        self._address = urllib.parse.urlsplit(url).netloc
        self._tls = tls

    def _get(self, path: str) -> http.client.HTTPResponse:
        timeout = WATCH_SECONDS + SILENCE_SECONDS
        if self._tls:
            connection = http.client.HTTPSConnection(self._address, context=self._tls, timeout=timeout)
        else:
            connection = http.client.HTTPConnection(self._address, timeout=timeout)
        connection.request("GET", path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise ServerError(f"{path}: {response.status} {response.read(500)!r}")
        return response

    def list(self) -> tuple[list[dict], str]:
        answer = json.load(self._get("/api/v1/pods"))
        return answer["items"], answer["metadata"]["resourceVersion"]

    def watch(self, version: str) -> Iterator[tuple[str, dict]]:
        query = urllib.parse.urlencode(
            {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_SECONDS}
        )
        for line in self._get("/api/v1/pods?" + query):
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise ServerError(f"watch: {event['object'].get('message')}")
            yield event["type"], event["object"]


def follow(server: Server, targets: Targets) -> None:
    """Lists, then watches for as long as the server goes along. Raises when the list has to be made anew."""
    pods, version = server.list()
    targets.replace(pods)
    while True:
        for kind, pod in server.watch(version):
            version = pod["metadata"]["resourceVersion"]
            if kind != "BOOKMARK":
                targets.apply(kind, pod)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("server", "ca", "certificate", "key", "out"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    tls = ssl.create_default_context(cafile=options.ca)
    tls.load_cert_chain(options.certificate, options.key)
    server, targets = Server(options.server, tls), Targets(options.out)
    while True:
        try:
            follow(server, targets)
        except (ServerError, OSError, ValueError, http.client.HTTPException) as error:
            print(f"listing again in {RETRY_SECONDS} s: {error}", file=sys.stderr, flush=True)
            time.sleep(RETRY_SECONDS)


if __name__ == "__main__":
    main()
