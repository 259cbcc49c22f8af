"""Ranges of objects, many at a time (docs/designs/object-stores.md).

Requests in flight are bounded in number and in bytes. Their number grows with success and falls when the store says that it is too much. Every
answer must be of the state that the range was found in, and of the right length: anything else is asked again, or an error. A late request
that a batch waits for is sent once more (late_requests.py). Thread-safe.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any
from urllib.parse import urljoin

from sluice.stores.late_requests import LateRequests
from sluice.stores.object_urls import Target, credentials, shown, target_of
from sluice.stores.pod_identity import IdentityError
from sluice.stores.sigv4 import Credentials

MOST_IN_FLIGHT = 32
MOST_BYTES_IN_FLIGHT = 1 << 28
MOST_ATTEMPTS = 10
_LEAST_IN_FLIGHT = 2
_FIRST_IN_FLIGHT = 16
_SILENCE_SECONDS = 30
_LEAST_BYTES_PER_SECOND = 1 << 16  # Of an answer that is on its way, behind the seconds above.
_FIRST_BACKOFF_SECONDS, _MOST_BACKOFF_SECONDS = 0.05, 10
_GAP_BYTES, _MOST_JOINED_BYTES = 128 << 10, 8 << 20  # Neighbours are one request where the bytes between cost less than another.
_MOST_REDIRECTS = 3
_MOST_REFUSAL_BYTES = 1 << 14
_THROTTLED = {429, 503}
_PASSING = {408, 500, 502, 504, *_THROTTLED}
_own_random = random.SystemRandom()  # The numbers of the user's transforms must not depend on the network.
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class ObjectError(OSError):
    """An object that cannot be read. The message names the object, the range and what the store answered, and no secret."""


class ObjectChanged(ObjectError):
    """The object is no longer in the state that its range was found in."""


@dataclass(frozen=True)
class ObjectState:
    """`etag`: what the store calls this content of the object, or its time of modification where it has no name for that."""

    nbytes: int
    etag: str

    def digest(self) -> int:
        """The etag as a number of 64 bits."""
        return int.from_bytes(hashlib.sha256(self.etag.encode()).digest()[:8], "little", signed=True)


@dataclass(frozen=True)
class Range:
    """Of an object in a state."""

    url: str
    state: ObjectState
    offset: int
    nbytes: int

    def in_words(self) -> str:
        return f"{shown(self.url)}, bytes {self.offset} to {self.offset + self.nbytes}"


class _Passing(Exception):
    """Worth another attempt."""

    def __init__(self, reason: str, throttled: bool = False, wait_seconds: float = 0) -> None:
        super().__init__(reason)
        self.throttled = throttled
        self.wait_seconds = wait_seconds


class Pace:
    """How much may be in flight: one more for each round of answers, three quarters when the store asks for less, once a second at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = float(_FIRST_IN_FLIGHT)
        self._clock = clock
        self._in_flight = self._bytes = 0
        self._slowed_at = -1.0
        self._changed = threading.Condition()

    def enter(self, nbytes: int) -> None:
        """Waits for a place. A request that is larger than the bound goes alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._in_flight or (self._in_flight < int(self.limit) and self._bytes + nbytes <= MOST_BYTES_IN_FLIGHT))
            self._in_flight += 1
            self._bytes += nbytes

    def leave(self, nbytes: int, throttled: bool) -> None:
        with self._changed:
            self._in_flight -= 1
            self._bytes -= nbytes
            if not throttled:
                self.limit = min(MOST_IN_FLIGHT, self.limit + 1 / self.limit)
            elif self._clock() - self._slowed_at >= 1:
                self.limit, self._slowed_at = max(_LEAST_IN_FLIGHT, self.limit * 0.75), self._clock()
            self._changed.notify_all()


class ObjectReader:
    """Use `reader`."""

    def __init__(self, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._pace = Pace()
        self._late = LateRequests()
        self._threads = ThreadPoolExecutor(MOST_IN_FLIGHT, "sluice-objects")
        self._connections = threading.local()
        self._ahead: dict[Range, tuple[Range, Future]] = {}
        self._lock = threading.Lock()
        self._expired: Credentials | None = None  # what a store has said so of

    def state(self, url: str) -> ObjectState:
        """By a GET of one byte, as a presigned URL allows no other method. Raises ObjectError, or ValueError for what names no object."""
        return self._try_often(f"{shown(url)}", 1, lambda: self._ask(url, 0, 1, None))[1]

    def read(self, wanted: Range) -> bytes:
        """Raises ObjectError."""
        with self._lock:
            piece, future = self._ahead.pop(wanted, (wanted, None))
        if wanted.nbytes == 0:
            return b""
        data = self._first_answer(piece, future or self._threads.submit(self._get, piece))
        return data[wanted.offset - piece.offset :][: wanted.nbytes]

    def read_ahead(self, wanted: Iterable[Range]) -> None:
        """Begins to read what will be asked for next, and drops what was begun before and is not wanted. Ranges that would exceed the bound of bytes
        are left for `read`."""
        ahead: dict[Range, tuple[Range, Future]] = {}
        left = MOST_BYTES_IN_FLIGHT
        for piece, parts in joined(wanted):
            left -= piece.nbytes
            if left < 0:
                break
            future = self._threads.submit(self._get, piece)
            ahead.update((part, (piece, future)) for part in parts)
        with self._lock:
            dropped, self._ahead = self._ahead, ahead
        for _, future in dropped.values():
            future.cancel()

    def _first_answer(self, piece: Range, first: Future) -> bytes:
        """Of the request, or of another one when it is late."""
        late_after = self._late.late_after_seconds(piece.nbytes)
        if late_after is None or wait([first], late_after).done or not self._late.may_ask_again():
            return first.result()
        both = [first, self._threads.submit(self._get, piece)]
        done, other = wait(both, return_when=FIRST_COMPLETED)
        good = next((each for each in done if not each.exception()), None)
        if good is None:
            return next(iter(other or done)).result()
        for each in other:
            each.cancel()
        return good.result()

    def _get(self, wanted: Range) -> bytes:
        return self._try_often(wanted.in_words(), wanted.nbytes, lambda: self._ask(wanted.url, wanted.offset, wanted.nbytes, wanted.state))[0]

    def _try_often(self, what: str, nbytes: int, ask: Callable[[], tuple[bytes, ObjectState]]) -> tuple[bytes, ObjectState]:
        reasons: Counter[str] = Counter()
        for attempt in range(MOST_ATTEMPTS):
            self._pace.enter(nbytes)
            throttled = False
            began = time.monotonic()
            try:
                answer = ask()
                self._late.took(nbytes, time.monotonic() - began)
                return answer
            except (_Passing, OSError, http.client.HTTPException) as error:
                self._forget_connections()  # Something of the answer may be left in them.
                if isinstance(error, ObjectError):
                    raise type(error)(f"{what}: {error}") from None
                if isinstance(error, IdentityError) and not error.passing:
                    raise ObjectError(f"{what}: {error}") from None
                reason = error if isinstance(error, _Passing) else _Passing(f"{type(error).__name__}: {error}")
                throttled = reason.throttled
                if throttled:
                    self._late.store_is_busy()
                reasons[str(reason)] += 1
            finally:
                self._pace.leave(nbytes, throttled)
            if attempt + 1 < MOST_ATTEMPTS:
                longest = min(_MOST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2**attempt)
                self._sleep(max(min(reason.wait_seconds, _SILENCE_SECONDS), _own_random.uniform(0, longest)))
        told = ", ".join(f"{reason} ({count} times)" for reason, count in reasons.items())
        raise ObjectError(f"{what}: not read in {MOST_ATTEMPTS} attempts: {told}")

    def _ask(self, url: str, offset: int, nbytes: int, state: ObjectState | None) -> tuple[bytes, ObjectState]:
        target = target_of(url)
        asked = {"Range": f"bytes={offset}-{offset + nbytes - 1}"}
        if state is not None and state.etag.startswith('"'):  # A weak name is good for no If-Match.
            asked["If-Match"] = state.etag
        for _ in range(_MOST_REDIRECTS + 1):
            connection = self._connection(target)
            shown_to_store = credentials(self._expired) if target.region else None
            connection.request("GET", target.path, headers=target.headers(asked, shown_to_store, datetime.now(timezone.utc)))
            with connection.getresponse() as answer:
                if answer.status in (301, 302, 303, 307, 308):
                    target = _redirected(target, answer)
                    self._forget_connections()
                    continue
                if answer.status != 206:
                    raise self._refused(answer, target, shown_to_store) or _refusal(answer, target, state is not None)
                return self._take(answer, offset, nbytes, state)
        raise ObjectError(f"more than {_MOST_REDIRECTS} redirects")

    def _take(self, answer: http.client.HTTPResponse, offset: int, nbytes: int, state: ObjectState | None) -> tuple[bytes, ObjectState]:
        found = _RANGE.fullmatch(answer.getheader("Content-Range", ""))
        if found is None or (int(found[1]), int(found[2])) != (offset, offset + nbytes - 1):
            raise _Passing("another range than was asked for")
        if answer.getheader("Content-Encoding", "identity") != "identity":
            raise ObjectError("the store compresses the object, so that its ranges are others")
        name = answer.getheader("ETag") or answer.getheader("Last-Modified")
        if not name:
            raise ObjectError("the store says neither ETag nor Last-Modified, so a change would not be seen")
        now = ObjectState(int(found[3]), name)
        if state is not None and now != state:
            raise ObjectChanged("has changed since its index was made: make the data set anew")
        return _body(answer, nbytes), now

    def _refused(self, answer: http.client.HTTPResponse, target: Target, known: Credentials | None) -> Exception | None:
        """Where it is about who asks. Credentials that end are renewed and shown once more: their lender may have been late."""
        if answer.status not in (400, 401, 403):
            return None
        if known is not None and b"<Code>ExpiredToken" in answer.read(_MOST_REFUSAL_BYTES):
            if known != self._expired:
                self._expired = known
                return _Passing("credentials that have expired")
            return ObjectError(f"{target.host} says that the credentials have expired: renew AWS_SESSION_TOKEN, or the file that it is from")
        how = f", signed for region {target.region}" if known is not None else ", not signed"
        return ObjectError(f"{target.host} answers {answer.status} {answer.reason}{how}: look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and "
                           "AWS_ENDPOINT_URL, at the rights of the pod's identity, or at the age of a presigned URL")

    def _connection(self, target: Target) -> http.client.HTTPConnection:
        """Kept for the next request of this thread: a handshake takes longer than a range."""
        known: dict[Any, http.client.HTTPConnection] = self._connections.__dict__
        if (target.scheme, target.host) not in known:
            self._forget_connections()
            kind = http.client.HTTPSConnection if target.scheme == "https" else http.client.HTTPConnection
            known[target.scheme, target.host] = kind(target.host, timeout=_SILENCE_SECONDS)
        return known[target.scheme, target.host]

    def _forget_connections(self) -> None:
        for connection in self._connections.__dict__.values():
            connection.close()
        self._connections.__dict__.clear()


def joined(ranges: Iterable[Range]) -> list[tuple[Range, list[Range]]]:
    """Neighbours in one piece, with the ranges that it holds. In the order of the first range of each."""
    wanted = [each for each in dict.fromkeys(ranges) if each.nbytes]
    place = {each: number for number, each in reversed(list(enumerate(wanted)))}
    pieces: list[tuple[Range, list[Range]]] = []
    for each in sorted(wanted, key=lambda one: (one.url, one.state.etag, one.offset)):
        if pieces and (pieces[-1][0].url, pieces[-1][0].state) == (each.url, each.state):
            last, parts = pieces[-1]
            end = max(last.offset + last.nbytes, each.offset + each.nbytes)
            if each.offset - last.offset - last.nbytes <= _GAP_BYTES and end - last.offset <= _MOST_JOINED_BYTES:
                pieces[-1] = Range(each.url, each.state, last.offset, end - last.offset), [*parts, each]
                continue
        pieces.append((each, [each]))
    return sorted(pieces, key=lambda piece: min(place[part] for part in piece[1]))


def _body(answer: http.client.HTTPResponse, nbytes: int) -> bytes:
    """No more than was asked for, whatever the answer says of its length."""
    deadline = time.monotonic() + _SILENCE_SECONDS + nbytes / _LEAST_BYTES_PER_SECOND
    data = bytearray()
    while len(data) < nbytes:
        more = answer.read1(nbytes - len(data))
        if not more:
            raise _Passing("a body that is cut off")
        data += more
        if time.monotonic() > deadline:
            raise _Passing("a body that takes too long")
    if answer.read1(1):
        raise _Passing("a body that is too long")
    return bytes(data)


def _refusal(answer: http.client.HTTPResponse, target: Target, has_state: bool) -> Exception:
    status = f"{answer.status} {answer.reason}"
    if answer.status in _PASSING:
        asked = answer.getheader("Retry-After", "")
        return _Passing(status, answer.status in _THROTTLED, float(asked) if asked.isdigit() and len(asked) < 6 else 0)
    if has_state and answer.status in (412, 416):
        return ObjectChanged("has changed since its index was made: make the data set anew")
    if answer.status == 200:
        return _Passing("the whole object in place of a range")
    return ObjectError(f"{target.host} answers {status}")


def _redirected(target: Target, answer: http.client.HTTPResponse) -> Target:
    if target.region:  # The signature names host and region.
        region = answer.getheader("x-amz-bucket-region", "another")
        raise ObjectError(f"the bucket is in region {region}, not {target.region}: set AWS_REGION")
    url = urljoin(f"{target.scheme}://{target.host}{target.path}", answer.getheader("Location", ""))
    if target.scheme == "https" and not url.startswith("https://"):
        raise ObjectError(f"{target.host} redirects to {shown(url)}, without TLS")
    return target_of(url)


_reader: ObjectReader | None = None
_making = threading.Lock()


def reader() -> ObjectReader:
    """That of this process."""
    global _reader
    with _making:
        if _reader is None:
            _reader = ObjectReader()
        return _reader


def _forget() -> None:
    """The threads stay with the parent of a fork, and its connections must not be shared."""
    global _reader, _making
    _reader, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
