"""Objects by their URLs, and how to ask for them: s3://BUCKET/KEY signed by the pod's credentials, http(s)://HOST/PATH as it is, presigned or not.

The environment says the rest, by the names that the tools of S3 use: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION,
AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, AWS_SHARED_CREDENTIALS_FILE and AWS_PROFILE, and those of the pod's identity
(pod_identity.py). Without credentials a request is not signed: public buckets answer it.
"""

from __future__ import annotations

import configparser
import os
import re
import ssl
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from sluice.stores.pod_identity import agent_credentials, role_credentials
from sluice.stores.sigv4 import Credentials, encoded, signed_headers

_URL = re.compile(r"(s3|https?)://", re.IGNORECASE)
_SECRETS = re.compile(r"(?i)(x-(amz|goog)-|signature$|expires$|awsaccesskeyid$|googleaccessid$)")


@dataclass(frozen=True)
class Target:
    """Whom to ask, and what: `path` as it goes over the wire. `region` is that of the signature, "" for a request that is not signed."""

    scheme: str
    host: str
    path: str
    region: str = ""

    def headers(self, asked: dict[str, str], known: Credentials | None, when: datetime) -> dict[str, str]:
        """`known`: whose signature; None for a request that is not signed."""
        headers = {"Host": self.host, "Accept-Encoding": "identity", **asked}
        if known is None:
            return headers
        return signed_headers("GET", unquote(self.path, errors="surrogateescape"), [], headers, known, self.region, when)


_VARIABLES = (
    "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_PROFILE", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_SESSION_NAME", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN",
)  # fmt: skip


def access() -> dict[str, str]:
    """What an executor that is not Python has to know to ask as this process would: variables of the environment by their names. They hold secrets."""
    trusted = ssl.get_default_verify_paths()
    found = {"AWS_SHARED_CREDENTIALS_FILE": _shared_file(), "SSL_CERT_FILE": trusted.cafile, "SSL_CERT_DIR": trusted.capath}
    return {name: value for name, value in {**{name: os.environ.get(name) for name in _VARIABLES}, **found}.items() if value}


def is_url(path: str) -> bool:
    return _URL.match(path) is not None


def shown(path: str) -> str:
    """For people and logs: the query of a URL may hold a signature, and its user information a password."""
    if not is_url(path):
        return path
    parts = urlsplit(path)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def lasting(url: str) -> str:
    """What stays of a URL when it is presigned anew."""
    query = "&".join(part for part in urlsplit(url).query.split("&") if part and not _SECRETS.match(part.partition("=")[0]))
    return shown(url) + (f"?{query}" if query else "")


def target_of(url: str) -> Target:
    """Raises ValueError for what names no object."""
    parts = urlsplit(url)
    if parts.username is not None or not parts.hostname or len(parts.path) < 2:
        raise ValueError(f"{shown(url)} names no object: s3://BUCKET/KEY or https://HOST/PATH")
    if parts.scheme.lower() == "s3":
        return _of_bucket(parts.netloc, url.partition("://")[2].partition("/")[2])
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or re.search(r"[\x00-\x20\x7f]", path):
        raise ValueError(f"{shown(url)} has characters that must be percent-encoded")
    return Target(parts.scheme.lower(), parts.netloc, path)


def _of_bucket(bucket: str, key: str) -> Target:
    region = _first("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    endpoint = _first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    if not endpoint and "." not in bucket:
        return Target("https", f"{bucket}.s3.{region}.amazonaws.com", encoded(f"/{key}"), region)
    parts = urlsplit(endpoint or f"https://s3.{region}.amazonaws.com")  # A certificate for *.s3 is not one for a name with more dots.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError(f"AWS_ENDPOINT_URL is http(s)://HOST[:PORT], not {shown(endpoint)}")
    return Target(parts.scheme, parts.netloc, encoded(f"{parts.path.rstrip('/')}/{bucket}/{key}"), region)


def credentials(refused: Credentials | None = None) -> Credentials | None:
    """In the order of the tools of S3: those of the environment, of the pod's role, of the shared file, of the node's agent; None if there are none.
    `refused`: what a store has called expired. Raises IdentityError, and ValueError for a file that is none of credentials."""
    return _of_environment() or role_credentials(refused) or _of_shared_file() or agent_credentials(refused)


def _of_environment() -> Credentials | None:
    key_id, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
    return Credentials(key_id, secret, os.environ.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None


def _of_shared_file() -> Credentials | None:
    path = _shared_file()
    try:
        return _of_file(path, os.environ.get("AWS_PROFILE") or "default", os.stat(path).st_mtime_ns)
    except OSError:
        return None


def _shared_file() -> str:
    return os.path.abspath(os.path.expanduser(os.environ.get("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"))


@lru_cache(maxsize=4)
def _of_file(path: str, profile: str, _modified_ns: int) -> Credentials | None:
    """Read again when it changes: the renewal of credentials writes the file."""
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read(path)
    except configparser.Error:
        raise ValueError(f"{path} is no file of credentials") from None  # The parser's words would repeat its lines.
    if not file.has_option(profile, "aws_access_key_id") or not file.has_option(profile, "aws_secret_access_key"):
        return None
    return Credentials(file[profile]["aws_access_key_id"], file[profile]["aws_secret_access_key"], file[profile].get("aws_session_token", ""))


def _first(*names: str) -> str:
    return next((value for name in names if (value := os.environ.get(name))), "")
