"""Who may talk to the page: from where, with which token, and how much at a time."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Let requests through that come from the page itself, or know the token."""

    app: ASGIApp  # what is guarded
    hosts: frozenset[str]  # what the page may be called, as in "localhost:8017"
    token: str | None = None  # without it nobody is let in
    most: int = 1_000_000  # the largest request, in bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        request, answer = Request(scope), self.app
        refused = self._refused(request) or self._unknown(request)
        if refused is not None:
            status, error = refused
            answer = JSONResponse({"error": error}, status)
        elif self.token and scope["path"] == "/" and "token" in request.query_params:
            # The token moves from the address, which is seen and kept, into a cookie.
            cookie = f"{COOKIE}={quote(self.token, safe='')}; HttpOnly; SameSite=Strict; Path=/"
            answer = RedirectResponse("/", 303, {"set-cookie": cookie})
        return await answer(scope, _counted(receive, self.most), _with_headers(send))

    def _refused(self, request: Request) -> tuple[int, str] | None:
        """Return why a request that another page may have sent is refused."""
        headers = request.headers
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

    def _unknown(self, request: Request) -> tuple[int, str] | None:
        """Return what to say to somebody who does not know the token."""
        if self.token is None:
            return None
        given = [request.headers.get("authorization", "").removeprefix("Bearer ")]
        given.append(request.query_params.get("token", ""))
        given.append(unquote(request.cookies.get(COOKIE, "")))
        known = [secrets.compare_digest(g.encode(), self.token.encode()) for g in given]
        told = "Open the address that the program printed: it has the token."
        return None if any(known) else (401, told)


def _counted(receive: Receive, most: int) -> Receive:
    """Return what receives a request until it is too long, whatever it says of its length."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413, f"A request must be at most {most} bytes.")
        return message

    return counted


def _with_headers(send: Send) -> Send:
    """Return what sends an answer with our headers; it may have its own."""

    async def headed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, text in HEADERS.items():
                headers.setdefault(name, text)
        await send(message)

    return headed
