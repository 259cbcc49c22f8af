"""A store of objects on the loopback that costs little: one process for hundreds of requests in flight. It answers ranges after a while, as stores do,
and some requests with a 503. What it counts, it says at the end."""

import asyncio
import hashlib
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
    """`objects` by path. Every `one_of`-th request is answered 503; 0: none."""

    def __init__(self, objects, latency_seconds, one_of):
        self.objects = {path.encode(): (memoryview(data), hashlib.md5(data).hexdigest().encode()) for path, data in objects.items()}
        self.latency_seconds, self.one_of = latency_seconds, one_of
        self.requests = self.throttled = self.in_flight = self.most_in_flight = 0

    def begin(self, transport, head):
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        is_throttled = self.one_of and self.requests % self.one_of == 7
        self.throttled += is_throttled
        asyncio.get_running_loop().call_later(self.latency_seconds, self.answer, transport, head, is_throttled)

    def answer(self, transport, head, is_throttled):
        self.in_flight -= 1
        path = head.split(b" ", 2)[1].partition(b"?")[0]
        data, etag = self.objects[path]
        begin, end = map(int, _RANGE.search(head).groups())
        end = min(end, len(data) - 1)
        if is_throttled:
            transport.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
            return
        transport.write(b'HTTP/1.1 206 Partial Content\r\nETag: "%b"\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n'
                        % (etag, begin, end, len(data), end - begin + 1))
        transport.write(data[begin : end + 1])

    def serve(self, connection):
        """Sends its address, and when it is told to end what it has counted. A word asks for the number of requests so far."""
        asyncio.run(self._serve(connection))

    async def _serve(self, connection):
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        connection.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        while await loop.run_in_executor(None, connection.recv) != "end":
            connection.send((self.requests, self.throttled, self.most_in_flight))
        server.close()
