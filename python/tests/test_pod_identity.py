"""Credentials of the pod: borrowed in the order of the tools of S3, renewed before they end, and never in a message."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import pytest

from object_server import Store, serving
from sluice.stores import object_reader, pod_identity
from sluice.stores.object_reader import ObjectError, ObjectReader, Range
from sluice.stores.object_urls import credentials
from sluice.stores.pod_identity import Agent, Borrowed, IdentityError, Role

NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)


class Platform:
    """The service of sessions, and the agent of the node: both lend for an hour, the numbered key each time."""

    def __init__(self):
        self.status, self.body, self.asked = 200, None, []

    def serving(self):
        platform = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                platform.asked.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                self._answer("<Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>very-secret</SecretAccessKey>"
                             "<SessionToken>a-session</SessionToken><Expiration>{}</Expiration></Credentials>")

            def do_GET(self):
                platform.asked.append({"path": self.path, "token": self.headers.get("Authorization")})
                self._answer(json.dumps({"AccessKeyId": "{}", "SecretAccessKey": "very-secret", "Token": "a-session", "Expiration": "{}"})
                             .replace("{", "{{").replace("}", "}}").replace("{{}}", "{}"))

            def _answer(self, text):
                ends = (NOW + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
                body = (platform.body if platform.body is not None else text.format(f"KEY{len(platform.asked)}", ends)).encode()
                self.send_response(platform.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        return serving(Handler)


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    (tmp_path / "token").write_text("the-pods-token\n")
    pod_identity._forget()
    yield monkeypatch.setenv
    pod_identity._forget()


@pytest.fixture
def platform():
    platform = Platform()
    with platform.serving() as platform.address:
        yield platform


def of_role(platform, tmp_path):
    return Role(platform.address, str(tmp_path / "token"), "arn:aws:iam::1:role/reader", "sluice")


def set_role(environment, platform, tmp_path):
    for name, value in {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:aws:iam::1:role/reader",
                        "AWS_ENDPOINT_URL_STS": platform.address}.items():
        environment(name, value)


def test_the_token_of_the_pod_buys_a_session_of_the_role(platform, tmp_path):
    lent = Borrowed(lambda: of_role(platform, tmp_path), lambda: NOW).credentials()
    assert (lent.key_id, lent.secret, lent.token) == ("KEY1", "very-secret", "a-session")
    assert platform.asked == [{"Action": ["AssumeRoleWithWebIdentity"], "Version": ["2011-06-15"], "RoleArn": ["arn:aws:iam::1:role/reader"],
                               "RoleSessionName": ["sluice"], "WebIdentityToken": ["the-pods-token"]}]


@pytest.mark.parametrize("token_file", ["token", ""])
def test_the_agent_of_the_node_is_shown_the_token_of_the_pod(platform, tmp_path, token_file):
    agent = Agent(f"{platform.address}/v1/credentials?a=b", str(tmp_path / token_file) if token_file else "", "the-pods-token")
    assert Borrowed(lambda: agent, lambda: NOW).credentials().key_id == "KEY1"
    assert platform.asked == [{"path": "/v1/credentials?a=b", "token": "the-pods-token"}]


def test_credentials_are_renewed_at_four_fifths_of_their_life_and_kept_while_that_fails(platform, tmp_path):
    now = [NOW]
    borrowed = Borrowed(lambda: of_role(platform, tmp_path), lambda: now[0])

    def after(minutes):
        now[0] = NOW + timedelta(minutes=minutes)
        return borrowed.credentials().key_id

    assert [after(minutes) for minutes in (0, 47)] == ["KEY1", "KEY1"]
    platform.status = 500
    assert [after(minutes) for minutes in (48, 48.4, 49)] == ["KEY1", "KEY1", "KEY1"] and len(platform.asked) == 3  # a pause between attempts
    with pytest.raises(IdentityError, match="500"):
        after(60)
    platform.status = 200
    assert after(50) == "KEY5"


def test_threads_that_come_together_borrow_once(platform, tmp_path):
    borrowed = Borrowed(lambda: of_role(platform, tmp_path), lambda: NOW)
    with ThreadPoolExecutor(8) as threads:
        assert {lent.key_id for lent in threads.map(lambda _: borrowed.credentials(), range(8))} == {"KEY1"}


def test_other_credentials_are_borrowed_for_those_that_the_store_refuses_and_for_another_role(platform, tmp_path):
    role = of_role(platform, tmp_path)
    borrowed = Borrowed(lambda: role, lambda: NOW)
    first = borrowed.credentials()
    assert [borrowed.credentials(first).key_id, borrowed.credentials(first).key_id] == ["KEY2", "KEY2"]
    role = Role(role.url, role.token_file, "another", "sluice")
    assert borrowed.credentials().key_id == "KEY3"


def test_the_order_is_that_of_the_tools_of_s3(platform, tmp_path, environment):
    assert credentials() is None
    environment("AWS_CONTAINER_CREDENTIALS_FULL_URI", platform.address)
    assert credentials().key_id == "KEY1"
    (tmp_path / "none").write_text("[default]\naws_access_key_id = OF-FILE\naws_secret_access_key = s\n")
    assert credentials().key_id == "OF-FILE"
    set_role(environment, platform, tmp_path)
    assert credentials().key_id == "KEY2"
    environment("AWS_ACCESS_KEY_ID", "OF-ENVIRONMENT")
    environment("AWS_SECRET_ACCESS_KEY", "s")
    assert credentials().key_id == "OF-ENVIRONMENT"


@pytest.mark.parametrize(("variables", "status", "body", "told"), [
    ({}, 403, "<Error><Code>AccessDenied</Code>very-secret</Error>", r"refuses role arn:aws:iam::1:role/reader: 403 Forbidden \(AccessDenied\)"),
    ({}, 200, "<html>very-secret</html>", "without AccessKeyId, SecretAccessKey or Expiration"),
    ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/none"}, 200, None, "AWS_WEB_IDENTITY_TOKEN_FILE names /none, which cannot be read: FileNotFoundError"),
    ({"AWS_ENDPOINT_URL_STS": "sts"}, 200, None, "is wanted"),
    ({"AWS_ENDPOINT_URL_STS": "http://me:very-secret@host"}, 200, None, "host cannot be asked"),
    ({"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:1"}, 200, None, "127.0.0.1:1 cannot be asked for role .*: ConnectionRefusedError"),
    ({"AWS_ROLE_ARN": "", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://elsewhere/x"}, 200, None, "elsewhere without TLS"),
], ids=["refused", "another page", "no token", "no address", "a password", "not there", "an agent elsewhere"])  # fmt: skip
def test_what_lends_nothing_is_named_and_secrets_are_not(platform, tmp_path, environment, variables, status, body, told):
    set_role(environment, platform, tmp_path)
    for name, value in variables.items():
        environment(name, value)
    platform.status, platform.body = status, body
    with pytest.raises(IdentityError, match=told) as refused:
        credentials()
    assert "very-secret" not in str(refused.value) and "the-pods-token" not in str(refused.value)


def expiring(store, last_good):
    """The store takes keys from number `last_good` on."""
    answer = store.answer

    def checking(to, fault):
        number = int(to.headers["Authorization"].partition("Credential=KEY")[2].partition("/")[0])
        if number >= last_good:
            return answer(to, fault)
        body = b"<Error><Code>ExpiredToken</Code></Error>"
        to.send_response(400)
        to.send_header("Content-Length", str(len(body)))
        to.end_headers()
        to.wfile.write(body)

    store.answer = checking


def test_an_object_is_read_when_its_store_calls_the_session_expired(platform, tmp_path, environment, monkeypatch):
    set_role(environment, platform, tmp_path)
    monkeypatch.setattr(pod_identity, "_of_role", Borrowed(pod_identity._role, lambda: NOW))
    monkeypatch.setattr(object_reader, "_reader", ObjectReader(sleep=lambda seconds: None))
    store = Store({"/bucket/o": b"0123456789"})
    with store.serving() as address:
        environment("AWS_ENDPOINT_URL", address)
        reader = object_reader.reader()
        state = reader.state("s3://bucket/o")
        expiring(store, last_good=2)
        assert reader.read(Range("s3://bucket/o", state, 2, 3)) == b"234" and len(platform.asked) == 2
        environment("AWS_ACCESS_KEY_ID", "KEY1")
        environment("AWS_SECRET_ACCESS_KEY", "very-secret")
        with pytest.raises(ObjectError, match="have expired: renew AWS_SESSION_TOKEN"):
            reader.read(Range("s3://bucket/o", state, 2, 3))
        assert len(store.requests) == 5  # once more, as the file that a tool renews is read again


def test_a_service_that_is_away_for_a_moment_ends_nothing_and_one_that_refuses_does_at_once(platform, tmp_path, environment, monkeypatch):
    set_role(environment, platform, tmp_path)
    monkeypatch.setattr(pod_identity, "_of_role", Borrowed(pod_identity._role, lambda: NOW))
    pauses = []

    def back_again(seconds):
        pauses.append(seconds)
        platform.status = 200

    platform.status = 503
    store = Store({"/bucket/o": b"0123456789"})
    with store.serving() as address:
        environment("AWS_ENDPOINT_URL", address)
        assert ObjectReader(sleep=back_again).state("s3://bucket/o").nbytes == 10 and len(pauses) == 1
        environment("AWS_ROLE_ARN", "another")
        platform.status = 403
        with pytest.raises(ObjectError, match="s3://bucket/o: .*refuses role another: 403"):
            ObjectReader(sleep=back_again).state("s3://bucket/o")
        assert len(pauses) == 1
