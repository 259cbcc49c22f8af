"""The process's connection to its feeder: one thread owns the socket, sends and receives, and reconnects.

Every other thread only posts to its mailbox, and so do finalisers.
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

from sluice.base.notices import log
from sluice.feeder.endpoint import Endpoint, FeederBroken, FeederUnavailable
from sluice.feeder.greeting import greet
from sluice.feeder.mailbox import Mailbox
from sluice.feeder.session import Listener, Session
from sluice.shipping.framing import FrameParser, Outgoing, ProtocolError, encode

_PROGRESS_INTERVAL_SECONDS = 1.0
_FIRST_BACKOFF_SECONDS = 0.02
_LONGEST_BACKOFF_SECONDS = 1.0
_HANDSHAKE_SECONDS = 10.0
_READ_BYTES = 1 << 18
_MOST_LOSSES = 2
_MOST_FAILED_STARTS = 3
_BETWEEN_FAILED_STARTS_SECONDS = 30.0


class Connection:
    """Thread-safe. Invariants: `session` and everything in it change only under `condition`; only the connection's own
    thread touches the socket; `streams` holds every stream that has begun and not been closed."""

    def __init__(self, endpoint: Endpoint, start_patience_seconds: float, loss_patience_seconds: float,
                 clock: Callable[[], float] = time.monotonic, identity: Callable[[], dict] = dict) -> None:
        """Starts connecting. `identity` gives the fields rank and world_size of `hello`; `clock` is in seconds, monotonic."""
        self.condition = threading.Condition()
        self.clock = clock
        self.session: Session | None = None
        self.streams: set[Listener] = set()
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
        self._mailbox = Mailbox()
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
            self.condition.wait_for(lambda: self.session is not None or self._is_broken, max(0.0, ends_seconds - self.clock()))
            return self.session is not None

    @property
    def _is_broken(self) -> bool:
        """Whether the feeder has failed to start again and again."""
        return self._failed_starts >= _MOST_FAILED_STARTS

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
        if not self._closing and os.getpid() == self.owner_pid:
            self._mailbox.post(item)

    def close_stream(self, stream: Listener) -> None:
        """Takes no lock."""
        self.post(("close", stream))

    @property
    def may_be_waited_for(self) -> bool:
        """Whether the calling thread is another one of its process, and holds up nothing: a finaliser runs within any line of its thread."""
        if os.getpid() != self.owner_pid or threading.current_thread() is self._thread:
            return False
        return not self.condition._is_owned()  # type: ignore[attr-defined]

    def close(self, seconds: float = 5.0) -> None:
        """Says goodbye and ends the thread. Streams that are still open compute in process from now on."""
        self._closing = True
        self._mailbox.ring()
        greeting = self._socket if self.session is None else None
        if greeting is not None:
            with contextlib.suppress(OSError):
                greeting.shutdown(socket.SHUT_RDWR)
        self._thread.join(seconds)
        self._endpoint.close()

    def abandon(self) -> None:
        """In a forked child: the socket belongs to the parent. Closes this process's copies without a word."""
        self._closing = True
        self._mailbox.abandon()
        if self._socket is not None:
            self._socket.close()

    def require_owner(self) -> None:
        """Raises RuntimeError in a process that was forked from its own."""
        if self.owner_pid != os.getpid():
            raise RuntimeError("this iterator was made before a fork, in the parent process; make a new one from the loader")

    # The connection's thread.

    def _run(self) -> None:
        backoff_seconds = _FIRST_BACKOFF_SECONDS
        while not self._closing:
            try:
                with self._connect() as connected:
                    hello = {"rank": 0, "world_size": 1, "pid": self.owner_pid, **self._identity()}
                    self._parser = FrameParser()
                    session, frames = greet(connected, hello, self._parser, self.post)
                    try:
                        self._up(session, frames)
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
            self._pause(_BETWEEN_FAILED_STARTS_SECONDS if self._is_broken else backoff_seconds)
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

    def _up(self, session: Session, frames: list[tuple[dict, bytes]]) -> None:
        """`frames`: that have come already."""
        with self.condition:
            if self.ever_connected:
                log.info("connected again to the feeder at %s", self.where)
            self.ever_connected = True
            self._failed_starts = 0
            self.session = session
            self.trouble = ""
            for frame in frames:
                self._dispatch(session, *frame)
            for stream in self.streams:
                stream.on_connected(session)
            self.condition.notify_all()

    def _down(self, trouble: Exception) -> None:
        with self.condition:
            self.trouble = str(trouble) or type(trouble).__name__
            lacks_memory = isinstance(trouble, OSError) and trouble.errno == errno.ENOMEM  # For the arena.
            if isinstance(trouble, FeederBroken) or lacks_memory:
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
            if select.select([self._mailbox], [], [], left_seconds)[0]:
                self._mailbox.hear()
            self._act_on_posts(None)

    def _exchange(self, connected: socket.socket, session: Session) -> None:
        """Until the connection is lost (OSError, ProtocolError) or closed by this side."""
        connected.setblocking(False)
        poller = select.poll()
        poller.register(self._mailbox, select.POLLIN)
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
                if descriptor == self._mailbox.fileno():
                    self._mailbox.hear()
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
        while (posted := self._mailbox.take()) is not None:
            kind, *item = posted
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
            if stream is None:
                answer.discard()
            else:
                stream.on_answer(answer)
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

    def _withdraw(self, streams: list[Listener]) -> None:
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
