"""Requests that the guard lets through or refuses."""

from __future__ import annotations

import httpx
import pytest

from bayescfx.web.questions import QuestionQueue
from bayescfx.web.serving import host_names
from tests.web.conftest import served


def test_every_answer_has_a_strict_policy(page: httpx.Client) -> None:
    for path in ("/", "/api/site", "/api/nothing", "/static/app.js"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_requests_of_other_pages_are_refused(page: httpx.Client, headers: dict[str, str]) -> None:
    assert page.get("/api/site", headers=headers).status_code == 403
    reply = page.post("/api/predict", json={"cells": {}}, headers=headers)
    assert reply.status_code == 403


def test_the_page_itself_is_not_refused(page: httpx.Client) -> None:
    own = {"origin": str(page.base_url).rstrip("/"), "sec-fetch-site": "same-origin"}
    assert page.get("/api/site", headers=own).status_code == 200


def test_requests_without_the_token_are_refused(queue: QuestionQueue) -> None:
    with served(queue, token="s3cret") as page:
        for given in ({}, {"authorization": "Bearer no"}, {"cookie": "bayescfx=no"}):
            reply = page.get("/api/site", headers=given)
            assert reply.status_code == 401
            assert "token" in reply.json()["error"]
        assert page.get("/api/site", headers={"authorization": "Bearer s3cret"}).status_code == 200


def test_the_token_moves_from_the_address_into_a_cookie(queue: QuestionQueue) -> None:
    with served(queue, token="s3+c;ret") as page:
        reply = page.get("/?token=s3%2Bc%3Bret")
        assert (reply.status_code, reply.headers["location"]) == (303, "/")
        assert "HttpOnly; SameSite=Strict" in reply.headers["set-cookie"]
        assert page.get("/api/site").status_code == 200


def test_large_requests_are_refused_whatever_length_they_declare(queue: QuestionQueue) -> None:
    body = b'{"cells": {"a": "' + b"x" * 2000 + b'"}}'
    parts = (body[i : i + 100] for i in range(0, len(body), 100))
    with served(queue, max_bytes=1000) as page:
        assert page.post("/api/predict", content=body).status_code == 413
        reply = page.post("/api/predict", content=parts)  # sent in chunks, without a length
    assert reply.status_code == 413
    assert reply.json() == {"error": "A request must be at most 1000 bytes."}


def test_proxies_may_have_their_own_host_name() -> None:
    names = host_names("0.0.0.0", 8017, ["reports.example.org"])
    assert {"reports.example.org", "reports.example.org:8017", "127.0.0.1:8017"} <= names
    assert "127.0.0.1" not in names
