"""A store of objects that costs little: one process for hundreds of requests in flight. It answers ranges after a while, as stores do, all of them over
one link, and some with a 503. What it counts, it says at the end. It needs Python's standard library alone: the demo runs it in a pod, too."""

import asyncio
import hashlib
import math
import re

_RANGE = re.compile(rb"(?i)\r\nrange: *bytes=(\d+)-(\d+)")


class _Connection(asyncio.Protocol):
    def __init__(self, store):
        self.store, self.received = store, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, self.received = self.received.partition(b"\r\n\r\n")
            self.store.begin(self.transport, head)


class PacedStore:
    """`objects` by path. Every `one_of`-th request is answered 503; 0: none. Answers leave one after the other, at `bytes_per_second` for all connections."""

    def __init__(self, objects, latency_seconds, one_of=0, bytes_per_second=math.inf):
        self.objects = {path.encode(): (memoryview(data), hashlib.md5(data).hexdigest().encode()) for path, data in objects.items()}
        self.latency_seconds, self.one_of, self.bytes_per_second = latency_seconds, one_of, bytes_per_second
        self.requests = self.throttled = self.in_flight = self.most_in_flight = 0
        self._link_free_at = 0.0

    def begin(self, transport, head):
        """Returns the bytes of the object that the answer will have."""
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        is_throttled = self.one_of and self.requests % self.one_of == 7
        self.throttled += is_throttled
        found, nbytes = self.answer_to(head)
        if is_throttled:
            found, nbytes = [b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n"], 0
        loop = asyncio.get_running_loop()
        self._link_free_at = max(loop.time() + self.latency_seconds, self._link_free_at) + nbytes / self.bytes_per_second
        loop.call_at(self._link_free_at, self.answer, transport, found)
        return nbytes

    def answer_to(self, head):
        """Its parts, and how many bytes of the object it has."""
        data, etag = self.objects[path_of(head)]
        begin, end = map(int, _RANGE.search(head).groups())
        part = data[begin : end + 1]
        described = (etag, begin, begin + len(part) - 1, len(data), len(part))
        return [b'HTTP/1.1 206 Partial Content\r\nETag: "%b"\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n' % described, part], len(part)

    def answer(self, transport, parts):
        self.in_flight -= 1
        for part in parts:
            transport.write(part)

    async def listen(self, host, port):
        return await asyncio.get_running_loop().create_server(lambda: _Connection(self), host, port)

    def serve(self, connection):
        """Sends its address, and when it is told to end what it has counted. A word asks for the number of requests so far."""
        asyncio.run(self._serve(connection))

    async def _serve(self, connection):
        server = await self.listen("127.0.0.1", 0)
        connection.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        while await asyncio.get_running_loop().run_in_executor(None, connection.recv) != "end":
            connection.send((self.requests, self.throttled, self.most_in_flight))
        server.close()


def path_of(head):
    return head.split(b" ", 2)[1].partition(b"?")[0]
