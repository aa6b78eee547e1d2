"""Models behind HTTP: MLflow's scoring protocol and the Open Inference Protocol v2."""

from __future__ import annotations

import itertools
import json
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayescfx.checks import check, check_whole, is_a, is_number
from bayescfx.deadline import Deadline, in_time, time_limit
from bayescfx.errors import ModelError, OutOfTime, one_line, optional
from bayescfx.models.protocols import Mlflow, OpenInference

_BUSY = (408, 425, 429, 502, 503, 504)  # status codes of a server that may answer later
_MOST_BYTES = 64_000_000  # of an answer
_LONGEST_PAUSE = 8.0  # seconds between attempts, by our own choice
_LONGEST_RETRY_AFTER = 60.0  # seconds between attempts, by the server's choice
_SHORT_TEXT = 300  # letters of a server's text in a message


class EndpointError(ModelError):
    """A model behind HTTP does not answer, or answers outside its protocol."""


class _LateError(EndpointError, OutOfTime):
    """The model did not answer before the deadline of the search."""


@dataclass(frozen=True)
class Patience:
    """Time-outs and retries for a model behind HTTP.

    The `timeout` of `explain` ends all waiting, too.

    Parameters
    ----------
    timeout : float, default 30
        Seconds to wait for one complete answer, of at most 64 MB.
    retries : int, default 4
        Number of further attempts if the server is busy (408, 425, 429, 502, 503, 504) or does not
        answer.
    pause : float, default 0.25
        Seconds before the second attempt; doubled each time, 8 at most. A ``Retry-After`` of the
        server counts, up to a minute.
    """

    timeout: float = 30.0
    retries: int = 4
    pause: float = 0.25

    def __post_init__(self) -> None:
        good = is_number(self.timeout, 0, threading.TIMEOUT_MAX) and self.timeout > 0
        check(good, "timeout", "seconds > 0", self.timeout)
        check_whole("retries", self.retries, 0)
        check(is_number(self.pause, 0), "pause", "seconds >= 0", self.pause)

    def pause_after(self, attempt: int) -> float:
        """Return the seconds to wait after an attempt, counted from 1."""
        return min(_LONGEST_PAUSE, self.pause * 2.0 ** (attempt - 1))


class Reply(NamedTuple):
    """The result of one attempt: an answer of the server, or the fault that prevented it.

    Parameters
    ----------
    code : int
        The status code; 0 without an answer.
    content : bytes
        The body of the answer.
    retry_after : float
        Seconds after which the server wants the next attempt.
    fault : str
        Why there is no answer; empty if there is one.
    """

    code: int = 0
    content: bytes = b""
    retry_after: float = 0.0
    fault: str = ""

    @property
    def is_busy(self) -> bool:
        """Whether another attempt may succeed."""
        return bool(self.fault) or self.code in _BUSY

    @property
    def reason(self) -> str:
        """Why there is no answer."""
        return self.fault or f"it is busy ({self.code})"

    def decoded(self) -> Any:
        """Return the content as JSON, or as text."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return self.content.decode(errors="replace")


@dataclass(eq=False)
class Endpoint:
    """A model behind HTTP as a function of rows.

    Sends rows in batches, retries when the server is busy or cannot be reached, and raises an
    `EndpointError` if the answer is not one number per row.

    Parameters
    ----------
    url : str
        ``http://host:5000/invocations`` for MLflow (the path may be left out), or
        ``http://host:8080/v2/models/NAME`` for the Open Inference Protocol.
    output : str, optional
        The output to take, if the model has several: ``"NAME"``, or ``"NAME:COLUMN"`` for a
        column of it, such as the probability of one class.
    batch : int, default 1000
        The largest number of rows per request.
    headers : dict, optional
        Headers of each request, such as ``{"Authorization": "Bearer …"}``.
    patience : Patience, optional
        Time-outs and retries.
    sleep : callable, optional
        Waits for some seconds.

    Examples
    --------
    >>> Endpoint("http://localhost:5000").protocol.url
    'http://localhost:5000/invocations'
    """

    url: str
    output: str | None = None
    batch: int = 1000
    headers: Mapping[str, str] = field(default_factory=dict)
    patience: Patience = Patience()
    sleep: Callable[[float], object] = time.sleep

    protocol: Mlflow | OpenInference = field(init=False)
    _client: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(_is_url(self.url), "url", "like http://host:port/invocations", self.url)
        check(isinstance(self.output, str | None), "output", "the name of an output", self.output)
        check_whole("batch", self.batch, 1)
        check(_are_headers(self.headers), "headers", "a dict of ASCII texts", self.headers)
        check(isinstance(self.patience, Patience), "patience", "a Patience", self.patience)
        self._connect()
        is_open_inference = "/v2/models/" in urlsplit(self.url).path
        protocol = OpenInference if is_open_inference else Mlflow
        self.protocol = protocol(self.url, self.output)

    def __call__(self, rows: pd.DataFrame | NDArray[Any]) -> NDArray[np.float64]:
        """Return one number per row, shape ``(n,)``, or raise an `EndpointError`."""
        protocol = self._described_protocol()
        batches = [rows[i : i + self.batch] for i in range(0, len(rows), self.batch)]
        return np.concatenate([self._score(protocol, batch) for batch in batches])

    def columns(self) -> tuple[str, ...] | None:
        """Return the columns that the model takes, if the server describes them."""
        inputs = self._described_protocol().inputs
        if len(inputs) <= 1:
            return None
        return tuple(str(tensor["name"]) for tensor in inputs)

    def __reduce__(self) -> tuple[Any, ...]:  # another process opens its own connection
        arguments = (
            self.url,
            self.output,
            self.batch,
            dict(self.headers),
            self.patience,
            self.sleep,
        )
        return type(self), arguments

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _connect(self) -> None:
        """Open a client, which is closed with this object."""
        httpx = optional("httpx", "a model behind HTTP needs", "models")
        self._client = httpx.Client(timeout=self.patience.timeout, headers=dict(self.headers))
        weakref.finalize(self, self._client.close)

    def _described_protocol(self) -> Mlflow | OpenInference:
        """Return the protocol with the server's description of the inputs, requested once."""
        protocol = self.protocol
        if protocol.description_url is not None:
            code, content = self._send("GET", protocol.description_url, None)
            if code == 200:
                protocol.inputs = _described_inputs(content)
            protocol.description_url = None
        return protocol

    def _score(self, protocol: Mlflow | OpenInference, rows: Any) -> NDArray[np.float64]:
        """Return the outputs of one batch."""
        code, content = self._send("POST", protocol.url, protocol.request(rows))
        if code != 200:
            what = "refused the rows" if code < 500 else "failed"
            raise EndpointError(
                f"the model at {protocol.url} {what} ({code}): {_short(content)}. {_advice(code)}."
            )
        try:
            return protocol.outputs(content, len(rows))
        except ModelError as error:
            raise EndpointError(f"the model at {protocol.url} {error}") from error
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise EndpointError(
                f"the model at {protocol.url} must answer with outputs as its protocol says; got "
                f"{_short(content)}. Check the address."
            ) from error

    def _send(self, verb: str, url: str, body: Any) -> tuple[int, Any]:
        """Return status and content, JSON or text; retry while the server is busy or away."""
        deadline = time_limit.get()
        for attempt in itertools.count(1):
            reply = self._attempt(verb, url, body, deadline)
            if not reply.is_busy:
                break
            if deadline.passed:
                raise _late(url, reply, attempt)
            if attempt > self.patience.retries:
                break
            self.sleep(min(self._pause(attempt, reply), deadline.left))
        if reply.fault:
            raise EndpointError(
                f"the model at {url} does not answer: {reply.fault} ({attempt} attempts). Start "
                "the server, or correct the address."
            )
        return reply.code, reply.decoded()

    def _pause(self, attempt: int, reply: Reply) -> float:
        """Return the seconds before the next attempt, which the server may prolong."""
        pause = max(self.patience.pause_after(attempt), reply.retry_after)
        return min(pause, _LONGEST_RETRY_AFTER)

    def _attempt(self, verb: str, url: str, body: Any, deadline: Deadline) -> Reply:
        """Return the reply to one request, or the fault that prevented it."""
        import httpx  # installed, since the client exists

        seconds = min(self.patience.timeout, deadline.left)
        try:
            return self._read(verb, url, body, seconds)
        except (httpx.TimeoutException, TimeoutError):
            return Reply(fault=f"no answer within {seconds:.3g} s")
        except (httpx.RequestError, RuntimeError) as error:  # another thread closed the client
            return Reply(fault=str(error) or type(error).__name__)
        except UnicodeError as error:
            raise EndpointError(
                f"the model at {url} must get text that UTF-8 can hold; got {error}. Correct "
                "the rows."
            ) from error

    def _read(self, verb: str, url: str, body: Any, seconds: float) -> Reply:
        """Return one complete answer, or raise a `TimeoutError`.

        A time-out of the client limits the wait for each part of an answer, not for the whole, so
        the answer is read in a thread that has so many seconds.
        """
        client = self._client

        def read() -> Reply:
            with client.stream(verb, url, json=body) as answer:
                content = bytearray()
                for part in answer.iter_bytes():
                    content += part
                    if len(content) > _MOST_BYTES:
                        raise EndpointError(
                            f"the model at {url} must answer with at most 64 MB; got more. "
                            "Send fewer rows at once with `batch`, or correct the address.",
                            parameter="batch",
                        )
                return Reply(answer.status_code, bytes(content), _retry_after(answer.headers))

        try:
            return in_time(read, seconds)
        except TimeoutError:
            client.close()  # which ends the thread, too
            self._connect()
            raise


def _is_url(url: Any) -> bool:
    """Return whether a text is a web address with a host."""
    try:
        parts = urlsplit(url if is_a(url, str) else "")
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _are_headers(headers: Any) -> bool:
    """Return whether headers are a mapping of ASCII texts."""
    if not is_a(headers, Mapping):
        return False
    texts = [*headers.keys(), *headers.values()]
    return all(is_a(text, str) and text.isascii() for text in texts)


def _described_inputs(content: Any) -> list[dict[str, Any]]:
    """Return the inputs that a server describes with name and type; none if it does not."""
    inputs = content.get("inputs") if isinstance(content, dict) else None
    if not isinstance(inputs, list) or not all(map(_is_described, inputs)):
        return []
    return inputs


def _is_described(tensor: Any) -> bool:
    """Return whether a description of an input has its name and its type."""
    return isinstance(tensor, dict) and {"name", "datatype"} <= tensor.keys()


def _advice(code: int) -> str:
    """Return what to do about a status code."""
    if code >= 500:
        return "Look at the server's log"
    is_address = code < 400 or code in (401, 403, 404, 405, 407)
    return "Correct the address or the headers" if is_address else "Send the columns that it takes"


def _retry_after(headers: Mapping[str, str]) -> float:
    """Return the seconds of a ``Retry-After`` header; a date counts by the server's clock.

    >>> day = "Wed, 21 Oct 2015"
    >>> _retry_after({"Retry-After": f"{day} 07:28:09 GMT", "Date": f"{day} 07:28:00 GMT"})
    9.0
    """
    value = headers.get("Retry-After", "")
    if value.isdecimal():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        now = parsedate_to_datetime(headers.get("Date", ""))
        return (then - now).total_seconds()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _late(url: str, reply: Reply, attempt: int) -> _LateError:
    """Return the error for a server that was away until the time limit."""
    return _LateError(
        f"the model at {url} does not answer in time: {reply.reason}"
        f", {attempt} attempts. Start the server, or pass a longer `timeout`."
    )


def _short(content: Any) -> str:
    """Return a server's text on one line: both ends, since the reason may come last."""
    line = one_line(str(_message(content))).rstrip(".")
    if len(line) <= _SHORT_TEXT:
        return line
    half = _SHORT_TEXT // 2
    return f"{line[:half]} … {line[-half:]}"


def _message(content: Any) -> Any:
    """Return the message in a server's answer; the whole answer if it has none."""
    found = content if isinstance(content, dict) else {}
    texts = [found.get(key) for key in ("message", "error", "detail")]
    return next((text for text in texts if isinstance(text, str)), content)
