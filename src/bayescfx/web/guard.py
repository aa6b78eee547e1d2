"""The guard: which requests are let through, by host, origin, token and size."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from urllib.parse import quote, unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "bayescfx"

#: The headers of every response. The hash is that of an empty text: Plotly fills an empty style
#: sheet by script.
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
    """An application that lets requests of the page itself through to another one.

    Parameters
    ----------
    app : ASGI application
        The guarded application.
    hosts : frozenset of str
        The hosts that requests may name, such as ``"localhost:8017"``.
    token : str, optional
        The token that every request must have.
    max_bytes : int
        The size of the largest request.
    """

    app: ASGIApp
    hosts: frozenset[str]
    token: str | None = None
    max_bytes: int = 1_000_000

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        answer = self._answer(Request(scope))
        return await answer(scope, _limited(receive, self.max_bytes), _with_headers(send))

    def _answer(self, request: Request) -> ASGIApp:
        """Return the application that answers a request."""
        refusal = self._refusal(request) or self._token_refusal(request)
        if refusal is not None:
            status, error = refusal
            return JSONResponse({"error": error}, status)
        has_token = request.url.path == "/" and "token" in request.query_params
        if self.token and has_token:
            # The token moves from the address, which is visible and stored, into a cookie.
            cookie = f"{COOKIE}={quote(self.token, safe='')}; HttpOnly; SameSite=Strict; Path=/"
            return RedirectResponse("/", 303, {"set-cookie": cookie})
        return self.app

    def _refusal(self, request: Request) -> tuple[int, str] | None:
        """Return why a request of another page, or a large one, is refused."""
        headers = request.headers
        if headers.get("host") not in self.hosts:
            return 403, "This page has another host name."
        if self._is_foreign(headers):
            return 403, "Requests of other pages are refused."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.max_bytes:
            return 413, _size_error(self.max_bytes)
        return None

    def _is_foreign(self, headers: Headers) -> bool:
        """Return whether a request comes from another page."""
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return True
        origin = headers.get("origin")
        return origin is not None and origin.partition("://")[2] not in self.hosts

    def _token_refusal(self, request: Request) -> tuple[int, str] | None:
        """Return why a request without the token is refused."""
        if self.token is None:
            return None
        given = (
            request.headers.get("authorization", "").removeprefix("Bearer "),
            request.query_params.get("token", ""),
            unquote(request.cookies.get(COOKIE, "")),
        )
        expected = self.token.encode()
        if any(secrets.compare_digest(each.encode(), expected) for each in given):
            return None
        return 401, "Open the address that the program printed: it has the token."


def _size_error(max_bytes: int) -> str:
    return f"A request must be at most {max_bytes} bytes."


def _limited(receive: Receive, max_bytes: int) -> Receive:
    """Return a receiver that raises once a request is too long, whatever length it declares."""
    n_bytes = 0

    async def receive_limited() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > max_bytes:
            raise HTTPException(413, _size_error(max_bytes))
        return message

    return receive_limited


def _with_headers(send: Send) -> Send:
    """Return a sender that adds our headers to a response, unless it has its own."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, text in HEADERS.items():
                headers.setdefault(name, text)
        await send(message)

    return send_with_headers
