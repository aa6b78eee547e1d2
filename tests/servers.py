"""A small real HTTP server that speaks MLflow's scoring protocol and the Open Inference Protocol.

It runs on loopback in a thread, records requests, and can simulate faults.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pandas as pd

Predict = Callable[[Any], Any]


@dataclass
class Scoring:
    """The behaviour of the server.

    Parameters
    ----------
    predict : callable
        Rows to outputs.
    inputs : list of dict
        What the v2 metadata says about inputs.
    statuses : list of int
        Statuses of the next answers, taken from the front; 200 after that.
    headers : dict
        Sent with every answer that is not 200.
    fails_after : int, optional
        So many rows are scored; then the server closes connections without an answer.
    body : object, optional
        Answered instead of outputs.
    delay : float
        Seconds before an answer.
    date : str, optional
        The server's clock.
    """

    predict: Predict
    inputs: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    fails_after: int | None = None
    body: Any = None
    delay: float = 0.0
    date: str | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    seen_headers: list[dict[str, str]] = field(default_factory=list)
    rows: int = 0
    url: str = ""

    @property
    def asked(self) -> int:
        """The number of scoring requests."""
        return len(self.requests)

    def answer(self, body: dict[str, Any], *, mlflow: bool) -> Any:
        """Return the response to a request; None after the server has failed."""
        if self.body is not None:
            return self.body
        rows = mlflow_rows(body) if mlflow else v2_rows(body)
        if self.fails_after is not None and self.rows + len(rows) > self.fails_after:
            return None
        self.rows += len(rows)
        outputs = np.asarray(self.predict(rows))
        return {"predictions": outputs.tolist()} if mlflow else v2_answer(outputs)


class Server(ThreadingHTTPServer):
    """A server that ignores errors of disconnected clients."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def serving(scoring: Scoring) -> Iterator[Scoring]:
    """Run a server for the duration of the context."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def date_time_string(self, timestamp: float | None = None) -> str:
            return scoring.date or super().date_time_string(timestamp)

        def do_GET(self) -> None:
            if scoring.inputs and "/v2/models/" in self.path:
                self._send(200, {"name": "m", "inputs": scoring.inputs, "outputs": []})
            else:
                self._send(404, {"error": "not found"})

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            scoring.requests.append(body)
            scoring.seen_headers.append(dict(self.headers.items()))
            time.sleep(scoring.delay)
            status = scoring.statuses.pop(0) if scoring.statuses else 200
            if status != 200:
                self._send(status, {"message": f"status {status}"}, scoring.headers)
                return
            answer = scoring.answer(body, mlflow=self.path == "/invocations")
            if answer is None:
                self.close_connection = True
            else:
                self._send(200, answer)

        def _send(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    scoring.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield scoring
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def speaking(head: Iterable[bytes], body: Iterable[bytes], pause: float = 0.0) -> Iterator[str]:
    """Run a server that sends one fixed response in pieces with pauses; yield its address."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            with suppress(OSError):  # the client has disconnected
                for piece in (*head, *body):
                    self.request.sendall(piece)
                    time.sleep(pause)

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(0.01), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def mlflow_rows(body: dict[str, Any]) -> Any:
    """Return the rows of an MLflow request."""
    if "inputs" in body:
        return np.array(body["inputs"], dtype=float)
    split = body["dataframe_split"]
    return pd.DataFrame(split["data"], columns=split["columns"])


def v2_rows(body: dict[str, Any]) -> Any:
    """Return the rows of a v2 request: a matrix, or a frame of columns."""
    inputs = body["inputs"]
    if len(inputs) == 1 and len(inputs[0]["shape"]) == 2 and inputs[0]["shape"][1] > 1:
        return np.array(inputs[0]["data"], dtype=float).reshape(inputs[0]["shape"])
    return pd.DataFrame({tensor["name"]: tensor["data"] for tensor in inputs})


def v2_answer(outputs: Any) -> dict[str, Any]:
    """Return outputs as a v2 tensor, flat."""
    tensor = {
        "name": "predict",
        "shape": list(outputs.shape),
        "datatype": "FP64",
        "data": outputs.ravel().tolist(),
    }
    return {"model_name": "m", "outputs": [tensor]}
