"""Signatures that the algorithm's authors have published: the examples of S3's reference, and of their test suite."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

import pytest

from sluice.stores import sigv4
from sluice.stores.sigv4 import Credentials, signed_headers

EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
NOTHING = sha256(b"").hexdigest()
HOST = {"Host": "examplebucket.s3.amazonaws.com"}


@pytest.mark.parametrize(("method", "path", "query", "headers", "payload", "expected"), [
    ("GET", "/test.txt", [], {"Range": "bytes=0-9"}, NOTHING, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    ("PUT", "/test$file.text", [], {"Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
     sha256(b"Welcome to Amazon S3.").hexdigest(), "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    ("GET", "/", [("lifecycle", "")], {}, NOTHING, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    ("GET", "/", [("prefix", "J"), ("max-keys", "2")], {}, NOTHING, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
], ids=["a range", "a name that must be encoded", "a parameter without a value", "parameters in order"])  # fmt: skip
def test_the_published_examples_of_s3(method, path, query, headers, payload, expected):
    signed = signed_headers(method, path, query, {**HOST, **headers}, EXAMPLE, "us-east-1", datetime(2013, 5, 24), payload)
    assert signed["Authorization"].endswith(f",Signature={expected}")
    assert signed["x-amz-content-sha256"] == payload and signed["x-amz-date"] == "20130524T000000Z"


def test_the_plainest_case_of_the_published_test_suite():
    credentials = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    when = datetime(2015, 8, 30, 12, 36)
    signed = signed_headers("GET", "/", [], {"Host": "example.amazonaws.com"}, credentials, "us-east-1", when, NOTHING, service="service")
    assert signed["Authorization"].endswith(",Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")


def test_the_token_of_a_session_is_signed_with_the_rest():
    signed = signed_headers("GET", "/", [], HOST, Credentials("id", "secret", "token"), "us-east-1", datetime(2024, 1, 1))
    assert signed["x-amz-security-token"] == "token" and ";x-amz-security-token," in signed["Authorization"]


def test_every_character_but_the_unreserved_is_encoded_and_slashes_stay():
    assert sigv4.encoded("/year=2024/a b+c~*(é).tar") == "/year%3D2024/a%20b%2Bc~%2A%28%C3%A9%29.tar"


def test_no_secret_is_in_the_words_for_credentials():
    words = repr(Credentials("id", "very-secret", "session-token"))
    assert "very-secret" not in words and "session-token" not in words
