"""The demo's object store, asked over its socket."""

import asyncio
import io
import json
import tarfile
import threading
import time
import urllib.request

import pytest
import store


@pytest.fixture
def folder(tmp_path):
    for number in range(12):
        (tmp_path / f"class{number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"class{number % 3}" / f"{number}.jpg").write_bytes(bytes([number]) * 1000)
    return tmp_path


def test_shards_hold_photographs_of_all_classes_and_their_numbers_as_classes(folder):
    shards = store.shards_of(folder, 6)
    assert list(shards) == [store.PATH % number for number in range(store.SHARDS)]
    members = {}
    for data in shards.values():
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members.update({member.name: tar.extractfile(member).read() for member in tar})
    photographs = [members[f"{number:06d}.jpg"][0] for number in range(6)]
    assert sorted(members) == sorted(f"{number:06d}.{extension}" for number in range(6) for extension in ("jpg", "cls"))
    assert {photograph % 3 for photograph in photographs} == {0, 1, 2} and len(set(photographs)) == 6
    assert [int(members[f"{number:06d}.cls"]) for number in range(6)] == list(range(6))


class Serving:
    """In a thread, as long as the block lasts."""

    def __init__(self, served):
        self._served, self._loop, self._listens = served, asyncio.new_event_loop(), threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def _serve(self):
        async def listen():
            server = await self._served.listen("127.0.0.1", 0)
            self._port = server.sockets[0].getsockname()[1]
            self._listens.set()
            self._ended = asyncio.Event()
            await self._ended.wait()
            server.close()

        self._loop.run_until_complete(listen())

    def __enter__(self):
        self._thread.start()
        assert self._listens.wait(20)
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def get(self, path, begin=0, end=0):
        asked = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", headers={"Range": f"bytes={begin}-{end}"})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return answer.read(), answer.headers


def test_it_gives_ranges_and_tells_who_has_read_them():
    data = bytes(range(256)) * 4
    with Serving(store.PhotographStore({"/photographs/0.tar": data}, latency_seconds=0)) as served:
        part, headers = served.get("/photographs/0.tar", 100, 199)
        assert part == data[100:200] and headers["Content-Range"] == "bytes 100-199/1024" and headers["ETag"].startswith('"')
        assert served.get("/photographs/0.tar", 1000, 5000)[0] == data[1000:]
        reads = json.loads(served.get("/reads")[0])
        assert [(reader, nbytes) for _, reader, nbytes in reads] == [("127.0.0.1", 100), ("127.0.0.1", 24)]
        assert abs(reads[0][0] - time.time()) < 60
        assert json.loads(served.get("/objects")[0]) == {"pattern": "/photographs/{0..3}.tar", "bytes": 1024}


def test_all_connections_share_one_link_and_each_answer_waits(monkeypatch):
    sent = []

    class Loop:
        now = 100.0

        def time(self):
            return self.now

        def call_at(self, when, *_):
            sent.append(round(when - 100, 6))

    class Transport:
        def get_extra_info(self, _):
            return ("10.0.0.1", 1)

    loop = Loop()
    monkeypatch.setattr(store.asyncio, "get_running_loop", lambda: loop)
    slow = store.PhotographStore({"/a": bytes(1000)}, latency_seconds=0.05, bytes_per_second=1000)
    for _ in range(2):
        slow.begin(Transport(), b"GET /a HTTP/1.1\r\nRange: bytes=0-99")
    loop.now = 101.0
    slow.begin(Transport(), b"GET /a HTTP/1.1\r\nRange: bytes=0-999")
    assert sent == [0.15, 0.25, 2.05]
