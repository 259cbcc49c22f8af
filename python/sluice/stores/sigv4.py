"""AWS Signature Version 4 for requests without a body that matters, as S3 and the stores that speak its language check it.

A pure function: no clock, no environment. The algorithm is published as "Authenticating Requests: Using the Authorization Header (AWS Signature
Version 4)" in the reference of S3. The tests hold its examples.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True)
class Credentials:
    """Of one identity. Neither secret is in its repr."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


def signed_headers(method: str, path: str, query: list[tuple[str, str]], headers: dict[str, str], credentials: Credentials, region: str, when: datetime,
                   payload: str = UNSIGNED, service: str = "s3") -> dict[str, str]:
    """`headers` with those that sign them. `path` and `query` are not percent-encoded, `headers` has Host, `when` is in UTC, `payload` is
    the SHA-256 of the body in hexadecimal digits."""
    moment = when.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    signed = {**headers, "x-amz-date": moment}
    if service == "s3":
        signed["x-amz-content-sha256"] = payload
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    canonical = sorted((name.lower(), " ".join(value.split())) for name, value in signed.items())
    names = ";".join(name for name, _ in canonical)
    parameters = "&".join(f"{name}={value}" for name, value in sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in query))
    request = "\n".join([method, encoded(path), parameters, *(f"{name}:{value}" for name, value in canonical), "", names, payload])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(request.encode()).hexdigest()])
    signature = hmac.digest(_key(credentials.secret, scope), to_sign.encode(), "sha256").hex()
    return {**signed, "Authorization": f"AWS4-HMAC-SHA256 Credential={credentials.key_id}/{scope},SignedHeaders={names},Signature={signature}"}


def encoded(path: str) -> str:
    """As the signature has it, and so as the request must have it: libraries of HTTP leave more characters as they are."""
    return quote(path, safe="/-_.~", errors="surrogateescape")


def _key(secret: str, scope: str) -> bytes:
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
