"""Credentials of the pod's own identity: lent by its platform for hours, and renewed before they end.

Two lenders, by the names that the tools of S3 use:

* A role: the token of AWS_WEB_IDENTITY_TOKEN_FILE, which is that of the pod's service account, buys a session of AWS_ROLE_ARN (STS,
  AssumeRoleWithWebIdentity). AWS_ENDPOINT_URL_STS names another service than that of AWS_REGION.
* An agent of the node, at AWS_CONTAINER_CREDENTIALS_FULL_URI or AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: it hands credentials out for
  the token of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE or AWS_CONTAINER_AUTHORIZATION_TOKEN.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode, urlsplit

from sluice.stores.sigv4 import Credentials

ANSWER_SECONDS = 10
_MOST_ANSWER_BYTES = 1 << 16
_RENEWED_AFTER = 0.8  # of what they last
_PAUSE = timedelta(seconds=30)  # between attempts to renew what is still good
_AGENT_OF_TASKS = "http://169.254.170.2"
_AGENTS = {ipaddress.ip_address(address) for address in ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")}  # without TLS, as they are on the node


class IdentityError(OSError):
    """The platform lends no credentials. The message names lender and answer, and no secret. `passing`: worth another attempt."""

    def __init__(self, reason: str, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


@dataclass(frozen=True)
class _Lent:
    credentials: Credentials
    renewed_at: datetime
    ends_at: datetime


class Borrowed:
    """Credentials of one lender. Thread-safe: one thread renews, and the others wait for it. `lender` gives all that an answer depends on but
    files' content, None without a lender. `clock` gives UTC."""

    def __init__(self, lender: Callable[[], Lender | None], clock: Callable[[], datetime] = lambda: datetime.now(timezone.utc)) -> None:
        self._lender = lender
        self._clock = clock
        self._lock = threading.Lock()
        self._from: Lender | None = None
        self._lent: _Lent | None = None

    def credentials(self, refused: Credentials | None = None) -> Credentials | None:
        """None without a lender. `refused`: what the store has called expired, so that other credentials are wanted. Raises IdentityError."""
        lender = self._lender()
        if lender is None:
            return None
        with self._lock:
            now, lent = self._clock(), self._lent
            if lender != self._from or lent is None or now >= lent.ends_at or lent.credentials == refused:
                lent = _lent(lender, now)
            elif now >= lent.renewed_at:
                try:
                    lent = _lent(lender, now)
                except IdentityError:  # What is there is good for a while.
                    lent = _Lent(lent.credentials, now + _PAUSE, lent.ends_at)
            self._lent, self._from = lent, lender
            return lent.credentials


@dataclass(frozen=True)
class Role:
    """Of a service of sessions."""

    url: str
    token_file: str
    name: str
    session: str

    def answer(self) -> dict[str, str]:
        asked = {"Action": "AssumeRoleWithWebIdentity", "Version": "2011-06-15", "RoleArn": self.name, "RoleSessionName": self.session,
                 "WebIdentityToken": _content(self.token_file, "AWS_WEB_IDENTITY_TOKEN_FILE")}  # fmt: skip
        text = _ask("POST", self.url, {"Content-Type": "application/x-www-form-urlencoded"}, urlencode(asked), f"role {self.name}")
        return dict(re.findall(r"<(AccessKeyId|SecretAccessKey|SessionToken|Expiration)>([^<]*)</", text))


@dataclass(frozen=True)
class Agent:
    """Of the node, or behind TLS."""

    url: str
    token_file: str
    token: str = field(repr=False)

    def answer(self) -> dict[str, str]:
        if urlsplit(self.url).scheme != "https" and not _is_on_this_node(urlsplit(self.url).hostname or ""):
            raise IdentityError(f"AWS_CONTAINER_CREDENTIALS_FULL_URI names {urlsplit(self.url).netloc} without TLS, which is no agent of this node")
        token = _content(self.token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") if self.token_file else self.token
        text = _ask("GET", self.url, {"Authorization": token} if token else {}, None, "the pod's credentials")
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        return fields if isinstance(fields, dict) else {}


Lender = Role | Agent


def _role() -> Role | None:
    token_file, name = os.environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"), os.environ.get("AWS_ROLE_ARN")
    if not token_file or not name:
        return None
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    url = os.environ.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.amazonaws.com"
    return Role(url, token_file, name, os.environ.get("AWS_ROLE_SESSION_NAME") or "sluice")


def _agent() -> Agent | None:
    url, path = os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"), os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    if not url and not path:
        return None
    return Agent(url or f"{_AGENT_OF_TASKS}{path}", os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", ""),
                 os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", ""))  # fmt: skip


def _lent(lender: Lender, now: datetime) -> _Lent:
    fields = lender.answer()
    try:
        lent = Credentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields.get("SessionToken") or fields.get("Token") or "")
        ends_at = datetime.fromisoformat(fields["Expiration"].replace("Z", "+00:00"))
        return _Lent(lent, now + _RENEWED_AFTER * (ends_at - now), ends_at)
    except (KeyError, ValueError, TypeError, AttributeError):
        raise IdentityError(f"{urlsplit(lender.url).netloc} answers without AccessKeyId, SecretAccessKey or Expiration") from None


def _is_on_this_node(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback or address in _AGENTS


def _content(path: str, variable: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError) as error:
        raise IdentityError(f"{variable} names {path}, which cannot be read: {type(error).__name__}") from None


def _ask(method: str, url: str, headers: dict[str, str], body: str | None, what: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise IdentityError(f"{parts.netloc.rpartition('@')[2] or 'an address without a host'} cannot be asked for {what}: http(s)://HOST[:PORT] is wanted")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=ANSWER_SECONDS)
    try:
        connection.request(method, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, {"Host": parts.netloc, **headers})
        with connection.getresponse() as answer:
            text = answer.read(_MOST_ANSWER_BYTES).decode(errors="replace")
            status = f"{answer.status} {answer.reason}"
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise IdentityError(f"{parts.netloc} cannot be asked for {what}: {type(error).__name__}", passing=isinstance(error, OSError)) from None
    finally:
        connection.close()
    if not status.startswith("200 "):
        said = re.search(r"<Code>(\w{1,60})</Code>", text)
        raise IdentityError(f"{parts.netloc} refuses {what}: {status}{f' ({said[1]})' if said else ''}", passing=status[0] == "5" or status[:3] == "429")
    return text


_of_role, _of_agent = Borrowed(_role), Borrowed(_agent)


def role_credentials(refused: Credentials | None = None) -> Credentials | None:
    """Of this process's pod: see Borrowed."""
    return _of_role.credentials(refused)


def agent_credentials(refused: Credentials | None = None) -> Credentials | None:
    """Of this process's pod: see Borrowed."""
    return _of_agent.credentials(refused)


def _forget() -> None:
    """A lock that another thread held at a fork stays locked."""
    global _of_role, _of_agent
    _of_role, _of_agent = Borrowed(_role), Borrowed(_agent)


os.register_at_fork(after_in_child=_forget)
