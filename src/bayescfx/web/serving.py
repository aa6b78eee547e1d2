"""`serve`: the page on this machine, or with a token on others."""

from __future__ import annotations

import contextlib
import secrets
import socket
import webbrowser
from argparse import Namespace
from collections.abc import Iterable
from urllib.parse import quote

from bayescfx.errors import SettingsError, optional
from bayescfx.evaluations.data import Evaluations
from bayescfx.requests.console import Console
from bayescfx.requests.settings import gather_settings
from bayescfx.requests.subject import identify_model, read_subject

HERE = ("127.0.0.1", "localhost", "::1")


def serve(options: Namespace, console: Console) -> int:
    """Show the page until somebody presses Ctrl-C."""
    for library in ("uvicorn", "fastapi", "plotly"):
        optional(library, "the page needs", "web")
    import uvicorn

    from bayescfx.web.app import make_app
    from bayescfx.web.guard import Guard
    from bayescfx.web.questions import Desk
    from bayescfx.web.site import Site

    settings = gather_settings(options)
    settings.require("model", "data")
    if settings.evaluations is not None:  # can it be written?
        Evaluations.open(settings.evaluations).close()
    host = options.host or HERE[0]
    with _listening(host, 8017 if options.port is None else options.port) as listening:
        port = listening.getsockname()[1]
        token = options.token or (None if host in HERE else secrets.token_urlsafe(16))
        subject = read_subject(settings, console)
        model = identify_model(subject, settings, console)
        rows = (5000 if model.local else 100) if options.rows is None else options.rows
        console.note(f"the model scores {min(rows, len(subject.data))} rows of the data.")
        desk = Desk(Site.of(subject, settings, model, rows))
        guard = Guard(make_app(desk), names_of(host, port, options.name or ()), token)
        shown = socket.gethostname() if host == "0.0.0.0" else _bracketed(host)
        asked = "" if token is None else f"?token={quote(token, safe='')}"
        address = f"http://{shown}:{port}/{asked}"
        console.write(address, {"address": address})
        console.note("Ctrl-C ends it.")
        if options.open:
            webbrowser.open(address)
        config = uvicorn.Config(guard, log_level="error", timeout_graceful_shutdown=1, ws="none")
        with contextlib.closing(desk), contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    return 0


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(128)  # who is quick waits until the model is loaded
    except (OSError, OverflowError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        told = f"--port must be a free one of {host}; {port} is not: {reason}."
        raise SettingsError(f"{told} Choose another, or 0 for any.") from error
    return found


def names_of(host: str, port: int, more: Iterable[str]) -> frozenset[str]:
    """Return what the page may be called in requests; `more` also without the port."""
    names = {*HERE, host, *more}
    if host in ("0.0.0.0", "::"):
        names |= {socket.gethostname(), socket.getfqdn()}
        with contextlib.suppress(OSError):
            found = socket.getaddrinfo(socket.gethostname(), port)
            names |= {str(address[4][0]) for address in found}
    shown = set(map(_bracketed, names))
    bare = shown if port == 80 else more  # as a proxy before the page is called
    return frozenset([*(f"{name}:{port}" for name in shown), *bare])


def _bracketed(host: str) -> str:
    """Return a host as addresses have it."""
    return f"[{host}]" if ":" in host else host
