"""The process's connection to its feeder: one thread owns the socket, sends and receives, and reconnects.

Everyone else only appends to a queue and rings an eventfd. That is also all a finaliser may do: it can run in the middle of
any allocation, in any thread, whatever locks that thread holds.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from sluice.framing import FrameParser, Outgoing, ProtocolError, encode
from sluice.notices import log
from sluice.session import Listener, Session
from sluice.stream import Stream

PROTOCOL_VERSION = 1
_PROGRESS_INTERVAL_SECONDS = 1.0
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 0.02, 1.0
_HANDSHAKE_SECONDS = 10.0
_READ_BYTES, _MOST_LOSSES = 1 << 18, 2
_MOST_FAILED_STARTS, _BETWEEN_FAILED_STARTS_SECONDS = 3, 30.0


class FeederUnavailable(Exception):
    """There is no feeder to connect to at present; the message says why."""


class FeederBroken(FeederUnavailable):
    """It cannot be started, or ends as it starts."""


class Endpoint(Protocol):
    """Where the feeder is, and whatever has to be done for it to be there."""

    @property
    def name(self) -> str:
        """For people."""

    def address(self) -> str:
        """The path of its Unix socket. Called before each attempt to connect, by the connection's thread. Raises
        FeederUnavailable, or FeederBroken or OSError if no later call will find it."""

    def close(self) -> None:
        """The process needs it no more."""


class Connection:
    """Thread-safe. Invariants: `session` and everything in it change only under `condition`; only the connection's own
    thread touches the socket; `streams` holds every stream that has begun and not been closed."""

    def __init__(self, endpoint: Endpoint, start_patience_seconds: float, loss_patience_seconds: float,
                 clock: Callable[[], float] = time.monotonic, identity: Callable[[], dict] = dict) -> None:
        """Starts connecting. `identity` gives the fields rank and world_size of `hello`; `clock` is in seconds, monotonic."""
        self.condition = threading.Condition()
        self.clock = clock
        self.session: Session | None = None
        self.streams: set[Stream] = set()
        self.trouble = ""  # Why there is no session, in words.
        self.ever_connected = False
        self.has_delivered = False  # Whether the loop has had a batch, over any stream.
        self.owner_pid = os.getpid()
        self._endpoint = endpoint
        self._identity = identity
        self._start_patience_seconds = start_patience_seconds
        self._loss_patience_seconds = loss_patience_seconds
        self._down_since_seconds = clock()
        self._failed_starts = 0  # Before the first session.
        self._losses = 0  # In a row, without an answer in between.
        self._closing = False
        self._posted: deque[tuple] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._rung = False  # And not heard yet: then ringing again would only cost time.
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name="sluice-connection", daemon=True)
        self._thread.start()

    # Any thread.

    @property
    def where(self) -> str:
        return self._endpoint.name

    def wait_connected(self, seconds: float) -> bool:
        """Whether there is a session, now or within so many seconds."""
        with self.condition:
            return self.condition.wait_for(lambda: self.session is not None, seconds)

    def wait_first_connected(self) -> bool:
        """Whether there is a session, now or as long as loops wait for the first one. They wait no longer for a feeder that cannot be started."""
        ends_seconds = self._down_since_seconds + self._start_patience_seconds
        with self.condition:
            self.condition.wait_for(lambda: self.session is not None or self._failed_starts >= _MOST_FAILED_STARTS, max(0.0, ends_seconds - self.clock()))
            return self.session is not None

    def patience_ends_seconds(self) -> float | None:
        """When a loop should stop waiting for a feeder, on the connection's clock; None while there is one that has not gone
        again and again. Holding the condition."""
        if self._losses > _MOST_LOSSES:
            return float("-inf")  # It comes back again and again, and makes nothing before it goes.
        if self.session is not None:
            return None
        patience_seconds = self._loss_patience_seconds if self.ever_connected else self._start_patience_seconds
        return self._down_since_seconds + patience_seconds

    def post(self, item: tuple) -> None:
        """Hands an item to the connection's thread. Takes no lock. Once it closes there is nothing to hand over: so finalisers may call this
        when the interpreter has taken its modules down."""
        if not self._closing and os.getpid() == self.owner_pid and self._bell >= 0:
            self._posted.append(item)
            self._ring()

    def close_stream(self, stream: Stream) -> None:
        """Takes no lock."""
        self.post(("close", stream))

    @property
    def may_be_waited_for(self) -> bool:
        """Whether the calling thread is another one of its process, and holds up nothing: a finaliser runs within any line of its thread."""
        return os.getpid() == self.owner_pid and threading.current_thread() is not self._thread and not self.condition._is_owned()  # type: ignore[attr-defined]

    def close(self, seconds: float = 5.0) -> None:
        """Says goodbye and ends the thread. Streams that are still open compute in process from now on."""
        self._closing = True
        self._ring()
        greeting = self._socket if self.session is None else None
        if greeting is not None:
            with contextlib.suppress(OSError):
                greeting.shutdown(socket.SHUT_RDWR)
        self._thread.join(seconds)
        self._endpoint.close()

    def abandon(self) -> None:
        """In a forked child: the socket belongs to the parent. Closes this process's copies without a word."""
        self._closing = True
        bell, self._bell = self._bell, -1
        if self._socket is not None:
            self._socket.close()
        if bell >= 0:
            os.close(bell)

    def require_owner(self) -> None:
        """Raises RuntimeError in a process that was forked from its own."""
        if self.owner_pid != os.getpid():
            raise RuntimeError("this iterator was made before a fork, in the parent process; make a new one from the loader")

    def __del__(self) -> None:
        # Not in `close`: a finaliser in another thread may still ring, and the number may then mean another file.
        if getattr(self, "_bell", -1) >= 0:
            os.close(self._bell)

    def _ring(self) -> None:
        if self._rung:
            return
        self._rung = True
        # Full only after 2^64 - 1 rings without a listener; closed only if the interpreter is going down.
        with contextlib.suppress(OSError):
            os.eventfd_write(self._bell, 1)

    def _hear(self) -> None:
        """Before the posts are looked at: who posts later rings anew."""
        os.eventfd_read(self._bell)
        self._rung = False

    # The connection's thread.

    def _run(self) -> None:
        backoff_seconds = _FIRST_BACKOFF_SECONDS
        while not self._closing:
            try:
                with self._connect() as connected:
                    session = self._greet(connected)
                    try:
                        self._up(session)
                        backoff_seconds = _FIRST_BACKOFF_SECONDS
                        self._exchange(connected, session)
                    finally:
                        if not _has_ended(connected):
                            session.arena.part()
            except (FeederUnavailable, ProtocolError, OSError) as trouble:
                self._down(trouble)
            except Exception as defect:  # Without this thread every loop would wait for ever.
                log.exception("defect in Sluice's connection to its feeder; connecting anew")
                self._down(defect)
            finally:
                self._socket = None
            self._pause(backoff_seconds if self._failed_starts < _MOST_FAILED_STARTS else _BETWEEN_FAILED_STARTS_SECONDS)
            backoff_seconds = min(2 * backoff_seconds, _LONGEST_BACKOFF_SECONDS)
        self._down(FeederUnavailable("the connection was closed"))
        self._act_on_posts(None)

    def _connect(self) -> socket.socket:
        try:
            path = self._endpoint.address()
        except OSError as obstacle:
            raise FeederBroken(str(obstacle)) from None
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.settimeout(_HANDSHAKE_SECONDS)
            connected.connect(path)
        except OSError:
            connected.close()
            raise
        self._socket = connected
        return connected

    def _greet(self, connected: socket.socket) -> Session:
        hello = {"type": "hello", "protocol": PROTOCOL_VERSION, "rank": 0, "world_size": 1, "pid": self.owner_pid}
        connected.sendall(encode({**hello, **self._identity()}))
        self._parser = FrameParser()
        descriptors: list[int] = []
        try:
            while True:
                data, received, _, _ = socket.recv_fds(connected, _READ_BYTES, 4, socket.MSG_CMSG_CLOEXEC)
                descriptors += received
                if not data:
                    raise ProtocolError("the feeder closed the connection instead of answering hello")
                self._early = list(self._parser.feed(data))
                if self._early:
                    break
            message = self._early.pop(0)[0]
            if message["type"] != "welcome":
                raise ProtocolError(f"the feeder answered hello with {message.get('message', message['type'])}")
            if message.get("protocol") != PROTOCOL_VERSION:
                raise ProtocolError(f"the feeder speaks protocol {message.get('protocol')}, this client {PROTOCOL_VERSION}")
            if len(descriptors) != 1:
                raise ProtocolError(f"welcome came with {len(descriptors)} file descriptors instead of the arena's one")
            return Session(self.post, message, descriptors[0])
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _up(self, session: Session) -> None:
        with self.condition:
            if self.ever_connected:
                log.info("connected again to the feeder at %s", self.where)
            self.ever_connected, self._failed_starts = True, 0
            self.session, self.trouble = session, ""
            for frame in self._early:
                self._dispatch(session, *frame)
            for stream in self.streams:
                stream.on_connected(session)
            self.condition.notify_all()

    def _down(self, trouble: Exception) -> None:
        with self.condition:
            self.trouble = str(trouble) or type(trouble).__name__
            if isinstance(trouble, FeederBroken) or getattr(trouble, "errno", None) == errno.ENOMEM:  # For the arena.
                self._failed_starts += 1
            if self.session is not None:
                if not self._closing:
                    log.info("lost the feeder at %s: %s", self.where, self.trouble)
                self.session.alive = False
                self.session = None
                self._losses += 1
                self._down_since_seconds = self.clock()
            if self._closing:
                self._down_since_seconds = float("-inf")
            for stream in self.streams:
                stream.on_disconnected()
            self._withdraw([stream for stream in self.streams if stream.is_ahead])
            self.condition.notify_all()

    def _pause(self, seconds: float) -> None:
        ends_seconds = time.monotonic() + seconds
        while not self._closing and (left_seconds := ends_seconds - time.monotonic()) > 0:
            if select.select([self._bell], [], [], left_seconds)[0]:
                self._hear()
            self._act_on_posts(None)

    def _exchange(self, connected: socket.socket, session: Session) -> None:
        """Until the connection is lost (OSError, ProtocolError) or closed by this side."""
        connected.setblocking(False)
        poller = select.poll()
        poller.register(self._bell, select.POLLIN)
        outgoing: deque[Outgoing] = deque()
        progress_due_seconds = time.monotonic() + _PROGRESS_INTERVAL_SECONDS
        while True:
            outgoing.extend(self._act_on_posts(session))
            _send_some(connected, outgoing)
            if self._closing and not outgoing:
                return
            poller.register(connected, select.POLLIN | (select.POLLOUT if outgoing else 0))
            wait_seconds = progress_due_seconds - time.monotonic() if session.streams else 3600.0
            for descriptor, events in poller.poll(max(0.0, wait_seconds) * 1000.0):
                if descriptor == self._bell:
                    self._hear()
                elif events & ~select.POLLOUT:
                    self._receive(connected, session)
            if time.monotonic() >= progress_due_seconds:
                progress_due_seconds = time.monotonic() + _PROGRESS_INTERVAL_SECONDS
                self._report_progress(session)

    def _report_progress(self, session: Session) -> None:
        with self.condition:
            for stream in session.streams.values():
                if not stream.is_ahead:
                    session.send(stream.progress())

    def _act_on_posts(self, session: Session | None) -> list[Outgoing]:
        """The frames to send in `session` for what has been posted; items of other sessions are dropped."""
        frames, slots = [], []
        while self._posted:
            kind, *item = self._posted.popleft()
            if kind == "close":
                with self.condition:
                    if item[0] in self.streams:
                        self.streams.discard(item[0])
                        item[0].on_closed()
            elif item[0] is not session or session is None:
                continue
            elif kind == "frame":
                frames.append(item[1])
            elif kind == "request":
                frames.append(Outgoing(encode(item[1])))
            elif kind == "unneeded":
                with self.condition:
                    frames += session.drop_unneeded(item[1])
            else:
                slots.append(item[1])
        if slots:
            frames.append(Outgoing(encode({"type": "release", "slots": slots})))
        return frames

    def _receive(self, connected: socket.socket, session: Session) -> None:
        try:
            data = connected.recv(_READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("it closed the connection")
        with self.condition:
            for message, blob in self._parser.feed(data):
                try:
                    self._dispatch(session, message, blob)
                except KeyError as missing:
                    raise ProtocolError(f"its frame of type {message['type']!r} lacks {missing}") from None
            self.condition.notify_all()

    def _dispatch(self, session: Session, message: dict, blob: bytes) -> None:
        kind = message["type"]
        stream = session.streams.get(message.get("stream", 0))
        if kind == "batch" or (kind == "error" and "seq" in message):
            answer = session.answer(message, blob)
            self._losses = 0
            if message.get("copy"):
                self._make_room(stream)
            answer.discard() if stream is None else stream.on_answer(answer)
        elif kind == "closed":
            session.ending.discard(message["stream"])
        elif kind == "window":
            session.window_batches = message["batches"]
        elif kind == "ready" or (kind == "error" and "pipeline" in message):
            error = message.get("error") if kind == "ready" else message.get("message", "unknown error")
            if error is not None:
                session.forget_pipeline(message["pipeline"])
                for stream in [s for s in session.streams.values() if s.pipeline_number == message["pipeline"]]:
                    stream.on_pipeline_refused(error)
        elif kind == "error":
            raise ProtocolError(f"it reported {message.get('message', 'an error without a message')}")
        else:
            raise ProtocolError(f"it sent a frame of type {kind!r}")

    def _make_room(self, wanting: Listener | None) -> None:
        """The feeder has no slot to lend. Batches that another loader had made ahead give theirs back."""
        self._withdraw([stream for stream in self.streams if stream.is_ahead and wanting not in (stream, stream.after)])

    def _withdraw(self, streams: list[Stream]) -> None:
        for stream in streams:
            self.streams.discard(stream)
            stream.on_closed()


def _has_ended(connected: socket.socket) -> bool:
    """Whether the other end has closed. A feeder that goes on waits for this end to close first; one that ends gives no slot to
    anyone any more."""
    poller = select.poll()
    poller.register(connected, 0)
    return any(events & select.POLLHUP for _, events in poller.poll(0))


def _send_some(connected: socket.socket, outgoing: deque[Outgoing]) -> None:
    """Takes from the front of `outgoing` what the socket accepts now. If the other end is gone that is all of it. Its earlier messages are still to
    be read, and reading tells the end. Given up here, its last batches would be made twice."""
    try:
        while outgoing:
            if outgoing[0].send_some(connected):
                outgoing.popleft()
    except BlockingIOError:
        return
    except (BrokenPipeError, ConnectionResetError):
        outgoing.clear()
