"""`serve`: the page on this machine or, with a token, for others."""

from __future__ import annotations

import contextlib
import secrets
import socket
import webbrowser
from argparse import Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import quote

from bayescfx.errors import SettingsError, optional
from bayescfx.requests.console import Console
from bayescfx.requests.settings import gather_settings
from bayescfx.requests.subject import identify_model, read_subject

if TYPE_CHECKING:
    from bayescfx.web.site import Site

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
ALL_INTERFACES = ("0.0.0.0", "::")
DEFAULT_PORT = 8017
N_LISTED = 5_000  # rows that a cheap model scores for the list; set by judgement, 2026-11-18
N_LISTED_EXPENSIVE = 100  # the same for an expensive model
BACKLOG = 128  # connections that wait until the model is loaded


def serve(options: Namespace, console: Console) -> int:
    """Serve the page until Ctrl-C.

    Parameters
    ----------
    options : Namespace
        The parsed command line.
    console : Console
        Gets the address of the page, and notes.

    Returns
    -------
    int
        The exit code.
    """
    for library in ("uvicorn", "fastapi", "plotly"):
        optional(library, "the page needs", "web")
    import uvicorn

    from bayescfx.web.app import make_app
    from bayescfx.web.guard import Guard
    from bayescfx.web.questions import QuestionQueue

    host = options.host or LOCAL_HOSTS[0]
    token = options.token or _default_token(host)
    with _listen(host, DEFAULT_PORT if options.port is None else options.port) as listening:
        port = listening.getsockname()[1]  # that of the system, if it was 0
        queue = QuestionQueue(read_site(options, console))
        guard = Guard(make_app(queue), host_names(host, port, options.name or ()), token)
        address = page_address(host, port, token)
        console.write(address, {"address": address})
        console.note("Ctrl-C ends it.")
        if options.open:
            webbrowser.open(address)
        config = uvicorn.Config(guard, log_level="error", timeout_graceful_shutdown=1, ws="none")
        with contextlib.closing(queue), contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    return 0


def _default_token(host: str) -> str | None:
    """Return a random token for a page that other machines can open; None for a local one."""
    return None if host in LOCAL_HOSTS else secrets.token_urlsafe(16)


def read_site(options: Namespace, console: Console) -> Site:
    """Return the site of a command line; the model scores the rows that the page lists."""
    import bayescfx as cfx
    from bayescfx.web.site import Site

    settings = gather_settings(options)
    settings.require("model", "data")
    if settings.evaluations is not None:
        cfx.Evaluations.open(settings.evaluations).close()  # raises if it cannot be written
    subject = read_subject(settings, console)
    model = identify_model(subject, settings, console)
    n_rows = options.rows
    if n_rows is None:
        n_rows = N_LISTED if model.local else N_LISTED_EXPENSIVE
    console.note(f"the model scores {min(n_rows, len(subject.data))} rows of the data.")
    return Site.of(subject, settings, model, n_rows)


def page_address(host: str, port: int, token: str | None) -> str:
    """Return the address of the page, with the token if there is one."""
    shown = socket.gethostname() if host == "0.0.0.0" else _bracketed(host)
    query = "" if token is None else f"?token={quote(token, safe='')}"
    return f"http://{shown}:{port}/{query}"


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a port; 0 is any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"--port must be a free one of {host}; {port} is not: {reason}. "
            "Choose another, or 0 for any."
        ) from error
    return listening


def host_names(host: str, port: int, proxies: Iterable[str]) -> frozenset[str]:
    """Return the hosts that requests may name; those of proxies also without the port.

    A request that names another host may come from a page elsewhere whose name was pointed at this
    machine (DNS rebinding).
    """
    names = {*LOCAL_HOSTS, host, *proxies}
    if host in ALL_INTERFACES:
        names |= {socket.gethostname(), socket.getfqdn()}
        with contextlib.suppress(OSError):
            found = socket.getaddrinfo(socket.gethostname(), port)
            names |= {str(address[4][0]) for address in found}
    shown = {_bracketed(name) for name in names}
    without_port = shown if port == 80 else proxies
    return frozenset([*(f"{name}:{port}" for name in shown), *without_port])


def _bracketed(host: str) -> str:
    """Return a host as addresses have it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host
