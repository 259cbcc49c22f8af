"""A store of objects on the loopback that speaks as S3 does, and errs as networks do."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from functools import lru_cache
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FAULTS = ("503", "cut", "other range", "whole", "closed")


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]):
    """The address of a server on the loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # Clients close connections when they like.
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def store_of(folder: Path, **arguments) -> Store:
    """With the shards of a folder, in one bucket; `arguments` are the Store's."""
    return Store({f"/bucket/{path.name}": path.read_bytes() for path in folder.glob("*.tar")}, **arguments)


def urls_of(folder: Path, address: str) -> list[str]:
    """Of the shards in such a store, in their order."""
    return [f"{address}/bucket/{path.name}" for path in sorted(folder.glob("*.tar"))]


class Store:
    """`objects` by path. `fault` says for the number of a request what goes wrong with it, if anything."""

    def __init__(self, objects: dict[str, bytes], latency_seconds: float = 0, fault: Callable[[int], str | None] = lambda number: None) -> None:
        self.objects, self.latency_seconds, self.fault = objects, latency_seconds, fault
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.faults: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()

    def serving(self):
        """Its address, as long as it answers."""
        return serving(self._handler())

    def _handler(store):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self):
                with store.lock:
                    fault = store.fault(len(store.requests))
                    store.requests.append((self.path, dict(self.headers)))
                    store.faults[fault or "none"] += 1
                    store.in_flight += 1
                    store.most_in_flight = max(store.most_in_flight, store.in_flight)
                try:
                    time.sleep(store.latency_seconds)
                    store.answer(self, fault)
                finally:
                    with store.lock:
                        store.in_flight -= 1

            def log_message(self, *arguments):
                pass

        return Handler

    def answer(self, to, fault):
        data = self.objects.get(to.path.partition("?")[0])
        if fault == "closed":
            to.close_connection = True
            return
        if data is None or fault == "503":
            return _send(to, 404 if data is None else 503, b"<Error/>")
        etag = _etag(data)
        if to.headers.get("If-Match", etag) != etag:
            return _send(to, 412, b"<Error/>")
        begin, end = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", to.headers["Range"]).groups())
        if begin >= len(data):
            return _send(to, 416, b"<Error/>")
        end = min(end, len(data) - 1)
        if fault == "whole":
            return _send(to, 200, data, {"ETag": etag})
        if fault == "other range":
            begin, end = begin + 1, end + 1
        _send(to, 206, data[begin : end + 1], {"ETag": etag, "Content-Range": f"bytes {begin}-{end}/{len(data)}"}, cut=fault == "cut")


@lru_cache(maxsize=64)
def _etag(data):
    """Of tens of megabytes, and for every request."""
    return f'"{md5(data).hexdigest()}"'


def _send(to, status, body, headers=(), cut=False):
    to.send_response(status)
    for name, value in {**dict(headers), "Content-Length": str(len(body))}.items():
        to.send_header(name, value)
    to.end_headers()
    to.wfile.write(body[: len(body) // 2] if cut else body)
    to.close_connection = to.close_connection or cut
