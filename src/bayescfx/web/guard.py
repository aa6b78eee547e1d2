"""Who may talk to the page: from where, with which token, and how much at a time."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs, quote, unquote

from fastapi import HTTPException

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "bayescfx"

#: Of every answer. The hash is that of nothing: Plotly fills an empty style by script.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' "
        "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; img-src 'self' data: blob:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Guard:
    """Let requests through that come from the page itself, or know the token.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    hosts : frozenset of str
        What the page may be called, as in ``"localhost:8017"``.
    token : str, optional
        Without it nobody is let in.
    most : int
        The largest request, in bytes.
    """

    app: App
    hosts: frozenset[str]
    token: str | None = None
    most: int = 1_000_000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        refused = self._refused(headers) or self._unknown(scope, headers)
        if refused is not None:
            return await _say(send, *refused)
        if (
            self.token is not None
            and scope["path"] == "/"
            and "token=" in scope["query_string"].decode("latin-1")
        ):
            # The token moves from the address, which is seen and kept, into a cookie.
            cookie = f"{COOKIE}={quote(self.token, safe='')}; HttpOnly; SameSite=Strict; Path=/"
            return await _say(send, 303, "", {"location": "/", "set-cookie": cookie})
        await self.app(scope, _counted(receive, self.most), _with_headers(send))
        return None

    def _refused(self, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return why a request that another page may have sent is refused."""
        if headers.get("host") not in self.hosts:
            return 403, "This page is not known under that name."
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2] not in self.hosts
        if foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "Requests of other pages are refused."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.most:
            return 413, f"A request must be at most {self.most} bytes."
        return None

    def _unknown(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return what to say to somebody who does not know the token."""
        if self.token is None:
            return None
        given = [headers.get("authorization", "").removeprefix("Bearer ")]
        given += parse_qs(scope["query_string"].decode("latin-1")).get("token", [])[:1]
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
            given += [] if kept is None else [unquote(kept.value)]
        except CookieError:
            pass
        known = [secrets.compare_digest(g.encode(), self.token.encode()) for g in given]
        told = "Open the address that the program printed: it has the token."
        return None if any(known) else (401, told)


def _counted(receive: Receive, most: int) -> Receive:
    """Return what receives a request until it is too long, whatever it says of its length."""
    seen = 0

    async def counted() -> MutableMapping[str, Any]:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, f"A request must be at most {most} bytes.")
        return message

    return counted


def _with_headers(send: Send) -> Send:
    """Return what sends an answer with our headers; it may have its own."""

    async def headed(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message["headers"]}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in own]
            message["headers"] = [*message["headers"], *more]
        await send(message)

    return headed


async def _say(send: Send, status: int, error: str, more: dict[str, str] | None = None) -> None:
    """Send an answer of ours."""
    body = json.dumps({"error": error}).encode()
    headers = {"content-type": "application/json", **HEADERS, **(more or {})}
    plain = [(name.encode(), text.encode()) for name, text in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": plain})
    await send({"type": "http.response.body", "body": body})
